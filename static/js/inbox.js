// <hp-inbox>: j and k move along the rows, Enter opens; the row under the cursor is previewed beside the list.
// It wraps the list, which is morphed as gates come and go: the cursor stays on its gate, not at its position.
import { walk } from "./walk.js";

class Inbox extends HTMLElement {
  connectedCallback() {
    this.preview = document.querySelector("#preview");
    this.wide = matchMedia("(min-width: 80rem)");
    this.addEventListener("focusin", (event) => this.rest(event.target.closest(".gate-row")));
    this.addEventListener("pointerover", (event) => this.hover(event.target.closest(".gate-row")));
    walk(() => this.rows().map((row) => row.querySelector("a")), () => this.rows().findIndex((row) => row.id === this.here));
    document.addEventListener("htmx:after:swap", () => this.swapped());
    document.querySelector("#queues [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.fresh();
  }

  rows() {
    return [...this.querySelectorAll(".gate-row")];
  }

  hover(row) {
    clearTimeout(this.hovering);
    if (row && !this.contains(document.activeElement)) this.hovering = setTimeout(() => this.rest(row), 150);
  }

  rest(row) {
    if (!row || row.id === this.here) return;
    this.here = row.id;
    this.mark();
    if (this.preview && this.wide.matches && row.dataset.preview) {
      htmx.ajax("GET", row.dataset.preview, { target: this.preview, swap: "innerHTML", source: this.preview });
    }
  }

  mark() {
    for (const row of this.rows()) row.toggleAttribute("data-cursor-here", row.id === this.here);
  }

  swapped() {
    this.mark();
    this.fresh();
    const count = this.querySelector("[data-open-count]")?.dataset.openCount;
    const badge = document.querySelector(".topbar [data-inbox-link] .count");
    if (!badge || count === undefined) return;
    badge.hidden = count === "0";
    badge.firstChild.textContent = count;
  }

  // A decided row stays for a few seconds, so that nobody wonders where it went.
  fresh() {
    clearTimeout(this.leaving);
    const leaving = this.rows().map((row) => Number(row.dataset.leavesIn)).filter((seconds) => seconds > 0);
    if (leaving.length) {
      const list = this.querySelector("#inbox-list");
      this.leaving = setTimeout(() => htmx.trigger(list, "stale", {}, false), Math.min(...leaving) * 1000 + 200);
    }
  }
}

customElements.define("hp-inbox", Inbox);

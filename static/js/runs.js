// <hp-runs>: j and k move along the rows, Enter opens. Rows that are shown are kept up to date in their places; runs
// that came since are counted above the list and shown when they are asked for, so that no row jumps.
class Runs extends HTMLElement {
  connectedCallback() {
    this.arrived = new Set();
    document.addEventListener("keydown", (event) => this.press(event));
    document.addEventListener("hp:fact", ({ detail }) => this.fact(detail));
    document.addEventListener("htmx:after:swap", () => this.tell());
  }

  press(event) {
    if (!document.querySelector("hp-hotkeys [data-keys-switch]")?.checked) return;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest?.("input, textarea, select") || !["j", "k"].includes(event.key)) return;
    const links = [...this.querySelectorAll(".run-row-title a")];
    const at = links.indexOf(document.activeElement);
    const next = links[Math.min(Math.max(at + (event.key === "j" ? 1 : -1), 0), links.length - 1)];
    event.preventDefault();
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  }

  fact({ kind, run }) {
    if (!["run.started", "run.forked"].includes(kind) || this.querySelector(`[data-run="${run.slice(4)}"]`)) return;
    this.arrived.add(run);
    this.tell();
  }

  tell() {
    const place = this.querySelector("[data-arrivals]");
    const shown = [...this.arrived].filter((run) => this.querySelector(`[data-run="${run.slice(4)}"]`));
    for (const run of shown) this.arrived.delete(run);
    if (!place) return;
    const number = this.arrived.size;
    place.hidden = !number;
    place.querySelector("[data-arrived]").textContent = number === 1 ? "1 new run: show it" : `${number} new runs: show them`;
  }
}

customElements.define("hp-runs", Runs);

// <hp-timeline>: j and k move along a run's checkpoints and show the current one beside the timeline. The server renders
// it; this element keeps the address up to date, and scrolls to the checkpoint on a small screen. Once somebody asks or
// types something about a checkpoint, the page stays at it while the run goes on.
import { walk } from "./walk.js";

class Timeline extends HTMLElement {
  connectedCallback() {
    this.wide = matchMedia("(min-width: 68rem)");
    this.addEventListener("click", (event) => this.pick(event));
    this.addEventListener("input", (event) => this.stay(event.target.closest("#rewind, #note-it")));
    this.addEventListener("toggle", ({ target }) => this.stay(target.open && target.querySelector("#rewind-ask")), true);
    this.addEventListener("htmx:config:request", (event) => this.follow(event.detail.ctx));
    walk(() => this.links(), (links) => this.here(links), (link) => this.arrive(link));
  }

  pick(event) {
    const link = event.target.closest("a[data-pick]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    history.replaceState(history.state, "", link.href.split("#")[0]);
    if (this.wide.matches || !link.closest("#timeline") || this.keyed) return;
    document.addEventListener("htmx:after:swap", () => this.querySelector("#inspect")?.scrollIntoView(), { once: true });
  }

  stay(form) {
    if (!form || new URLSearchParams(location.search).get("at")) return;
    history.replaceState(history.state, "", `?at=${form.elements.at.value}`);
  }

  follow(context) {
    const at = new URLSearchParams(location.search).get("at");
    if (!at || context.sourceElement?.id !== "timeline" || context.request.action.includes("at=")) return;
    context.request.action += `${context.request.action.includes("?") ? "&" : "?"}at=${at}&still=1`;
  }

  links() {
    return [...this.querySelectorAll("#timeline a[data-pick]")].filter((link) => link.checkVisibility());
  }

  here(links) {
    const focused = links.indexOf(document.activeElement);
    return focused >= 0 ? focused : links.findIndex((link) => link.closest("[aria-current]"));
  }

  arrive(link) {
    link.focus({ preventScroll: true });
    link.closest(".cp").scrollIntoView({ block: "nearest" });
    // Holding the key down passes many rows: only the last one is fetched.
    clearTimeout(this.stopping);
    this.stopping = setTimeout(() => {
      this.keyed = true;
      link.click();
      this.keyed = false;
    }, 120);
  }
}

customElements.define("hp-timeline", Timeline);

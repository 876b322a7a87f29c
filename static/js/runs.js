// <hp-runs>: j and k move along the rows, Enter opens. The rows are updated in place; new runs are counted above the list
// and shown on request, so that no row jumps.
import { walk } from "./walk.js";

class Runs extends HTMLElement {
  connectedCallback() {
    this.arrived = new Set();
    walk(() => [...this.querySelectorAll(".run-row-title a")], (links) => links.indexOf(document.activeElement));
    document.addEventListener("hp:fact", ({ detail }) => this.fact(detail));
    document.addEventListener("htmx:after:swap", () => this.tell());
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

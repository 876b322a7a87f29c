// <hp-gantt>: a job is highlighted in every chart of the page while the pointer is on one of its bars, or after a click
// until the next click. A chart that is too wide for its page starts at the present. The table has the same data.
class Gantt extends HTMLElement {
  connectedCallback() {
    this.addEventListener("pointerover", (event) => this.trace(this.job(event)));
    this.addEventListener("pointerleave", () => this.trace(Gantt.kept));
    this.addEventListener("click", (event) => this.keep(this.job(event)));
    const now = this.querySelector('line[data-kind="now"]');
    const room = this.scrollWidth - this.clientWidth;
    if (now && room > 0) this.scrollLeft = (parseFloat(now.getAttribute("x1")) / 100) * this.scrollWidth - this.clientWidth * 0.4;
  }

  job(event) {
    return event.target.closest(".bar")?.dataset.job ?? Gantt.kept;
  }

  keep(job) {
    Gantt.kept = Gantt.kept === job ? undefined : job;
    this.trace(Gantt.kept);
  }

  trace(job) {
    for (const bar of document.querySelectorAll("hp-gantt .bar")) {
      bar.toggleAttribute("data-traced", job !== undefined && bar.dataset.job === job);
    }
  }
}

customElements.define("hp-gantt", Gantt);

// <hp-gantt>: a job is highlighted in every chart of the page while the pointer is on one of its bars, or after a click
// until the next click. A bar is told by its row of the table, which has them in the same order. A chart that is too
// wide for its page starts at the present.
class Gantt extends HTMLElement {
  connectedCallback() {
    this.addEventListener("pointerover", (event) => {
      this.tell(event.target.closest(".bar"));
      this.trace(this.job(event));
    });
    this.addEventListener("pointerleave", () => this.trace(Gantt.kept));
    this.addEventListener("click", (event) => this.keep(this.job(event)));
    const now = this.querySelector('line[data-kind="now"]');
    const room = this.scrollWidth - this.clientWidth;
    if (now && room > 0) this.scrollLeft = (parseFloat(now.getAttribute("x1")) / 100) * this.scrollWidth - this.clientWidth * 0.4;
  }

  job(event) {
    return event.target.closest(".bar")?.dataset.job ?? Gantt.kept;
  }

  tell(bar) {
    if (!bar || bar.querySelector("title")) return;
    const [head, ...rows] = this.parentElement.querySelectorAll(".gantt-table tr");
    const row = rows[[...this.querySelectorAll(".bar")].indexOf(bar)];
    const words = [...row.cells].map((cell, at) => cell.textContent && `${head.cells[at].textContent} ${cell.textContent}`);
    const title = document.createElementNS(bar.namespaceURI, "title");
    title.textContent = words.filter(Boolean).join(", ");
    bar.prepend(title);
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

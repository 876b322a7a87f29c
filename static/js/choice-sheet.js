// On one column the bar at the bottom opens the choice as a sheet from the lower edge, over the place where the reader is,
// so that a decision needs no scrolling however long the page is. Without script the bar leads to the form instead. While
// it is open the rest of the page is inert; Escape, Close and a press beside it close it, and nothing is chosen then.
const NARROW = matchMedia("(max-width: 67.99rem)");

class ChoiceSheet {
  constructor() {
    document.addEventListener("click", (event) => this.pressed(event));
    document.addEventListener("keydown", (event) => this.panel && event.key === "Escape" && !event.isComposing && this.escaped(event));
    document.addEventListener("change", ({ target }) => this.panel?.contains(target) && this.chosen(target));
    document.addEventListener("htmx:after:swap", () => this.panel && !this.panel.isConnected && this.shut());
    NARROW.addEventListener("change", () => this.shut());
  }

  pressed(event) {
    const link = event.target.closest?.('.decide-dock a[href="#decide"]');
    if (link && NARROW.matches) {
      event.preventDefault();
      this.open(document.querySelector("#decide"), link);
    } else if (this.panel && (event.target.closest?.("[data-sheet-close]") || !this.panel.contains(event.target))) {
      event.preventDefault();
      this.close();
    }
  }

  escaped(event) {
    event.preventDefault();
    this.close();
  }

  open(panel, link) {
    [this.panel, this.link, this.rest] = [panel, link, []];
    this.place = document.createElement("div"); // keeps the panel's room, so that the page does not move
    this.place.style.blockSize = `${panel.offsetHeight}px`;
    panel.before(this.place);
    document.body.dataset.sheet = "";
    [panel.role, panel.ariaModal] = ["dialog", "true"];
    for (let part = panel; part !== document.body; part = part.parentElement) {
      for (const beside of part.parentElement.children) {
        if (beside === part || beside.inert) continue;
        beside.inert = true;
        this.rest.push(beside);
      }
    }
    panel.scrollTop = 0;
    const [chosen, first] = [":checked", ""].map((which) => panel.querySelector(`:is([name="verdict"], [name="answer"])${which}`));
    (chosen ?? first ?? panel.querySelector("[data-sheet-close]"))?.focus({ preventScroll: true });
  }

  // What is edited is in the page, and so is the verdict on each action.
  chosen(radio) {
    if (radio.name !== "verdict" || !["edit", "each"].includes(radio.value)) return;
    this.shut();
    document.querySelector(`.decide-dock [data-choose="${radio.value}"]`)?.click();
  }

  close() {
    for (const radio of this.panel.querySelectorAll(':is([name="verdict"], [name="answer"]):checked')) {
      radio.checked = false;
      radio.dispatchEvent(new Event("input", { bubbles: true }));
    }
    const link = this.link;
    this.shut();
    link.focus({ preventScroll: true });
  }

  shut() {
    if (!this.panel) return;
    for (const part of this.rest) part.inert = false;
    this.place.remove();
    delete document.body.dataset.sheet;
    [this.panel.role, this.panel.ariaModal] = [null, null];
    this.panel = null;
  }
}

new ChoiceSheet();

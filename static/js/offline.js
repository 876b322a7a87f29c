// <hp-offline>: the line below the top bar while the page is cut off: since when it may be out of date, and what happens
// to what is typed. It appears at once when the browser is offline, and after some seconds when only the socket is lost.
import { words } from "./times.js";

const PATIENCE = 5000;

class Offline extends HTMLElement {
  connectedCallback() {
    this.line = this.querySelector("[role=status]");
    this.querySelector("button").addEventListener("click", () => steadily(() => this.toggleAttribute("data-shown", false)));
    document.addEventListener("hp:live", ({ detail }) => this.turn(detail));
  }

  turn({ state, heard, polled }) {
    clearTimeout(this.waiting);
    if (state === "on" || state === "off") return this.back();
    const wait = state === "offline" || this.told ? 0 : PATIENCE;
    this.waiting = setTimeout(() => this.tell(state, heard, polled), wait);
  }

  // A line that was closed does not come back before the page was live again. The same words are not set twice: a screen
  // reader would read them at every poll.
  tell(state, heard, polled) {
    const lead = document.createElement("b");
    lead.textContent = state === "offline" ? "You are offline." : "Live updates are paused.";
    const since = words(new Date(heard), "clock");
    const polls = "This page checks for changes about every 20 seconds instead.";
    const old = polled ? polls : `This page may be out of date since ${since}.`;
    const said = ` ${old} ${kept()}`.trimEnd();
    steadily(() => {
      if (this.line.textContent !== lead.textContent + said) this.line.replaceChildren(lead, said);
      if (!this.told) this.toggleAttribute("data-shown", true);
    });
    this.told = true;
  }

  back() {
    this.told = false;
    steadily(() => {
      this.toggleAttribute("data-shown", false);
      this.line.replaceChildren();
    });
  }
}

// On a phone the line takes room at the top of the page: keeps what is read further down where it is.
function steadily(change) {
  const main = document.querySelector("#main");
  const before = main.getBoundingClientRect().top;
  change();
  if (scrollY) scrollBy({ top: main.getBoundingClientRect().top - before, behavior: "instant" });
}

// A draft outlives the page; text in any other form is lost with the page.
function kept() {
  if (document.querySelector("hp-draft")) return "What you type is kept.";
  const typed = document.querySelector("main form[method=post] :is(textarea, input:not([type=hidden]))");
  return typed ? "What you type stays on this page." : "";
}

customElements.define("hp-offline", Offline);

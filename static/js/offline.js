// <hp-offline>: the line below the top bar for whoever is cut off: since when what is shown may be old, and what
// becomes of what is typed. A browser that is offline says so at once; a socket alone is given some seconds.
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

  // Whoever put the line away is not told again until the page has been live in between. The same words are not said
  // twice: a screen reader would read them at every look.
  tell(state, heard, polled) {
    const lead = document.createElement("b");
    lead.textContent = state === "offline" ? "You are offline." : "Live updates are paused.";
    const old = polled ? "This page looks for changes every twenty seconds or so instead." : `What you see may be old since ${words(new Date(heard), "clock")}.`;
    const said = ` ${old}${kept()}`;
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

// On a phone the line takes room at the top of the page: what somebody reads further down stays where it is.
function steadily(change) {
  const main = document.querySelector("#main");
  const before = main.getBoundingClientRect().top;
  change();
  if (scrollY) scrollBy({ top: main.getBoundingClientRect().top - before, behavior: "instant" });
}

// A draft outlives the page; what stands in any other form is there only as long as the page is.
function kept() {
  if (document.querySelector("hp-draft")) return " What you type is kept.";
  return document.querySelector("main form[method=post] :is(textarea, input:not([type=hidden]))") ? " What you type stays on this page." : "";
}

customElements.define("hp-offline", Offline);

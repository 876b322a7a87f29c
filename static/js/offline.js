// <hp-offline>: the line below the top bar for whoever is cut off: since when what is shown may be old, and what
// becomes of what is typed. A browser that is offline says so at once; a socket alone is given some seconds.
import { words } from "./times.js";

const PATIENCE = 5000;

class Offline extends HTMLElement {
  connectedCallback() {
    this.line = this.querySelector("[role=status]");
    this.querySelector("button").addEventListener("click", () => this.toggleAttribute("data-shown", false));
    document.addEventListener("hp:live", ({ detail }) => this.turn(detail));
  }

  turn({ state, heard }) {
    clearTimeout(this.waiting);
    if (state === "on" || state === "off") return this.back();
    const wait = state === "offline" || this.told ? 0 : PATIENCE;
    this.waiting = setTimeout(() => this.tell(state, heard), wait);
  }

  // Whoever put the line away is not told again until the page has been live in between.
  tell(state, heard) {
    const lead = document.createElement("b");
    lead.textContent = state === "offline" ? "You are offline." : "Live updates are paused.";
    this.line.replaceChildren(lead, ` What you see may be old since ${words(new Date(heard), "clock")}.${kept()}`);
    if (!this.told) this.toggleAttribute("data-shown", true);
    this.told = true;
  }

  back() {
    this.told = false;
    this.toggleAttribute("data-shown", false);
    this.line.replaceChildren();
  }
}

// A draft outlives the page; what stands in any other form is there only as long as the page is.
function kept() {
  if (document.querySelector("hp-draft")) return " What you type is kept.";
  return document.querySelector("main form[method=post] :is(textarea, input:not([type=hidden]))") ? " What you type stays on this page." : "";
}

customElements.define("hp-offline", Offline);

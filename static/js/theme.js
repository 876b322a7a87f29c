// <hp-theme>: switches between light and dark, and remembers the choice in this browser.
import { setCookie } from "./cookies.js";

const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

class Theme extends HTMLElement {
  connectedCallback() {
    this.button = this.querySelector("button");
    this.button.addEventListener("click", () => this.choose(this.dark() ? "light" : "dark"));
    system.addEventListener("change", () => this.say());
    this.say();
  }

  dark() {
    return (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  }

  choose(theme) {
    root.dataset.theme = theme;
    setCookie("hp-theme", theme);
    this.say();
  }

  say() {
    this.button.setAttribute("aria-pressed", String(this.dark()));
  }
}

customElements.define("hp-theme", Theme);

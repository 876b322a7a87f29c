// <hp-theme>: switches between light and dark, and remembers the choice in this browser.
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
    try {
      localStorage.setItem("hp-theme", theme);
    } catch {
      // Storage is off: the choice lasts as long as the page.
    }
    this.say();
  }

  say() {
    this.button.setAttribute("aria-pressed", String(this.dark()));
  }
}

customElements.define("hp-theme", Theme);

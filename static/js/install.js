// <hp-install>: offers to install the app, where the browser says that it can and the app is not installed yet.
class Install extends HTMLElement {
  connectedCallback() {
    addEventListener("beforeinstallprompt", (event) => {
      event.preventDefault(); // it asks when the person presses the button
      this.asking = event;
      this.hidden = false;
    });
    addEventListener("appinstalled", () => this.toggleAttribute("hidden", true));
    this.querySelector("button").addEventListener("click", () => this.asking?.prompt());
  }
}

customElements.define("hp-install", Install);

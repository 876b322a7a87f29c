// <hp-ask>: a comment or a note is sent without leaving the page, and its field is then empty for the next. Each one has
// a key of its own, so that pressing twice sends it once.
import { newKey } from "./form-key.js";

class Ask extends HTMLElement {
  connectedCallback() {
    const form = this.querySelector("form");
    form.addEventListener("htmx:after:swap", () => {
      form.elements.text.value = "";
      form.elements.key.value = newKey();
    });
  }
}

customElements.define("hp-ask", Ask);

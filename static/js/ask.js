// <hp-ask>: words said at a gate are sent in place, and the field is empty again for the next. Every sending has a key
// of its own, so that twice pressed is once said.
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

// <hp-conflict>: whose value counts where the reader's draft and a newer version of the proposal differ. The choice puts
// that value into the field at once; the server reads the choice itself, so nothing depends on this.
import { original } from "./form-parts.js";

class Conflict extends HTMLElement {
  connectedCallback() {
    this.addEventListener("change", ({ target }) => this.chosen(target));
  }

  chosen(choice) {
    this.querySelector("fieldset").toggleAttribute("data-open", false);
    const field = choice.form?.elements.namedItem(this.dataset.input);
    if (!field || !("was" in (field.dataset ?? {}))) return;
    const { value: mine } = this.querySelector("[type=hidden]");
    const value = choice.value === "mine" ? mine : original(field);
    if (field.type === "checkbox") field.checked = value === true || value === "true";
    else field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

customElements.define("hp-conflict", Conflict);

// <hp-order>: around a form that previews its effect while it is typed. The server renders the preview; this element
// marks the fields that differ from what is saved, and a preview that is out of date. Pressing twice sends once.
import { tell } from "./difference.js";
import { Faults } from "./field-faults.js";
import { changed, Parts, putBack } from "./form-parts.js";

class Order extends HTMLElement {
  connectedCallback() {
    this.addEventListener("input", (event) => this.typed(event.target));
    this.addEventListener("htmx:before:request", () => (this.dataset.stale = ""));
    this.addEventListener("htmx:finally:request", () => delete this.dataset.stale);
    this.addEventListener("submit", () => (this.locking = setTimeout(() => this.lock(true))));
    this.addEventListener("hp:unsent", () => this.lock(false), true);
    addEventListener("pageshow", (event) => event.persisted && this.lock(false));
    this.form = this.querySelector("#order");
    if (!this.form) return;
    this.faults = new Faults(this);
    this.parts = new Parts(this, this.form, () => this.refreshed());
    this.addEventListener("click", putBack);
    for (const field of this.fields()) this.typed(field);
  }

  // The fields of the state's form, with the order of its lists.
  fields(within = this) {
    return [...within.querySelectorAll(".editor [data-was]")];
  }

  lock(locked) {
    clearTimeout(this.locking); // it may come back before it was locked
    for (const button of this.querySelectorAll(".commit")) button.disabled = locked;
  }

  typed(field) {
    const editor = field.closest(".editor");
    if (!editor || !("was" in field.dataset)) return;
    tell(field);
    editor.toggleAttribute("data-edited", this.fields(editor).some((each) => changed(each)));
  }

  // The server rendered a part of the form again, so the preview is asked for again too.
  refreshed() {
    for (const field of this.fields()) this.typed(field);
    this.form.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

customElements.define("hp-order", Order);

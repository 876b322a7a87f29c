// <hp-order>: around a form that shows what it would do while it is typed. The server draws that; this says which
// fields differ from what is saved, and that what is shown is being worked out anew.
class Order extends HTMLElement {
  connectedCallback() {
    this.addEventListener("input", (event) => this.typed(event.target));
    this.addEventListener("htmx:before:request", () => (this.dataset.stale = ""));
    this.addEventListener("htmx:finally:request", () => delete this.dataset.stale);
  }

  typed(field) {
    field.closest(".editor")?.toggleAttribute("data-edited", field.value.trim() !== field.defaultValue.trim());
  }
}

customElements.define("hp-order", Order);

// <hp-order>: around a form that shows what it would do while it is typed. The server draws that; this says which
// fields differ from what is saved, and that what is shown is being worked out anew. Twice pressed is once sent.
class Order extends HTMLElement {
  connectedCallback() {
    this.addEventListener("input", (event) => this.typed(event.target));
    this.addEventListener("htmx:before:request", () => (this.dataset.stale = ""));
    this.addEventListener("htmx:finally:request", () => delete this.dataset.stale);
    this.addEventListener("submit", () => setTimeout(() => this.lock(true)));
    addEventListener("pageshow", (event) => event.persisted && this.lock(false));
  }

  lock(locked) {
    for (const button of this.querySelectorAll(".commit")) button.disabled = locked;
  }

  typed(field) {
    field.closest(".editor")?.toggleAttribute("data-edited", field.value.trim() !== field.defaultValue.trim());
  }
}

customElements.define("hp-order", Order);

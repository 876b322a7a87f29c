// <hp-filters>: a list's filters apply as they are chosen. Their button is for pages without script.
class Filters extends HTMLElement {
  connectedCallback() {
    this.form = this.querySelector("form");
    this.addEventListener("change", (event) => event.target.matches("select") && this.form.requestSubmit());
    this.addEventListener("search", () => this.form.requestSubmit());
    this.form.addEventListener("submit", () => this.tidy());
  }

  // Keeps empty filters out of the address. They are enabled again for the Back button.
  tidy() {
    const silent = [...this.form.elements].filter((field) => field.name && field.value === "");
    for (const field of silent) field.disabled = true;
    setTimeout(() => silent.forEach((field) => { field.disabled = false; }));
  }
}

customElements.define("hp-filters", Filters);

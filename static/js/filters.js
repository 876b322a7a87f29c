// <hp-filters>: a list's filters apply as they are chosen; the button that sends them is for pages without script.
class Filters extends HTMLElement {
  connectedCallback() {
    this.form = this.querySelector("form");
    this.addEventListener("change", (event) => event.target.matches("select") && this.form.requestSubmit());
    this.addEventListener("search", () => this.form.requestSubmit());
    this.form.addEventListener("submit", () => this.tidy());
  }

  // An address without the filters that say nothing. Enabled again for whoever comes back by the Back button.
  tidy() {
    const silent = [...this.form.elements].filter((field) => field.name && field.value === "");
    for (const field of silent) field.disabled = true;
    setTimeout(() => silent.forEach((field) => { field.disabled = false; }));
  }
}

customElements.define("hp-filters", Filters);

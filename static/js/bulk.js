// <hp-bulk>: while a bulk decision is carried out, shows how far it is. What it shows is read from the server.
const EVERY = 300;

class Bulk extends HTMLElement {
  connectedCallback() {
    this.form = this.querySelector("form");
    this.place = this.querySelector(".bulk-progress");
    this.form?.addEventListener("submit", () => this.follow());
    this.form?.addEventListener("hp:sent", () => clearTimeout(this.next));
    this.form?.addEventListener("hp:unsent", () => clearTimeout(this.next));
  }

  // A page that the server drew in place of this one has a form of its own.
  disconnectedCallback() {
    clearTimeout(this.next);
  }

  follow() {
    clearTimeout(this.next);
    if (!this.isConnected) return;
    this.next = setTimeout(() => this.look(), EVERY);
  }

  async look() {
    const address = new URL(this.dataset.progress, location.href);
    address.searchParams.set("key", this.form.elements.key.value);
    try {
      const answer = await fetch(address, { headers: { "HX-Request": "true" } });
      if (answer.ok && !answer.redirected) this.place.innerHTML = await answer.text();
    } catch {
      return; // the form itself says that nothing is reached
    }
    this.follow();
  }
}

customElements.define("hp-bulk", Bulk);

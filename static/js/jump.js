// <hp-jump>: Ctrl+K opens a dialog in which a few letters find a page, a gate or a run; the arrows move along the
// results, Enter opens one. Without script its button is a link to the same search on a page of its own.
class Jump extends HTMLElement {
  connectedCallback() {
    this.sheet = this.querySelector("dialog");
    this.field = this.querySelector("input");
    this.querySelector("[data-jump-open]").addEventListener("click", (event) => this.open(event));
    document.addEventListener("keydown", (event) => {
      if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.shiftKey) this.open(event);
    });
    this.sheet.addEventListener("keydown", (event) => this.move(event));
    this.sheet.addEventListener("click", (event) => event.target === this.sheet && this.sheet.close());
    this.querySelector("form").addEventListener("submit", (event) => this.go(event));
  }

  open(event) {
    if (document.querySelector("dialog[open]")) return;
    event.preventDefault();
    this.sheet.showModal();
    this.field.select();
    htmx.trigger(this.field, "open", {}, false);
  }

  links() {
    return [...this.querySelectorAll("#places a")];
  }

  move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.isComposing) return;
    event.preventDefault();
    const stops = [this.field, ...this.links()];
    stops[Math.min(Math.max(stops.indexOf(document.activeElement) + step, 0), stops.length - 1)].focus();
  }

  // Enter in the field opens the first result of what was typed last.
  async go(event) {
    event.preventDefault();
    const address = new URL(event.target.action);
    address.searchParams.set("q", this.field.value);
    const answer = await fetch(address, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (!answer?.ok || answer.redirected) return location.assign(address); // the page says what is wrong
    const found = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("a");
    location.assign(found ? found.getAttribute("href") : address);
  }
}

customElements.define("hp-jump", Jump);

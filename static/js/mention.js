// <hp-mention>: completes "@name" in the field inside. The arrows choose, Enter takes, Escape closes; without
// script the same text, typed in full, mentions as well.
const PARTIAL = /(^|[^\p{L}\p{N}_@.+-])@([\p{L}\p{N}_.+-]*)$/u; // the characters of a username

class Mention extends HTMLElement {
  connectedCallback() {
    this.field = this.querySelector("input");
    this.field.setAttribute("role", "combobox");
    this.field.setAttribute("aria-autocomplete", "list");
    this.field.setAttribute("aria-expanded", "false");
    this.field.addEventListener("input", () => this.look());
    this.field.addEventListener("keydown", (event) => this.press(event));
    this.field.addEventListener("blur", () => this.close());
    this.field.addEventListener("selectionchange", () => this.left());
    this.addEventListener("mousedown", (event) => this.take(event, event.target.closest("[role=option]")));
  }

  get partial() {
    return PARTIAL.exec(this.field.value.slice(0, this.field.selectionStart))?.[2];
  }

  get options() {
    return [...this.querySelectorAll("[role=option]")];
  }

  async look() {
    const asked = this.partial;
    if (asked === undefined) return this.close();
    const address = new URL(this.dataset.url, location.href);
    address.searchParams.set("q", asked);
    const answer = await fetch(address).catch(() => null);
    if (!answer?.ok || answer.redirected || this.partial !== asked) return;
    const list = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[role=listbox]");
    this.close();
    if (!list.childElementCount || document.activeElement !== this.field) return;
    this.append(list);
    this.field.setAttribute("aria-expanded", "true");
    this.field.setAttribute("aria-controls", list.id);
    this.choose(this.options[0]);
  }

  choose(option) {
    for (const each of this.options) each.setAttribute("aria-selected", String(each === option));
    this.field.setAttribute("aria-activedescendant", option.id);
  }

  // A list belongs to the name at the caret.
  left() {
    if (this.options.length && this.partial === undefined) this.close();
  }

  press(event) {
    this.left();
    const { options } = this;
    if (!options.length || event.isComposing || event.ctrlKey || event.metaKey) return;
    const at = options.findIndex((each) => each.getAttribute("aria-selected") === "true");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      this.choose(options[(at + step + options.length) % options.length]);
    } else if (event.key === "Enter") this.take(event, options[at]);
    else if (event.key === "Escape") {
      event.preventDefault();
      this.close();
    }
  }

  take(event, option) {
    if (!option) return;
    event.preventDefault();
    const { selectionStart: end, value } = this.field;
    const start = end - this.partial.length;
    this.field.setRangeText(`${option.dataset.name} `, start, end, "end");
    if (value !== this.field.value) this.field.dispatchEvent(new Event("input", { bubbles: true }));
    this.close();
  }

  close() {
    this.querySelector("[role=listbox]")?.remove();
    this.field.setAttribute("aria-expanded", "false");
    this.field.removeAttribute("aria-activedescendant");
    this.field.removeAttribute("aria-controls");
  }
}

customElements.define("hp-mention", Mention);

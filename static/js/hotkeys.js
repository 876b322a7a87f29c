// <hp-hotkeys>: single keys through one listener. An element names its key in [data-hotkey]; pressing it clicks
// or focuses that element. Off while something is typed, with a modifier, in a dialog, and by the reader's switch
// (WCAG 2.1.4). `?` shows the sheet.
import { cookie, setCookie } from "./cookies.js";

const STORE = "hp-keys"; // "off", or nothing

class Hotkeys extends HTMLElement {
  connectedCallback() {
    this.sheet = this.querySelector("dialog");
    this.switch = this.querySelector("[data-keys-switch]");
    this.switch.checked = cookie(STORE) !== "off";
    this.switch.addEventListener("change", () => setCookie(STORE, this.switch.checked ? "" : "off"));
    for (const opener of document.querySelectorAll("[data-keys-open]")) {
      opener.addEventListener("click", () => this.sheet.showModal());
    }
    document.addEventListener("keydown", (event) => this.press(event));
  }

  press(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) return this.commit(event);
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (!this.switch.checked || document.querySelector("dialog[open]")) return;
    if (event.repeat && event.key === this.held) return event.preventDefault();
    this.held = undefined;
    if (typing(event.target)) return void (event.key === "Escape" && leave(event.target));
    if (event.key === "?") {
      event.preventDefault();
      this.sheet.showModal();
      return;
    }
    // While a part of the page with keys of its own, marked [data-hotkeys], has the focus, its keys come before those of
    // the page. A key that only such parts have belongs to the first of them.
    const wanted = `[data-hotkey="${CSS.escape(event.key)}"]`;
    const here = event.target.closest?.("[data-hotkeys]")?.querySelector(wanted);
    const all = [...document.querySelectorAll(wanted)].filter((each) => !each.closest("[inert]"));
    const target = here ?? all.find((each) => !each.closest("[data-hotkeys]") || each.matches("a")) ?? all[0];
    if (!target) return;
    event.preventDefault();
    // A key that is held down leads on from page to page, but does nothing else twice: neither would it be typed into the
    // field to which it led, nor press a button of the page that follows.
    if (!target.matches("a")) {
      if (event.repeat) return;
      this.held = event.key;
    }
    if (target.type === "radio" || typing(target)) target.focus(); // a click by script leaves a field without the focus
    target.click();
    if (target.matches('[data-ballot], [name="verdict"]')) into(target);
  }

  // Works while typing too, as it is not a single key. It sends the form that has the focus, and from anywhere else the
  // decision, by its visible button. A key that is still held down from the page before sends nothing.
  commit(event) {
    const form = event.target.form ?? event.target.closest?.("dialog, form");
    const own = form && !form.querySelector("[data-commit]");
    if (own && !typing(event.target)) return; // leave a button alone
    const button = own ? first(form) : [...document.querySelectorAll("[data-commit]")].find((each) => each.checkVisibility());
    event.preventDefault();
    if (button && !button.disabled && !event.repeat) button.click();
  }
}

// The text that a choice needs is typed next: its letters must not act as keys.
function into(choice) {
  const wanted = { reject: '#feedback, [name^="reason."]', respond: '[name^="response."]', edit: ".item :is(input, textarea, select)" };
  const fields = wanted[choice.value];
  const found = fields ? [...(choice.closest(".action") ?? document).querySelectorAll(fields)] : [];
  found.find((each) => typing(each) && each.type !== "hidden" && each.checkVisibility())?.focus();
}

// The button that a browser presses on Enter; if it is disabled, the browser sends nothing.
function first(form) {
  return [...(form.elements ?? [])].find((each) => each.type === "submit");
}

function typing(element) {
  if (element.isContentEditable) return true;
  if (element.matches?.("textarea, select")) return true;
  return element.matches?.("input") && !["radio", "checkbox", "button", "submit"].includes(element.type);
}

// Leaves a field for the part of the page around it, where the keys work again.
function leave(field) {
  field.blur();
  field.closest("[data-hotkeys]")?.focus({ preventScroll: true });
}

customElements.define("hp-hotkeys", Hotkeys);

// The pinned frame follows what is typed, so that it shows no value that would not be used.
// It is display only: the form is what is sent, and the server renders the same frame after it.
import { words as said } from "./difference.js";
import { visible } from "./visible.js";

const drawn = new WeakMap();

export function mirror(scope, field, before, changed) {
  const pin = scope.querySelector(`[data-pin="${CSS.escape(field.name)}"]`);
  if (!pin) return;
  if (!drawn.has(pin)) drawn.set(pin, pin.dataset.by === "you" ? [before + unit(scope, pin)] : [...pin.childNodes]);
  const words = scope.querySelector(`[data-words-of="${CSS.escape(field.name)}"]`);
  if (words && (pin.dataset.said ?? field.value) !== field.value) words.textContent = ""; // the server renders them again
  pin.dataset.said = field.value;
  pin.toggleAttribute("data-by", changed);
  if (!changed) return pin.replaceChildren(...drawn.get(pin));
  pin.dataset.by = "you";
  const [gone, put] = [document.createElement("del"), document.createElement("ins")];
  const texts = [before, field.value].map((each) => visible(said(field, each)) || "(empty)");
  [gone, put].forEach((element, at) => element.replaceChildren(...(pin.dataset.unit ? figures(texts[at]) : [texts[at]])));
  pin.replaceChildren(gone, " ", put, unit(scope, pin));
}

// Groups digits as approvals/presentation/text/amounts.py does: the gap is drawn and is no character.
function figures(text) {
  const [, first, rest, decimals = ""] = text.match(/^(-?\d{1,3})((?:\d{3}){1,9})(\.\d+)?$/) ?? [];
  if (!rest) return [text];
  const threes = rest.match(/\d{3}/g).map((three) => {
    const gap = document.createElement("span");
    [gap.className, gap.textContent] = ["thousands", three];
    return gap;
  });
  return [first, ...threes, decimals];
}

// A pinned list or object is spelled out while its parts are edited one by one: the frame says that it is no longer what
// would be used, and where to look instead.
export function outdated(scope, edited) {
  const names = edited.map((field) => `${field.name.replace(/^([^!/]*)![a-z]+/, "$1")}/`);
  for (const note of scope.querySelectorAll("[data-pin-parts]")) {
    note.hidden = !names.some((name) => name.startsWith(`${note.dataset.pinParts}/`));
  }
}

// The currency in the form, if the form has one.
function unit(scope, pin) {
  if (!pin.dataset.unit) return "";
  const beside = pin.dataset.pin.replace(/[^/]*$/, "currency");
  return ` ${scope.querySelector(`[name="${CSS.escape(beside)}"]`)?.value || pin.dataset.unit}`;
}

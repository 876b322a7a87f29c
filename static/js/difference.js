import { changed, original } from "./form-parts.js";
import { visible } from "./visible.js";

// Shows what a reader changed in the item of a field, beside its inputs and in place of its hint.
export function tell(field) {
  const item = field.closest(".item");
  const note = item?.querySelector("[data-note]");
  if (!note) return;
  const mine = [...item.querySelectorAll(".input")].filter((field) => changed(field));
  item.toggleAttribute("data-edited", mine.length > 0);
  item.querySelector("[data-edit-tag]").hidden = !mine.length;
  item.querySelector("[data-put-back]").hidden = !mine.length;
  const said = (field) => (field.type === "password" ? difference("••••", "another") : difference(words(field, original(field)), words(field, field.value)));
  note.replaceChildren(...mine.map(said));
  item.querySelector("[data-as-proposed]").hidden = mine.length > 0;
}

// A choice and a file as people read them, anything else as it is.
export function words(field, value) {
  if ("file" in field.dataset && value) {
    const { $artifact: digest, size, name } = JSON.parse(value);
    return [name, `${size.toLocaleString("en")} bytes`, `SHA-256 ${digest.slice(0, 12)}`].filter((each) => typeof each === "string").join(", ");
  }
  return [...(field.options ?? [])].find((option) => option.value === value)?.label ?? value;
}

// The change of one field as <del> and <ins>, without the unchanged text around it, which the field shows.
function difference(before, after) {
  const was = document.createElement("span");
  [was.className, was.dataset.by] = ["was", "you"];
  const [gone, put] = [document.createElement("del"), document.createElement("ins")];
  [gone.textContent, put.textContent] = middle(before, after).map(visible);
  was.append(gone, " ", put);
  return was;
}

// Only what differs, with a little text around it: a long text usually changes in one place.
function middle(before, after) {
  let [start, end] = [0, 0];
  while (start < Math.min(before.length, after.length) && before[start] === after[start]) start++;
  const room = Math.min(before.length, after.length) - start;
  while (end < room && before.at(-1 - end) === after.at(-1 - end)) end++;
  if (before.length + after.length < 80) [start, end] = [0, 0];
  const cut = (text) => {
    const part = text.slice(Math.max(start - 12, 0), text.length - Math.max(end - 12, 0));
    return (start > 12 ? "…" : "") + (part.length > 160 ? `${part.slice(0, 160)}…` : part) + (end > 12 ? "…" : "");
  };
  return [cut(before) || "(empty)", cut(after) || "(empty)"];
}

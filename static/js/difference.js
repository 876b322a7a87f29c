// A change of one field as <del> and <ins>: the words around it are left out, a reader has them in the field.
export function difference(before, after) {
  const was = document.createElement("span");
  [was.className, was.dataset.by] = ["was", "you"];
  const [gone, put] = [document.createElement("del"), document.createElement("ins")];
  [gone.textContent, put.textContent] = middle(before, after);
  was.append(gone, " ", put);
  return was;
}

// Only what differs, with some words around it: a long text changes in one place.
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

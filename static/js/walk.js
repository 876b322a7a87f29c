// j and k move along the links of a list: `links()` gives them in order, `here(links)` the place of the one to go on
// from, -1 for none. As single keys they are off while something is typed, in a dialog, and by the reader's switch.
export function walk(links, here) {
  document.addEventListener("keydown", (event) => {
    if (!document.querySelector("hp-hotkeys [data-keys-switch]")?.checked) return;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest?.("input, textarea, select") || !["j", "k"].includes(event.key)) return;
    const all = links();
    const next = all[Math.min(Math.max(here(all) + (event.key === "j" ? 1 : -1), 0), all.length - 1)];
    event.preventDefault();
    if (next) tellEnd(next === document.activeElement ? event.key : "");
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  });
}

// Says that there is no further to go, by the key that was pressed; "" takes what was said away.
export function tellEnd(key) {
  say(key && end(key));
}

function end(key) {
  if (key === "k") return "Start of the list";
  return document.querySelector('[data-hotkey="n"]') ? "End of this page: press n for the next" : "End of the list";
}

// Heard by those who see no cursor, seen by the others until the cursor moves on.
function say(words) {
  let note = document.querySelector(".list-end");
  if (!note && !words) return;
  if (!note) {
    note = document.createElement("p");
    [note.className, note.role] = ["list-end", "status"];
    document.body.append(note);
  }
  note.textContent = "";
  note.hidden = !words;
  setTimeout(() => (note.textContent = words)); // the same words again are said again
}

// j and k move along the links of a list: `links()` returns them in order, `here(links)` the index of the current one, or
// -1, and `arrive(link)` moves to another. As single keys they are off while something is typed, in a dialog, and by
// the reader's switch.

export function walk(links, here, arrive = focus) {
  document.addEventListener("keydown", (event) => {
    if (!document.querySelector("hp-hotkeys [data-keys-switch]")?.checked) return;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest?.('textarea, select, input:not([type="checkbox"])') || !["j", "k"].includes(event.key)) return;
    const all = links();
    const next = all[Math.min(Math.max(here(all) + (event.key === "j" ? 1 : -1), 0), all.length - 1)];
    event.preventDefault();
    if (!next) return;
    say(next === document.activeElement ? end(event.key) : "");
    arrive(next);
  });
}

function focus(link) {
  link.focus();
  link.scrollIntoView({ block: "nearest" });
}

function end(key) {
  if (key === "k") return "Start of the list";
  return document.querySelector('[data-hotkey="n"]') ? "End of this page: press n for the next" : "End of the list";
}

// Says that the list ends; "" removes the message. Screen readers read it; others see it until the cursor moves on.
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
  setTimeout(() => (note.textContent = words)); // a screen reader reads the same words again
}

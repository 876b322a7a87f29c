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
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  });
}

// An action that was already done is repeated only if the reviewer ticks its box: no decision is sent while a visible box
// is not ticked. The server checks it too.
const told = new Set(); // the names of boxes that somebody was told to tick

document.addEventListener("submit", (event) => {
  if (!event.submitter?.matches("[data-commit]")) return;
  const boxes = [...event.target.querySelectorAll("[data-confirm]:not(:checked)")].filter((each) => each.checkVisibility());
  if (!boxes.length) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  for (const box of boxes) {
    told.add(box.name);
    mark(box);
  }
  boxes[0].focus({ preventScroll: true });
  boxes[0].closest(".repeat").scrollIntoView({ block: "center" });
}, { capture: true });

function mark(box) {
  box.closest(".repeat").dataset.missing = "";
  box.setAttribute("aria-invalid", "true");
}

// The server draws the panel without the marks.
document.addEventListener("htmx:after:swap", () => {
  for (const box of document.querySelectorAll("[data-confirm]:not(:checked)")) if (told.has(box.name)) mark(box);
});

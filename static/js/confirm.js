// What was done before is done once more only where somebody ticks that: no decision is sent while a box of it that is in
// sight is open. The server refuses it all the same.
document.addEventListener("submit", (event) => {
  if (!event.submitter?.matches("[data-commit]")) return;
  const boxes = [...event.target.querySelectorAll("[data-confirm]:not(:checked)")].filter((each) => each.checkVisibility());
  if (!boxes.length) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  for (const box of boxes) {
    box.closest(".repeat").dataset.missing = "";
    box.setAttribute("aria-invalid", "true");
  }
  boxes[0].focus({ preventScroll: true });
  boxes[0].closest(".repeat").scrollIntoView({ block: "center" });
}, { capture: true });

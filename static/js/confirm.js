// An action that was already done is repeated only if the reviewer ticks its box: no decision is sent while a visible box
// is not ticked. The server checks it too.
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

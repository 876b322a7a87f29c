// Django's widget for choosing several labels a magnifying glass, which has no role: WAI-ARIA allows a label only to an
// element with one. The widget is drawn when the page has loaded, by a listener that was there before this module.
window.addEventListener("load", () => {
  for (const glass of document.querySelectorAll(".selector .search-label-icon")) glass.setAttribute("role", "img");
});

// Two of Django's widgets for choosing several lack a label: a magnifying glass has one and no role, to which alone
// WAI-ARIA allows it, and the field in which one searches has none. Both are drawn by listeners that were there before
// this module: the first when the page has loaded, the second when jQuery finds the document ready.
window.addEventListener("load", () => {
  for (const glass of document.querySelectorAll(".selector .search-label-icon")) glass.setAttribute("role", "img");
});
window.django.jQuery(() => {
  for (const field of document.querySelectorAll(".select2-search__field")) {
    const [label] = field.closest(".select2").previousElementSibling.labels;
    field.setAttribute("aria-label", label.textContent.trim());
  }
});

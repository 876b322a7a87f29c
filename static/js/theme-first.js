// Runs before the first paint, so that a chosen theme never flashes. Everything else is in theme.js.
try {
  const theme = localStorage.getItem("hp-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be off; then the system's theme applies.
}

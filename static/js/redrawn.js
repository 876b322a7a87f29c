// A page that the server rendered in answer to a form, with everything that was entered. It replaces this one.
export function parsed(html) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  return fresh.querySelector("#main") && fresh.body.dataset.page !== "error" ? fresh : null;
}

export function draw(fresh) {
  document.title = fresh.title;
  document.querySelector(".decide-dock")?.remove();
  const [main, dock] = [fresh.querySelector("#main"), fresh.querySelector(".decide-dock")];
  main.dataset.redrawn = "";
  document.querySelector("#main").replaceWith(main);
  if (dock) main.after(dock);
  htmx.process(main);
  main.dispatchEvent(new CustomEvent("htmx:after:swap", { bubbles: true }));
  const refusal = main.querySelector("[role=alert]") ?? main;
  refusal.tabIndex = -1;
  refusal.focus({ preventScroll: true });
  scrollTo(0, 0);
}

// The page for no connection: loads the page that was asked for as soon as the browser is connected again.
addEventListener("online", () => location.reload());

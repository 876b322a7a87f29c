// A fragment that redirects to the sign-in page means that the session is over: reload, so that the page says so.
import { keepEntered } from "./unsent.js";

document.addEventListener("htmx:before:response", (event) => {
  if (event.detail.ctx.response.raw.redirected) {
    event.preventDefault();
    keepEntered();
    location.reload();
  }
});

// A fragment that was answered by the sign-in page means that the session is over: let the page say so itself.
import { keepEntered } from "./unsent.js";

document.addEventListener("htmx:before:response", (event) => {
  if (event.detail.ctx.response.raw.redirected) {
    event.preventDefault();
    keepEntered();
    location.reload();
  }
});

// A fragment that was answered by the sign-in page means that the session is over: let the page say so itself.
document.addEventListener("htmx:before:response", (event) => {
  if (event.detail.ctx.response.raw.redirected) {
    event.preventDefault();
    location.reload();
  }
});

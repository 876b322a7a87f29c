// Nothing that is sent may get lost. A form with a key counts once however often it is sent, so this module sends it: if
// no answer comes, the page stays with all that was entered, says so beside the button and offers to try again with the
// same key. The browser sends a form without a key, but not while the server cannot be reached.
import { newKey } from "./form-key.js";
import { draw, parsed } from "./redrawn.js";
import { keepEntered } from "./unsent.js";

const PATIENCE = 60_000;
const TWICE = 3_000; // milliseconds in which a form that was just sent is not sent again
const sent = new WeakMap(); // forms, each with the event that sent it
const KEPT = "All that you entered is still here.";
const OFFLINE = ["Not sent: you are offline.", KEPT];
const SILENT = [
  "No answer from the server.", "We don't know if it arrived. Try again: a decision is only counted once.",
];

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  const before = sent.get(form);
  if (before && !before.defaultPrevented) return event.preventDefault(); // the button was pressed twice
  form.querySelector(".not-sent")?.remove();
  if (form.elements.key) {
    event.preventDefault();
    send(form, event.submitter);
  } else if (cut()) {
    event.preventDefault();
    setTimeout(() => tell(form, event.submitter, ...OFFLINE)); // after the code that locks the form against a second press
  } else justSent(form, event); // or held back by code that comes later, and sends the form itself
});

function justSent(form, event) {
  sent.set(form, event);
  setTimeout(() => sent.delete(form), TWICE);
}

async function send(form, submitter) {
  const before = cut();
  busy(form, submitter);
  const url = submitter?.hasAttribute("formaction") ? submitter.formAction : form.getAttribute("action") ?? "";
  let answer, html;
  try {
    const [body, headers] = [new FormData(form, submitter), { "X-Tell-Redirect": "yes" }];
    answer = await fetch(url, { method: "POST", body, headers, signal: AbortSignal.timeout(PATIENCE) });
    html = await answer.text();
  } catch {
    return tell(form, submitter, ...(before ? OFFLINE : SILENT));
  }
  const next = answer.headers.get("X-Redirect-To");
  if (next) return leave(form, new URL(next, answer.url));
  const fresh = answer.status < 500 && parsed(html);
  if (fresh) return refused(form, fresh);
  const page = new DOMParser().parseFromString(html, "text/html");
  const said = ["h1", "h1 + p"].map((part) => page.querySelector(`#main ${part}`)?.textContent ?? "");
  return tell(form, submitter, said[0] ? `${said[0]}.` : answered(answer.status), said[1]);
}

// The server accepted the form, or redirects to the sign-in page because the session is over: then this browser keeps
// what was entered.
function leave(form, url) {
  if (url.pathname.startsWith("/accounts/")) keepEntered(form);
  else {
    form.dispatchEvent(new CustomEvent("hp:sent"));
    justSent(form, {});
    form.elements.key.value = newKey(); // coming back to this page and sending again is a new form
  }
  url.hash = ""; // with one, the same page would not be loaded again
  document.dispatchEvent(new CustomEvent("hp:leaving"));
  location.assign(url);
}

// The server refused the form with a page that says why.
function refused(form, fresh) {
  idle();
  form.dispatchEvent(new CustomEvent("hp:sent"));
  draw(fresh);
}

// Shown at once: a server that hangs does not answer for a minute.
function busy(form, submitter) {
  const note = document.createElement("p");
  [note.className, note.role, note.textContent] = ["sending", "status", "Sending…"];
  if (submitter && form.contains(submitter)) submitter.after(note);
  else form.append(note);
  document.dispatchEvent(new CustomEvent("hp:sending"));
}

function idle() {
  for (const note of document.querySelectorAll(".sending")) note.remove();
}

addEventListener("pageshow", (event) => event.persisted && idle());

function tell(form, submitter, lead, more) {
  idle();
  form.dispatchEvent(new CustomEvent("hp:unsent"));
  if (!form.isConnected) return;
  form.querySelector(".not-sent")?.remove();
  const note = document.createElement("div");
  [note.className, note.role] = ["notice not-sent", "alert"];
  note.dataset.tone = "hold";
  const [said, strong, words, again] = ["p", "b", "span", "button"].map((name) => document.createElement(name));
  [strong.textContent, words.textContent, again.textContent] = [lead, more, "Try again"];
  [again.type, again.className, again.dataset.size] = ["button", "button", "s"];
  again.addEventListener("click", () => sendAgain(form, submitter));
  said.append(strong, " ", words);
  note.append(said, again);
  note.submitter = submitter;
  if (submitter?.matches(".commit") && form.contains(submitter)) submitter.after(note);
  else form.append(note);
  note.scrollIntoView({ block: "nearest" });
}

// By the same button, which may stand outside the form. Of one that sends the form elsewhere, and was drawn again
// meanwhile, nothing is left to press: without it the form would be sent as a decision.
function sendAgain(form, submitter) {
  const there = submitter?.form === form;
  if (there || !submitter?.hasAttribute("formaction")) form.requestSubmit(there ? submitter : null);
  else form.querySelector(".not-sent").remove();
}

function answered(status) {
  return `Not sent: the server answered ${status}.`;
}

// Whether nothing can be reached: the browser is offline and the socket is not live. A server on this machine can be
// reached offline.
function cut() {
  return !navigator.onLine && document.querySelector("hp-live")?.dataset.live !== "on";
}

document.addEventListener("hp:live", ({ detail }) => {
  if (detail.state !== "on") return;
  const again = "You are connected again. Try again: it is only counted once.";
  for (const words of document.querySelectorAll(".not-sent span")) words.textContent = again;
});

// A gate that was closed or changed meanwhile: its form cannot be sent any more, so trying again is not offered.
document.addEventListener("htmx:after:swap", () => {
  for (const note of document.querySelectorAll(".not-sent")) if (note.submitter?.disabled) note.remove();
});

// For forms that htmx sends: the same note where a person sent the form, none where it only asked for a preview.
function failed({ detail: { ctx } }, said) {
  const button = ctx?.sourceElement?.type === "submit" && ctx.sourceElement; // one that sends the form elsewhere
  if (button) tell(button.form, button, ...said);
  else if (ctx?.sourceEvent?.type === "submit") tell(ctx.sourceElement, ctx.sourceEvent.submitter, ...said);
}

document.addEventListener("htmx:error", (event) => failed(event, navigator.onLine ? SILENT : OFFLINE));
document.addEventListener("htmx:response:error", (event) => {
  const { response, text } = event.detail.ctx;
  const refusal = parsed(text)?.querySelector("#refusal p")?.textContent.trim(); // a whole page, of which only this is news
  failed(event, refusal ? [refusal, KEPT] : [answered(response.raw.status), KEPT]);
});
document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => ctx.sourceElement.querySelector(":scope > .not-sent")?.remove());

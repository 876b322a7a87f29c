// <hp-draft>: the server keeps what is entered in a gate's form as it is entered, so that a reload, another machine or a
// sign-out loses nothing. The server renders it back. What never reached the server stays in this browser until it does.
import { fields, forget, recall, remember } from "./keeping.js";
import { clock } from "./times.js";

const PAUSE = 700;
const RETRY = 5000;
const TOKEN = "csrfmiddlewaretoken";
const BROWSER = () => localStorage;

class Draft extends HTMLElement {
  connectedCallback() {
    this.form = document.querySelector("#decision");
    this.note = this.querySelector("[data-draft-note]");
    if (!this.form) return;
    this.store = `hp-draft:${this.dataset.gate}`;
    const entered = (event) => {
      if (event.target.form !== this.form) return;
      this.entered = true;
      this.later(PAUSE);
    };
    document.addEventListener("input", entered);
    document.addEventListener("change", entered);
    this.form.addEventListener("submit", () => this.stop());
    this.form.addEventListener("hp:sent", () => forget(BROWSER, this.store));
    this.form.addEventListener("hp:unsent", () => this.resume());
    addEventListener("pagehide", () => this.waiting && this.keep({ keepalive: true }));
    addEventListener("online", () => this.waiting && this.keep());
    this.left();
  }

  // The time of the draft that this page knows, so that it overwrites no newer draft of another page. It is a field of
  // the form, so that a page which the server renders in answer to the form knows it too.
  get seen() {
    return this.form.elements.draft_seen.value;
  }

  set seen(at) {
    this.form.elements.draft_seen.value = at;
  }

  // Sends what an earlier visit could not send, and then shows the page that the server renders with it. Where the server
  // has a newer draft, this page was rendered before that was kept: by another tab, or by the request that the earlier
  // visit made as it was left. What is entered meanwhile stays: a page is never loaded again under somebody's hands.
  left() {
    const left = recall(BROWSER, this.store);
    if (document.querySelector("#refusal")) return this.later(PAUSE); // what was sent and refused is kept like any draft
    if (!left || left.seen !== this.seen) return forget(BROWSER, this.store);
    const body = new URLSearchParams(left.fields);
    body.set("draft_seen", this.seen);
    this.send(body).then((kept) => (kept || this.outdated) && !this.entered && location.reload());
  }

  later(pause) {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.keep(), pause);
  }

  stop() {
    clearTimeout(this.waiting);
    this.waiting = undefined;
    this.sent = true;
    this.cut?.abort(); // the answer to a draft that arrives after the decision would be of a form that is gone
    remember(BROWSER, this.store, { seen: this.seen, fields: fields(this.form) });
  }

  resume() {
    this.sent = false;
    this.keep();
  }

  // One at a time, as two could arrive in the other order. A page that is left has no time to wait.
  async keep(options = {}) {
    if (this.sent) return;
    clearTimeout(this.waiting);
    this.waiting = undefined;
    const body = new URLSearchParams(fields(this.form));
    remember(BROWSER, this.store, { seen: this.seen, fields: [...body] });
    if (this.sending && !options.keepalive) return this.later(PAUSE);
    await this.send(body, options);
  }

  async send(body, options = {}) {
    this.sending = true;
    try {
      return await this.post(body, options);
    } finally {
      this.sending = false; // also where the answer was cut off, or nothing would be kept from then on
    }
  }

  async post(body, options) {
    let answer;
    try {
      const headers = { accept: "application/json", "x-csrftoken": this.form.elements[TOKEN].value };
      this.cut = new AbortController();
      const { signal } = this.cut;
      answer = await fetch(this.dataset.url, { method: "POST", body, headers, redirect: "manual", signal, ...options });
    } catch {
      if (this.sent) return false;
      this.say("Draft not saved: offline");
      this.later(RETRY);
      return false;
    }
    if (answer.ok) {
      forget(BROWSER, this.store);
      const { kept_at: at, empty } = await answer.json();
      this.seen = at;
      this.say(!empty && `Draft saved, ${clock(new Date(at))}`);
      return true;
    }
    this.outdated = answer.status === 409;
    if ([403, 409, 413].includes(answer.status) && answer.headers.get("content-type") === "application/json") {
      forget(BROWSER, this.store);
      this.say((await answer.json()).problem);
    } else this.say("Draft not saved on the server. It is kept in this browser.");
    return false;
  }

  say(words) {
    this.note.textContent = words || "";
    this.note.hidden = !words;
  }
}

customElements.define("hp-draft", Draft);

// <hp-draft>: what is entered in a gate's form is kept by the server as it is entered, so that a reload, another
// machine and a sign-out cost nothing. The server renders it back; nothing is restored here but what never reached it:
// that stays in this browser until the server has it.
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
    this.seen = this.dataset.keptAt; // when the draft was kept that this page shows; another page's is not written over
    const entered = (event) => event.target.form === this.form && this.later(PAUSE);
    document.addEventListener("input", entered);
    document.addEventListener("change", entered);
    this.form.addEventListener("submit", () => this.stop());
    this.form.addEventListener("hp:sent", () => forget(BROWSER, this.store));
    this.form.addEventListener("hp:unsent", () => this.resume());
    addEventListener("pagehide", () => this.waiting && this.keep({ keepalive: true }));
    addEventListener("online", () => this.waiting && this.keep());
    this.left();
  }

  // What an earlier visit could not send: keep it now, and show the page that the server makes of it.
  left() {
    const left = recall(BROWSER, this.store);
    if (!left || left.seen !== this.seen || document.querySelector("#refusal")) return forget(BROWSER, this.store);
    this.send(new URLSearchParams(left.fields)).then((kept) => kept && location.reload());
  }

  later(pause) {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.keep(), pause);
  }

  stop() {
    clearTimeout(this.waiting);
    this.waiting = undefined;
    this.sent = true;
    remember(BROWSER, this.store, { seen: this.seen, fields: fields(this.form) });
  }

  resume() {
    this.sent = false;
    this.keep();
  }

  async keep(options = {}) {
    if (this.sent) return;
    clearTimeout(this.waiting);
    this.waiting = undefined;
    await this.send(new URLSearchParams(fields(this.form)), options);
  }

  async send(body, options = {}) {
    remember(BROWSER, this.store, { seen: this.seen, fields: [...body] });
    body.set("draft_seen", this.seen);
    let answer;
    try {
      const headers = { accept: "application/json", "x-csrftoken": this.form.elements[TOKEN].value };
      answer = await fetch(this.dataset.url, { method: "POST", body, headers, redirect: "manual", ...options });
    } catch {
      this.say("Not kept yet: no connection");
      this.later(RETRY);
      return false;
    }
    if (answer.ok) {
      forget(BROWSER, this.store);
      const { kept_at: at } = await answer.json();
      this.seen = at ?? "";
      this.say(at && `Draft kept, ${clock(new Date(at))}`);
      return true;
    }
    if ([403, 409, 413].includes(answer.status) && answer.headers.get("content-type") === "application/json") {
      forget(BROWSER, this.store);
      this.say((await answer.json()).problem);
    } else this.say("Not kept by the server; it stays in this browser");
    return false;
  }

  say(words) {
    this.note.textContent = words ?? "";
    this.note.hidden = !words;
  }
}

customElements.define("hp-draft", Draft);

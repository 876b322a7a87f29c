// <hp-live>: the socket. It carries facts ("gate 42 was decided"), never content: elements that say in
// [data-watch] what they show are fetched again through their ordinary address and morphed in by htmx.
//
// [data-watch] holds subjects ("gate:42 run:7") or kinds ending in a dot ("gate."). Such an element also has
// hx-get, hx-trigger="stale" and a morphing hx-swap. A hidden tab waits until it is looked at.
import { Polling } from "./polling.js";
import { concerns, wanted, watched } from "./watched.js";

const BACKOFF = [500, 1000, 2000, 4000, 8000, 15000];
const SILENCE = 17_000; // the server sends something every 15 s
const ANSWER = 3_000; // and answers a ping at once
const LEAVING = 3_000;
const REVOKED = 4401;

class Live extends HTMLElement {
  connectedCallback() {
    this.cursor = this.dataset.cursor;
    this.tries = 0;
    this.heard = Date.now();
    this.stale = new Set();
    this.polling = new Polling(() => this.lookAt(watched()));
    this.connect();
    document.addEventListener("visibilitychange", () => {
      this.look();
      this.watch();
    });
    document.addEventListener("htmx:after:swap", () => this.watch());
    addEventListener("pagehide", () => this.socket?.close());
    addEventListener("pageshow", (event) => event.persisted && this.connect());
    document.addEventListener("hp:leaving", () => this.leave());
    addEventListener("online", () => this.reconnect());
    addEventListener("offline", () => this.cut());
    document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => this.answered(ctx.sourceElement, ctx.response.raw.ok));
    document.addEventListener("htmx:error", ({ detail }) => this.missed(detail.ctx?.sourceElement));
    document.addEventListener("hp:sending", () => this.ask());
  }

  // The next page is on its way: what changes now is drawn there. A page that is still here after a while goes on.
  leave() {
    clearTimeout(this.leaving);
    this.leaving = setTimeout(() => {
      this.leaving = undefined;
      this.look();
    }, LEAVING);
  }

  connect() {
    clearTimeout(this.again);
    const address = new URL(this.dataset.url, location.href);
    address.protocol = location.protocol.replace("http", "ws");
    address.searchParams.set("after", this.cursor);
    address.searchParams.set("reader", document.body.dataset.reader);
    this.socket = new WebSocket(address);
    this.watched = "";
    this.socket.addEventListener("open", () => {
      this.tries = 0;
      this.watch();
      this.hear();
      this.look();
    });
    this.socket.addEventListener("message", ({ data }) => this.fact(JSON.parse(data)));
    this.socket.addEventListener("close", ({ code, target }) => target === this.socket && this.lost(code));
  }

  lost(code) {
    clearTimeout(this.quiet);
    clearTimeout(this.unanswered);
    if (code === REVOKED && !this.refused) {
      this.refused = true; // after the password was confirmed the session has a new key, which this browser already has
      return this.connect();
    }
    if (code === REVOKED) {
      this.polling.stop();
      this.say("off", "Signed out", ": reload the page to continue");
      return;
    }
    const wait = BACKOFF[Math.min(this.tries++, BACKOFF.length - 1)] * (0.75 + Math.random() / 2);
    this.cut();
    this.again = setTimeout(() => this.connect(), wait);
  }

  cut() {
    if (navigator.onLine) this.polling.start();
    else this.polling.stop();
    if (navigator.onLine) this.say("paused", "Paused", ": reconnecting to live updates");
    else this.say("offline", "Offline", ": this browser has no connection");
  }

  // A socket that was open when the network failed may be dead without noticing.
  reconnect() {
    const old = this.socket;
    this.connect();
    old.close();
  }

  // An element that could not be fetched is still stale when the connection is back.
  missed(element) {
    if (!element?.matches?.("[data-watch]")) return;
    this.stale.add(element);
    this.answered(element, false);
  }

  // Without the socket the page is as old as the last poll that was answered.
  answered(element, well) {
    if (this.dataset.live !== "paused" || !element?.matches?.("[data-watch]")) return;
    this.polling.works = well && this.polling.looked; // an answer to a request from before the socket failed does not count
    if (well) this.heard = Date.now();
    this.tell();
  }

  // A connection can die, or a server hang, silently. Pings the server, and reconnects if no answer comes.
  ask() {
    if (this.socket.readyState !== WebSocket.OPEN) return;
    this.socket.send('{"ping": true}');
    clearTimeout(this.unanswered);
    this.unanswered = setTimeout(() => {
      this.cut();
      this.reconnect();
    }, ANSWER);
  }

  hear() {
    this.heard = Date.now();
    clearTimeout(this.unanswered);
    this.polling.stop();
    this.say("on", "Live", ": changes appear as they happen");
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => this.ask(), SILENCE);
  }

  fact(fact) {
    this.refused = false;
    this.hear();
    if (fact.cursor) this.cursor = fact.cursor;
    if (fact.kind === "heartbeat") return this.lookAround();
    document.dispatchEvent(new CustomEvent("hp:fact", { detail: fact }));
    this.lookAt(watched().filter((element) => concerns(element, fact)));
  }

  // Somebody who was cut off sends no goodbye: while anybody is shown as present, check whether they still are.
  lookAround() {
    this.lookAt(document.querySelectorAll("[data-watch^='looking:']:has(.avatar)"));
  }

  lookAt(elements) {
    for (const element of elements) this.stale.add(element);
    this.look();
  }

  // Several facts at once cause one fetch; the random delay keeps many browsers from fetching at the same time.
  look() {
    if (document.visibilityState !== "visible" || !this.stale.size || this.pending || this.leaving) return;
    this.pending = setTimeout(() => {
      this.pending = undefined;
      if (this.leaving) return;
      const stale = [...this.stale].filter((element) => element.isConnected);
      this.stale.clear();
      for (const element of stale) htmx.trigger(element, "stale", {}, false);
    }, 30 + Math.random() * 120);
  }

  watch() {
    const said = wanted();
    if (said === this.watched || this.socket.readyState !== WebSocket.OPEN) return;
    this.watched = said;
    this.socket.send(said);
  }

  say(state, word, more) {
    if (this.dataset.live === state && this.said) return;
    [this.dataset.live, this.said] = [state, true];
    const [shown, said] = [document.createElement("span"), document.createElement("span")];
    [shown.textContent, said.textContent, said.className] = [word, more, "sr"];
    this.replaceChildren(shown, said);
    this.tell();
  }

  tell() {
    const detail = { state: this.dataset.live, heard: this.heard, polled: this.polling.works };
    document.dispatchEvent(new CustomEvent("hp:live", { detail }));
  }
}

customElements.define("hp-live", Live);

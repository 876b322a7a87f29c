// <hp-push>: turns pushed messages on and off in this browser, on the page of notification settings. The server renders
// a line for each state; [data-push] says which one holds.
import "./install.js";
import { note, register, unsubscribe } from "./installed.js";

class Push extends HTMLElement {
  connectedCallback() {
    this.form = this.querySelector("form");
    this.said = this.querySelector("[role=status]");
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.turnOn().catch(() => this.say("This browser could not be turned on. Try again."));
    });
    document.addEventListener("submit", (event) => this.leaving(event));
    this.begin().catch(() => this.turn("off"));
  }

  async begin() {
    if (!navigator.serviceWorker || !globalThis.PushManager || !globalThis.Notification) {
      // Only the installed app has them on an iPhone or iPad, where `standalone` tells whether this is it.
      return this.turn(navigator.standalone === false ? "install" : "unsupported");
    }
    if (Notification.permission === "denied") return this.turn("denied");
    const known = await (await navigator.serviceWorker.getRegistration("/"))?.pushManager.getSubscription();
    if (!known || Notification.permission !== "granted") return this.turn("off");
    if (!sameKey(known, this.dataset.key)) return this.turnOn(); // this installation has a new key
    await this.send(known, { again: "1" }); // its owner may have removed it elsewhere
  }

  async turnOn() {
    this.say("");
    if ((await Notification.requestPermission()) !== "granted") {
      return this.turn(Notification.permission === "denied" ? "denied" : "off");
    }
    await register();
    const ready = await navigator.serviceWorker.ready;
    const known = await ready.pushManager.getSubscription();
    if (known && !sameKey(known, this.dataset.key)) await known.unsubscribe();
    const options = { userVisibleOnly: true, applicationServerKey: bytes(this.dataset.key) };
    await this.send(await ready.pushManager.subscribe(options));
  }

  async send(subscription, more = {}) {
    const { endpoint, keys } = subscription.toJSON();
    const body = new FormData(this.form);
    for (const [name, value] of Object.entries({ endpoint, ...keys, ...more })) body.set(name, value);
    const answer = await fetch(this.form.action, { method: "POST", body, headers: { Accept: "application/json" } });
    if (answer.redirected) return location.reload(); // signed out
    const told = await answer.json();
    if (answer.ok) {
      await note(endpoint);
      return this.on(told.browser, !more.again);
    }
    await unsubscribe();
    this.turn("off");
    if (!more.again) this.say(told.problem);
  }

  // The list is the server's: a browser that is new in it is drawn by loading the page again.
  on(browser, fresh) {
    this.row = document.querySelector(`#browser-${browser}`);
    if (fresh && !this.row) return location.reload();
    this.row?.setAttribute("data-here", "");
    this.turn("on");
  }

  async leaving(event) {
    const form = event.target;
    if (form.left || !this.row?.contains(form)) return;
    event.preventDefault();
    form.left = true;
    await unsubscribe().catch(() => {});
    form.requestSubmit();
  }

  turn(state) {
    this.dataset.push = state;
  }

  say(words) {
    this.said.textContent = words;
  }
}

function bytes(key) {
  const text = atob(key.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(text, (char) => char.codePointAt());
}

function sameKey(subscription, key) {
  const its = new Uint8Array(subscription.options.applicationServerKey ?? []);
  const ours = bytes(key);
  return its.length === ours.length && its.every((byte, at) => byte === ours[at]);
}

customElements.define("hp-push", Push);

// The parts of a typed form that only the server can render: a list with one more item, the fields of another branch.
// A button of the form posts all of it, with or without script; with script, only this part comes back and replaces the
// old one. What was typed meanwhile is put into the new one. One change is asked for at a time, on the form as the one
// before left it, and nothing else is sent until all are answered: until then the form lacks what was just changed.
const PATIENCE = 60_000;

export class Parts {
  constructor(scope, form, refreshed) {
    [this.form, this.refreshed, this.asked] = [form, refreshed, []]; // the changes that have no answer yet, oldest first
    scope.addEventListener("click", (event) => this.pressed(event, event.target.closest("[data-change]")));
    scope.addEventListener("change", (event) => this.switched(event.target));
    scope.addEventListener("keydown", (event) => this.enter(event));
    scope.addEventListener("submit", (event) => this.hold(event), { capture: true });
  }

  // Enter in a field sends nothing: the form's first button is disabled. But in a choice or a date, Chromium presses the
  // next one that is not.
  enter(event) {
    const { form, type } = event.target;
    if (event.key === "Enter" && form === this.form && /^(radio|checkbox|date|time|datetime-local)$/.test(type)) event.preventDefault();
  }

  pressed(event, button) {
    if (!button || !button.closest(".action-form")) return;
    event.preventDefault();
    this.ask(button, button.id);
  }

  switched(field) {
    const file = field.type === "file" && field.value && field.closest(".file");
    if (!file && !field.matches("[data-switch]")) return;
    this.ask((file || field.closest(".switch")).querySelector("[data-change]"), field.id);
  }

  ask(button, focus) {
    const part = button.closest(".action-form");
    part.setAttribute("aria-busy", "true");
    this.asked.push({ part: part.id, change: button.value, address: button.formAction, focus });
    if (this.asked.length === 1) this.work();
  }

  async work() {
    while (this.asked.length) {
      const { part, change, address, focus } = this.asked[0];
      const body = new FormData(this.form);
      body.set("change", change);
      const [fresh, old] = [await rendered(address, body).catch(() => null), document.getElementById(part)];
      if (!this.form.isConnected) return; // the whole page was drawn anew
      if (!fresh || !old) return this.failed(change);
      this.asked.shift();
      this.put(old, fresh, body, focus);
    }
    this.release(true);
  }

  // Sends the form to the page of the change alone, which says what is wrong. What was held back is not sent.
  failed(change) {
    for (const { part } of this.asked) document.getElementById(part)?.removeAttribute("aria-busy");
    this.asked = [];
    this.release(false);
    const button = [...this.form.elements].find((each) => each.matches("[data-change]") && each.value === change);
    if (button) this.form.requestSubmit(button);
  }

  hold(event) {
    if (event.target !== this.form || !this.asked.length) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    this.held?.removeAttribute("aria-busy");
    this.held = event.submitter;
    this.held?.setAttribute("aria-busy", "true");
  }

  release(sends) {
    const button = this.held;
    this.held = undefined;
    button?.removeAttribute("aria-busy");
    if (sends && button?.form === this.form) this.form.requestSubmit(button);
  }

  put(part, fresh, sent, focus) {
    const typed = [...part.querySelectorAll("input:not([type=hidden], [type=file]), textarea, select")];
    const late = new Map(typed.filter((field) => entered(field) !== posted(sent, field)).map((field) => [place(field), entered(field)]));
    const open = [...part.querySelectorAll("details[open][id]")].map((each) => each.id);
    const reads = part.contains(document.activeElement) || document.activeElement === document.body;
    const chosen = [...part.querySelectorAll("input[type=file]")].filter((field) => field.value && sent.get(field.name) !== field.files[0]);
    if (this.asked.some((each) => each.part === part.id)) fresh.setAttribute("aria-busy", "true");
    part.replaceWith(fresh);
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    for (const field of fresh.querySelectorAll("input, textarea, select")) {
      if (late.has(place(field))) field[ticks(field) ? "checked" : "value"] = late.get(place(field));
    }
    for (const { name, files } of chosen) Object.assign(fresh.querySelector(`[name="${CSS.escape(name)}"]`) ?? {}, { files });
    const next = document.getElementById(focus);
    if (reads) (next && !next.disabled ? next : this.near(fresh, focus))?.focus({ preventScroll: Boolean(next) });
    this.refreshed();
  }

  // A removed item's button is gone; in a new item the reader goes on typing.
  near(fresh, focus) {
    return fresh.querySelector(`#${CSS.escape(focus)} ~ *, [data-edited] .input`) ?? fresh.querySelector("[data-change]:not(:disabled)");
  }
}

// The put-back button of an item: its inputs show again what was proposed.
export function putBack({ target }) {
  const fields = [...(target.closest("[data-put-back]")?.closest(".item").querySelectorAll(".input") ?? [])];
  for (const field of fields) {
    field.value = original(field);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
  fields[0]?.focus();
}

async function rendered(address, body) {
  const signal = AbortSignal.timeout(PATIENCE);
  const answer = await fetch(address, { method: "POST", body, headers: { "X-Fragment": "form" }, signal });
  const html = answer.ok && !answer.redirected ? await answer.text() : "";
  return new DOMParser().parseFromString(html, "text/html").querySelector(".action-form");
}

function ticks(field) {
  return field.type === "checkbox";
}

// Names a field of a part that is drawn anew.
function place(field) {
  return ticks(field) ? `${field.name}=${field.value}` : field.name;
}

function posted(form, field) {
  return ticks(field) ? form.getAll(field.name).includes(field.value) : form.get(field.name);
}

function entered(field) {
  return ticks(field) ? field.checked : field.value;
}

// The proposed value of a field, as its own input writes it: a browser leaves out seconds that are zero.
export function original(field) {
  if (ticks(field)) return field.defaultChecked;
  const was = field.dataset.was ?? field.defaultValue;
  if (!/^(datetime-local|time|date)$/.test(field.type)) return was;
  const probe = document.createElement("input");
  [probe.type, probe.value] = [field.type, was];
  return probe.value;
}

export function changed(field) {
  return entered(field) !== original(field);
}

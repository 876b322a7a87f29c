// The parts of a typed form that only the server can render: a list with one more item, the fields of another branch.
// A button of the form posts all of it, with or without script; with script, only this form comes back and replaces the
// old one. What was typed meanwhile is put into the new one.
export class Parts {
  constructor(scope, form, refreshed) {
    [this.scope, this.form, this.refreshed] = [scope, form, refreshed];
    scope.addEventListener("click", (event) => this.pressed(event, event.target.closest("[data-change]")));
    scope.addEventListener("change", (event) => this.switched(event.target));
    scope.addEventListener("keydown", (event) => this.enter(event));
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
    this.fetch(button.closest(".action-form"), button, { change: button.value });
  }

  switched(field) {
    const file = field.type === "file" && field.value && field.closest(".file");
    if (!file && !field.matches("[data-switch]")) return;
    const button = (file || field.closest(".switch")).querySelector("[data-change]");
    this.fetch(field.closest(".action-form"), button, { change: button.value }, field.id);
  }

  async fetch(part, button, values, focus = button.id) {
    const body = new FormData(this.form);
    for (const [name, value] of Object.entries(values)) body.set(name, value);
    part.setAttribute("aria-busy", "true");
    const answer = await fetch(button.formAction, { method: "POST", body, headers: { "X-Fragment": "form" } }).catch(() => null);
    if (!answer) part.removeAttribute("aria-busy");
    if (!answer?.ok || answer.redirected) return this.form.requestSubmit(button); // which says what is wrong
    this.put(part, await answer.text(), body, focus);
  }

  put(part, text, sent, focus) {
    const typed = [...part.querySelectorAll("input:not([type=hidden], [type=file]), textarea, select")];
    const late = new Map(typed.filter((field) => sent.get(field.name) !== field.value).map((field) => [field.name, field.value]));
    const open = [...part.querySelectorAll("details[open][id]")].map((each) => each.id);
    const fresh = new DOMParser().parseFromString(text, "text/html").querySelector(".action-form");
    part.replaceWith(fresh);
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    for (const field of fresh.querySelectorAll("input, textarea, select")) if (late.has(field.name)) field.value = late.get(field.name);
    const next = document.getElementById(focus);
    (next && !next.disabled ? next : this.near(fresh, focus))?.focus({ preventScroll: Boolean(next) });
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

function ticks(field) {
  return field.type === "checkbox";
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

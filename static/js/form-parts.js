// The parts of a typed form that only the server can draw: a list with an item more, the fields of another branch.
// A button of the form posts all of it, here as without script; here only the one form comes back and takes the
// place of the old. What was typed while it was on its way is put into the new one.
export class Parts {
  constructor(scope, form, refreshed) {
    [this.scope, this.form, this.refreshed] = [scope, form, refreshed];
    scope.addEventListener("click", (event) => this.pressed(event, event.target.closest("[data-change]")));
    scope.addEventListener("change", (event) => this.switched(event.target));
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

  // After an item was taken out its button is gone; a new item is where one goes on typing.
  near(fresh, focus) {
    return fresh.querySelector(`#${CSS.escape(focus)} ~ *, [data-edited] .input`) ?? fresh.querySelector("[data-change]:not(:disabled)");
  }
}

// A press of "put back": the inputs of its item say again what was proposed.
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

// What a field held as it was proposed, in the words of its own input: a browser leaves out seconds that are zero.
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

// What was entered but not sent when the session ended is kept in this tab during the sign-in, and put back into the page
// once the same person is back. A gate's decision is a draft, which the server keeps. The server renders a form with
// [data-redraw] again with its values; any other form is filled in here.
import { fields, forget, recall, remember } from "./keeping.js";
import { draw, parsed } from "./redrawn.js";

const TAB = () => sessionStorage;
const name = () => `hp-unsent:${location.pathname}${location.search}`; // a run's page changes its own address
const entered = new WeakSet();
let over = false;

for (const kind of ["input", "change"]) document.addEventListener(kind, ({ target }) => entered.add(target.form ?? target));
document.addEventListener("hp:live", ({ detail }) => (over = detail.state === "off"));
addEventListener("pagehide", () => over && keepEntered()); // the page asked for a reload, and got one

// Call before the page goes to the sign-in page; `sent` is the form that led there.
export function keepEntered(sent) {
  const forms = [...document.querySelectorAll("#main form[method=post]:not(#decision)")];
  const kept = forms.filter((form) => form === sent || entered.has(form) || (form.dataset.redraw && form.closest("[data-redrawn]")));
  const said = kept.map((form) => ({ action: form.getAttribute("action"), redraw: form.dataset.redraw, fields: fields(form) }));
  if (said.length) remember(TAB, name(), { reader: document.body.dataset.reader, forms: said });
}

async function putBack() {
  const left = recall(TAB, name());
  const { reader } = document.body.dataset;
  if (!left || !reader) return;
  forget(TAB, name());
  if (left.reader !== reader) return;
  const unreached = [];
  for (const each of left.forms.filter(({ redraw }) => redraw)) if (!(await redrawn(each))) unreached.push(each);
  for (const each of left.forms.filter(({ redraw }) => !redraw)) fill(each);
  if (unreached.length) remember(TAB, name(), { reader, forms: unreached });
}

// Returns whether the server was reached: a form that it does not render now, it would not render next time either.
async function redrawn({ redraw, fields: said }) {
  const body = new FormData();
  for (const [name, value] of said) body.append(name, value);
  body.set("change", "none");
  body.set("csrfmiddlewaretoken", document.getElementsByName("csrfmiddlewaretoken")[0].value);
  const answer = await fetch(redraw, { method: "POST", body }).catch(() => null);
  const fresh = answer?.ok && !answer.redirected ? parsed(await answer.text()) : null;
  if (fresh) draw(fresh);
  return Boolean(answer);
}

function fill({ action, fields: said }) {
  const form = [...document.querySelectorAll("#main form[method=post]")].find((each) => each.getAttribute("action") === action);
  const open = [...(form?.elements ?? [])].filter((field) => field.name && !/^(hidden|file|password|submit|button)$/.test(field.type));
  const changed = open.filter((field) => put(field, said.filter(([name]) => name === field.name).map(([, value]) => value)));
  for (const field of changed) {
    field.dispatchEvent(new Event("input", { bubbles: true }));
    for (let part = field.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  }
  changed[0]?.focus();
}

// Returns whether this changed the field.
function put(field, values) {
  const before = [field.checked, field.value];
  if (/^(checkbox|radio)$/.test(field.type)) field.checked = values.includes(field.value);
  else if (values.length) [field.value] = values;
  return before[0] !== field.checked || before[1] !== field.value;
}

putBack();

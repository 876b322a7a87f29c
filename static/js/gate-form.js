// <hp-gate-form>: what the decision form does beyond plain HTML. Typing in a field selects Edit and shows the
// difference; "put back" undoes it; a draft is kept in this browser per gate, proposal and person. The server
// renders the same differences after a submit: nothing here decides anything.
import { difference } from "./difference.js";
import { Draft } from "./draft.js";
import { mirror, nameAmounts } from "./pinned.js";

class GateForm extends HTMLElement {
  connectedCallback() {
    this.form = this.querySelector("#decision");
    if (!this.form) return;
    const { gate, proposal, person } = this.dataset;
    this.draft = new Draft(`hp-draft:${person}:${gate}`, proposal);
    this.originals = new Map(this.fields().map((field) => [field.name, field.dataset.was ?? field.defaultValue]));
    this.addEventListener("input", (event) => this.typed(event.target));
    this.addEventListener("change", (event) => this.typed(event.target));
    this.addEventListener("click", (event) => this.clicked(event));
    this.form.addEventListener("submit", () => this.sending());
    addEventListener("pageshow", (event) => event.persisted && this.unlock());
    document.addEventListener("click", (event) => this.choose(event, event.target.closest("[data-choose]")));
    document.addEventListener("htmx:after:swap", () => this.closed());
    this.restore();
    for (const field of this.fields()) this.show(field);
  }

  // The fields of the actions; the rest of the form (comment, feedback, ticks) is kept in the draft only.
  fields() {
    return [...this.form.elements].filter((field) => field.name?.startsWith("args."));
  }

  kept() {
    const rest = [...this.form.elements].filter((field) => field.matches("textarea, input[type=text], input[type=checkbox]"));
    return [...new Set([...this.fields(), ...rest])].filter((field) => field.name);
  }

  original(field) {
    return ticks(field) ? field.defaultChecked : this.originals.get(field.name) ?? field.defaultValue;
  }

  typed(field) {
    if (!this.kept().includes(field)) return;
    if (this.fields().includes(field)) {
      this.show(field);
      const edit = this.form.querySelector('[name="verdict"][value="edit"]');
      const edited = this.fields().some((each) => this.changed(each));
      if (edit && edited && !this.rejecting()) edit.checked = true;
      if (edit?.checked && !edited) edit.checked = false;
    }
    const unsent = this.kept().filter((each) => this.changed(each));
    this.draft.keep(Object.fromEntries(unsent.map((each) => [each.name, entered(each)])));
    this.say(unsent.length ? "Draft kept in this browser" : "");
  }

  rejecting() {
    return this.form.querySelector('[name="verdict"][value="reject"]')?.checked;
  }

  changed(field) {
    return entered(field) !== this.original(field);
  }

  show(field) {
    const item = field.closest(".item");
    const changed = this.changed(field);
    item.toggleAttribute("data-edited", changed);
    item.querySelector("[data-edit-tag]").hidden = !changed;
    item.querySelector("[data-put-back]").hidden = !changed;
    const note = item.querySelector("[data-note]");
    note.dataset.asProposed ??= note.querySelector(".was") ? "as proposed" : note.textContent;
    note.replaceChildren(...(changed ? [difference(this.original(field), field.value)] : [note.dataset.asProposed]));
    mirror(this, field, this.original(field), changed);
    nameAmounts(this, this.fields().filter((each) => this.changed(each)));
    const action = field.closest(".action");
    if (action) {
      const edited = this.fields().some((each) => action.contains(each) && this.changed(each));
      action.toggleAttribute("data-verdict", edited);
      if (edited) action.dataset.verdict = "edit";
    }
  }

  clicked(event) {
    const button = event.target.closest("[data-put-back]");
    if (!button) return;
    const field = button.closest(".item").querySelector(".input");
    field.value = this.original(field);
    this.typed(field);
    field.focus();
  }

  choose(event, link) {
    const radio = link && this.form.querySelector(`[name="verdict"][value="${link.dataset.choose}"]`);
    if (radio) radio.checked = true;
    const field = radio?.value === "edit" && this.fields()[0];
    if (!field) return;
    event.preventDefault();
    field.closest("details")?.setAttribute("open", "");
    field.focus({ preventScroll: true });
    field.closest(".item").scrollIntoView({ block: "center" });
  }

  restore() {
    const { values, older } = this.draft.read();
    const refused = document.querySelector("#refusal"); // the server has rendered what was typed
    if (refused) return;
    for (const field of this.kept()) {
      if (!(field.name in values)) continue;
      if (ticks(field)) field.checked = values[field.name];
      else field.value = values[field.name];
    }
    const any = this.kept().some((field) => this.changed(field));
    if (any) {
      if (this.fields().some((field) => this.changed(field))) this.typed(this.fields().find((field) => this.changed(field)));
      this.say(older ? "Your draft of an earlier version was put in" : "Your draft was put back");
    }
  }

  say(words) {
    const note = this.querySelector("[data-draft]");
    if (!note) return;
    note.textContent = words;
    note.hidden = !words;
  }

  // Twice pressed is once sent. The draft goes when the server's answer shows that it was taken.
  sending() {
    this.draft.sent();
    setTimeout(() => this.lock(true));
  }

  unlock() {
    this.lock(false);
  }

  lock(locked) {
    for (const button of this.form.querySelectorAll("[data-commit]")) button.disabled = locked;
  }

  // A live morph says that the gate is closed, or another version stands: then nothing here can be sent.
  closed() {
    const news = document.querySelector("#gate-news");
    if (news?.dataset.status === "open") return;
    this.lock(true);
    for (const field of this.kept()) field.readOnly = true; // readable and to be copied, never sent
    for (const choice of this.form.querySelectorAll("[type=radio], [type=checkbox]")) choice.disabled = true;
  }
}

function ticks(field) {
  return field.type === "checkbox";
}

function entered(field) {
  return ticks(field) ? field.checked : field.value;
}

customElements.define("hp-gate-form", GateForm);

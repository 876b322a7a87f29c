// <hp-gate-form>: what the decision form does beyond plain HTML. Typing in a field selects Edit and shows the
// difference; the put-back button undoes it. The server renders the same differences after a submit: nothing is decided
// here.
import { Ballots } from "./ballots.js";
import { tell } from "./difference.js";
import { Faults } from "./field-faults.js";
import { changed, original, Parts, putBack } from "./form-parts.js";
import { Need } from "./need.js";
import { mirror, outdated } from "./pinned.js";
import { Says } from "./says.js";

class GateForm extends HTMLElement {
  connectedCallback() {
    this.form = this.querySelector("#decision");
    if (!this.form) return;
    this.ballots = new Ballots(this, this.form, (section) => this.edits(section));
    this.faults = new Faults(this);
    this.parts = new Parts(this, this.form, () => this.refreshed());
    this.addEventListener("input", (event) => this.entered(event.target, (field) => this.typed(field)));
    this.addEventListener("change", (event) => this.entered(event.target, (field) => this.changes(field)));
    this.addEventListener("click", putBack);
    this.form.addEventListener("submit", () => this.sending());
    this.form.addEventListener("hp:unsent", () => this.unlock());
    addEventListener("pageshow", (event) => event.persisted && this.unlock());
    document.addEventListener("click", (event) => this.choose(event, event.target.closest("[data-choose]")));
    document.addEventListener("htmx:after:swap", () => [this.closed(), this.says.show()]);
    for (const field of this.fields()) this.show(field);
    this.answer(this.form.querySelector("[data-sends]:checked"));
    this.says = new Says(this.form);
    this.need = new Need(this.form, this.ballots);
  }

  // The fields of the actions, with the order of their lists, and the whole state.
  fields() {
    return [...this.form.elements].filter((field) => /^(args\.|state$)/.test(field.name) && "was" in field.dataset);
  }

  // The boxes that leave a part of an action out: ticking one is an edit too.
  boxes() {
    return [...this.form.elements].filter((field) => /^(drop|restore)\./.test(field.name));
  }

  entered(field, follow) {
    follow(field);
    this.says.entered();
    if (field.name === "verdict") this.reason(field.value);
    this.need.show();
  }

  // A comment that was written before choosing Reject becomes the reason.
  reason(verdict) {
    const { feedback, comment } = this.form.elements;
    if (verdict === "reject" && feedback && !feedback.value.trim()) feedback.value = comment.value;
  }

  // Shows on the button which answer it sends.
  answer(radio) {
    if (radio?.dataset.sends) this.form.querySelector('[data-commit][data-for="answer"] span').textContent = radio.dataset.sends;
  }

  changes(field) {
    this.answer(field);
    if (field.type === "radio") this.ballots.follow(field);
    if (field.name === "verdict" && field.value === "approve") this.asEdit();
    this.typed(field);
  }

  typed(field) {
    if (this.boxes().includes(field)) {
      this.ballots.follow(field);
      this.asEdit();
    }
    if (!this.fields().includes(field)) return;
    this.show(field);
    this.ballots.follow(field);
    this.asEdit();
  }

  // An approval of changed values is an edit, and is shown as one.
  asEdit() {
    const edit = this.form.querySelector('[name="verdict"][value="edit"]');
    const edited = this.fields().some((each) => changed(each)) || this.boxes().some((each) => each.checked);
    if (edit && edited && !this.rejecting()) edit.checked = true;
    if (edit?.checked && !edited) edit.checked = false;
  }

  rejecting() {
    return this.form.querySelector('[name="verdict"][value="reject"]')?.checked;
  }

  show(field) {
    tell(field);
    mirror(this, field, original(field), changed(field));
    const edited = this.fields().filter((each) => changed(each));
    outdated(this, edited);
    const action = field.closest(".action");
    if (!action || action.querySelector("[data-ballot]")) return; // its own verdict is shown instead
    action.toggleAttribute("data-verdict", false);
    if (this.edits(action)) action.dataset.verdict = "edit";
  }

  edits(action) {
    const boxes = this.boxes().some((each) => action?.contains(each) && each.checked);
    return boxes || this.fields().some((each) => action?.contains(each) && changed(each));
  }

  // The server rendered a part of the form again: the inputs are new, their values are not.
  refreshed() {
    for (const field of this.fields()) this.show(field);
    const any = this.fields().find((field) => changed(field));
    this.typed(any ?? this.fields()[0]);
    (any ?? this.fields()[0])?.dispatchEvent(new Event("input", { bubbles: true }));
  }

  choose(event, link) {
    const radio = link && this.form.querySelector(`[name="verdict"][value="${link.dataset.choose}"]`);
    if (radio && !radio.checked) radio.click();
    const field = radio?.value === "edit" && this.fields().find((each) => each.type !== "hidden");
    if (!field) return;
    event.preventDefault();
    field.closest("details")?.setAttribute("open", "");
    field.focus({ preventScroll: true });
    field.closest(".item").scrollIntoView({ block: "center" });
  }

  // Pressing twice sends once.
  sending() {
    this.locking = setTimeout(() => this.lock(true));
  }

  unlock() {
    this.lock(false);
    this.closed();
  }

  lock(locked) {
    clearTimeout(this.locking); // it may come back before it was locked
    for (const button of this.form.querySelectorAll("[data-commit]")) button.disabled = locked;
  }

  // When a live update says that the gate is closed or has changed, nothing here can be sent any more.
  closed() {
    const news = document.querySelector("#gate-news");
    if (!news || news.dataset.status === "open") return;
    this.lock(true);
    for (const field of this.form.elements) field.readOnly = true; // readable and to be copied, never sent
    for (const choice of this.form.querySelectorAll("[type=radio], [type=checkbox]")) choice.disabled = true;
  }
}

customElements.define("hp-gate-form", GateForm);

import { changed } from "./form-parts.js";

// What a decision still lacks before it can be sent: the large button says it, and leads there instead of sending.
// The server checks the same after a submit.
export class Need {
  constructor(form, ballots) {
    [this.form, this.ballots] = [form, ballots];
    this.button = form.querySelector("[data-need]");
    this.button.addEventListener("click", () => this.go());
    this.show();
  }

  show() {
    const [words, field] = this.first() ?? [];
    this.field = field;
    this.button.hidden = !words;
    if (words) this.button.firstElementChild.textContent = `${words} →`;
  }

  first() {
    const { value: verdict } = this.form.querySelector('[name="verdict"]:checked') ?? {};
    if (verdict === "reject") return this.ofRejection();
    if (verdict === "edit") return this.ofMissing();
    return verdict === "each" ? this.ballots.need() : undefined;
  }

  // If the proposal cannot be approved without an edit: the first required value that is empty or unchanged.
  ofMissing() {
    if (this.form.querySelector('[name="verdict"][value="approve"]')) return undefined;
    const fields = [...this.form.elements].filter((field) => field.closest("[data-missing]") && "was" in field.dataset);
    const lacking = fields.find((field) => !field.value.trim() || !changed(field));
    const name = lacking?.labels[0]?.textContent.trim() || "what is missing";
    return lacking && [`Fill in: ${name}`, lacking];
  }

  ofRejection() {
    const [reason, then] = ["#feedback", '[name="then"]:checked'].map((each) => this.form.querySelector(each));
    if (then?.value === "override") return undefined;
    if ("required" in reason.dataset && ![reason, ...this.ballots.reasons()].some((each) => each.value.trim())) {
      return ["Write a reason to reject", reason];
    }
    return then ? undefined : ["Choose what happens next", this.form.querySelector('[name="then"]')];
  }

  go() {
    const part = this.field.closest(".action, .item, .option") ?? this.field;
    this.field.focus({ preventScroll: true });
    part.scrollIntoView({ block: "nearest" });
  }
}

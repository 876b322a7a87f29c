// What a decision still lacks before it can be sent: the large button says it, and goes there in the place of sending.
// The server asks for the same, and says so after a submit.
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
    return verdict === "each" ? this.ballots.need() : undefined;
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

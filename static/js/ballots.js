// Where a gate asks about several actions, each has its own choice: these follow what is chosen. All alike is one
// choice about all of them; anything else is "one by one". Who changes a field and has chosen nothing, or approves all,
// approves the rest: the large button says so before it is pressed.
const WORDS = { approve: "Approve", edit: "Edit", reject: "Reject", respond: "Answer instead" };

export class Ballots {
  constructor(root, form, edited) {
    [this.root, this.form, this.edited] = [root, form, edited]; // edited(section): whether its fields are changed
    this.sections = [...root.querySelectorAll(".action:has([data-ballot])")];
    this.standing = new Map(this.sections.map((one) => [one, one.querySelector(".settled")?.dataset.verdict]));
    const pressed = form.querySelector('[name="verdict"]:checked')?.value;
    this.all = pressed ?? (this.sections.some((one) => this.chosen(one) && !this.standing.get(one)) ? "each" : "");
    if (this.sections.length) this.show();
  }

  // Something was clicked, or typed in a field of an action.
  follow(target) {
    if (!this.sections.length) return;
    if (target.matches("[data-ballot]")) this.press("each", true);
    else if (target.name === "verdict") this.press(target.value, target.value === "approve" && this.sections.some(this.edited));
    else if (target.closest(".action")) this.edit(target.closest(".action"));
    this.show();
  }

  press(all, mixed) {
    this.all = all;
    if (all !== "each") for (const section of this.sections) this.choose(section, this.alike(section));
    if (mixed) this.together();
  }

  // What becomes of one where all are meant. Whoever approves what stands agrees to what others have refused too.
  alike(section) {
    if (this.all === "reject") return "reject";
    if (this.edited(section)) return "edit";
    return this.standing.get(section) ?? (this.all || this.sections.some(this.edited) ? "approve" : "");
  }

  chosen(section) {
    return section.querySelector("[data-ballot]:checked")?.value ?? "";
  }

  choose(section, value) {
    const radio = section.querySelector(`[data-ballot][value="${value}"]`);
    if (radio) radio.checked = true;
    else for (const each of section.querySelectorAll("[data-ballot]")) each.checked = false;
  }

  edit(section) {
    const [now, edited] = [this.chosen(section), this.edited(section)];
    if (["", "approve"].includes(this.all)) for (const each of this.sections) this.choose(each, this.alike(each));
    else if (edited && ["", "approve"].includes(now)) this.choose(section, "edit");
    else if (!edited && now === "edit") this.choose(section, "");
    this.together();
  }

  together() {
    const all = this.sections.map((section) => this.chosen(section));
    const alike = all.every((each) => each === all[0]) && ["approve", "reject"].includes(all[0]);
    const revived = all[0] === "approve" && this.sections.some((section) => this.standing.get(section));
    const said = alike && !revived ? all[0] : all.some(Boolean) || this.all ? "each" : "";
    for (const one of this.form.querySelectorAll('[name="verdict"]')) one.checked = one.value === said;
  }

  show() {
    const all = this.sections.map((section) => this.chosen(section));
    this.sections.forEach((section, at) => {
      if (all[at]) section.dataset.verdict = all[at];
      else delete section.dataset.verdict;
      const tally = this.form.querySelector(`[data-tally="${CSS.escape(section.dataset.action)}"]`);
      if (!tally) return;
      tally.textContent = WORDS[all[at]] ?? "not decided";
      tally.dataset.status = { approve: "approved", edit: "edited", reject: "rejected", respond: "edited" }[all[at]] ?? "open";
    });
    // Whoever rejects all writes one reason; what was written of one of them before stays in sight.
    for (const reason of this.reasons()) reason.parentElement.hidden = this.all === "reject" && !reason.value.trim();
    const words = this.form.querySelector('[data-for="each"] [data-says-plain]'); // until the server's come
    const approves = all.every((each) => ["approve", "edit"].includes(each));
    if (words) words.textContent = approves ? (all.includes("edit") ? "Approve with edit" : "Approve") : "Send these verdicts";
  }

  // What is still to be said of one of them, and where.
  need() {
    const open = this.sections.filter((section) => !this.chosen(section));
    const words = `${open.length} action${open.length === 1 ? " still needs" : "s still need"} a verdict`;
    if (open.length) return [words, open[0].querySelector("[data-ballot]")];
    const empty = this.sections.find((section) => this.words(section)?.value.trim() === "");
    if (!empty) return undefined;
    const what = this.chosen(empty) === "reject" ? "a reason" : "the answer";
    return [`Write ${what} for action ${this.sections.indexOf(empty) + 1}`, this.words(empty)];
  }

  // The field for the words that its verdict needs; none where those of others stand.
  words(section) {
    const verdict = this.chosen(section);
    if (verdict === this.standing.get(section)) return undefined;
    return section.querySelector(`[data-on="${verdict}"] textarea`);
  }

  // The fields for why each of them is rejected.
  reasons() {
    return this.sections.map((section) => section.querySelector('[data-on="reject"] textarea')).filter(Boolean);
  }
}

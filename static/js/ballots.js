// The verdicts of a gate that asks about several actions. If all verdicts are alike, the choice for all shows them;
// anything else is "one by one". Changing a field while nothing is chosen, or while all are approved, approves the other
// actions: the large button says so before it is pressed.

const WORDS = {
  approve: "Approve", edit: "Edit", reject: "Reject", respond: "Answer instead",
  later: "Decide later",
};

export class Ballots {
  constructor(root, form, edited) {
    [this.root, this.form, this.edited] = [root, form, edited]; // edited(section): whether its fields were changed
    this.sections = [...root.querySelectorAll(".action:has([data-ballot])")];
    this.settled = new Map(this.sections.map((one) => [one, one.querySelector(".settled")?.dataset.verdict]));
    const pressed = form.querySelector('[name="verdict"]:checked')?.value;
    this.all = pressed ?? (this.sections.some((one) => this.chosen(one) && !this.settled.get(one)) ? "each" : "");
    if (this.sections.length) this.show();
  }

  // Follows a click, or typing in a field of an action.
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

  // The verdict of one action when one is chosen for all. An approval of all includes what others rejected before.
  alike(section) {
    if (this.all === "reject") return "reject";
    if (this.edited(section)) return "edit";
    return this.settled.get(section) ?? (this.all || this.sections.some(this.edited) ? "approve" : "");
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
    const revived = all[0] === "approve" && this.sections.some((section) => this.settled.get(section));
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
    // A rejection of all takes one reason; a reason that was already written for one action stays visible.
    for (const reason of this.reasons()) reason.parentElement.hidden = this.all === "reject" && !reason.value.trim();
    const words = this.form.querySelector('[data-for="each"] [data-says-plain]'); // until the server's words arrive
    const approves = all.every((each) => ["approve", "edit"].includes(each));
    const approve = all.includes("edit") ? "Approve with edit" : WORDS.approve;
    if (words) words.textContent = approves ? approve : "Send these verdicts";
  }

  // What is still missing for one of the actions, and its field.
  need() {
    const open = this.sections.filter((section) => !this.chosen(section));
    const words = open.length === 1 ? "1 action still needs a verdict" : `${open.length} actions still need a verdict`;
    if (open.length) return [words, open[0].querySelector("[data-ballot]")];
    const empty = this.sections.find((section) => this.words(section)?.value.trim() === "");
    if (!empty) return undefined;
    const rejected = this.chosen(empty) === "reject";
    const write = `Write ${rejected ? "a reason" : "the answer"} for action ${this.sections.indexOf(empty) + 1}`;
    return [write, this.words(empty)];
  }

  // The field for the words that its verdict needs; none if the verdict is another reviewer's.
  words(section) {
    const verdict = this.chosen(section);
    if (verdict === this.settled.get(section)) return undefined;
    return section.querySelector(`[data-on="${verdict}"] textarea`);
  }

  // The fields for the reason of each rejection.
  reasons() {
    return this.sections.map((section) => section.querySelector('[data-on="reject"] textarea')).filter(Boolean);
  }
}

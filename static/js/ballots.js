// Where a gate asks about several actions, each has its own choice: these follow what is chosen. All alike is one
// choice about all of them; anything else is "one by one", and the large button says the mix in words, as
// approvals/presentation/ballots.py does after a submit.
const WORDS = { approve: "Approve", edit: "Edit", reject: "Reject", respond: "Answer for it" };
const VERBS = { approve: "approve", edit: "edit", reject: "reject", respond: "answer for" };

export class Ballots {
  constructor(root, form) {
    this.root = root;
    this.form = form;
    this.sections = [...root.querySelectorAll(".action:has([data-ballot])")];
    this.standing = new Map(this.sections.map((one) => [one, one.querySelector(".settled")?.dataset.verdict]));
    if (this.sections.length) this.show();
  }

  // Something was clicked, or typed in a field of an action: `edited` says whether that field differs now.
  follow(target, edited) {
    if (!this.sections.length) return;
    if (target.matches("[data-ballot]")) this.together();
    else if (target.name === "verdict" && target.value !== "each") this.setAll(target.value);
    else if (edited !== undefined) this.edit(target.closest(".action"), edited);
    this.show();
  }

  chosen(section) {
    return section.querySelector("[data-ballot]:checked")?.value ?? "";
  }

  choose(section, value) {
    const radio = section.querySelector(`[data-ballot][value="${value}"]`);
    if (radio) radio.checked = true;
    else for (const each of section.querySelectorAll("[data-ballot]")) each.checked = false;
  }

  // Whoever approves what stands agrees to what others have refused too.
  setAll(value) {
    for (const section of this.sections) this.choose(section, (value === "approve" && this.standing.get(section)) || value);
  }

  edit(section, edited) {
    const now = this.chosen(section);
    if (edited && ["", "approve"].includes(now)) this.choose(section, "edit");
    else if (!edited && now === "edit") this.choose(section, "");
    else return;
    this.together();
  }

  together() {
    const all = this.sections.map((section) => this.chosen(section));
    const alike = all.every((each) => each === all[0]) && ["approve", "reject"].includes(all[0]);
    const revived = all[0] === "approve" && this.sections.some((section) => this.standing.get(section));
    const one = this.form.querySelector(`[name="verdict"][value="${alike && !revived ? all[0] : "each"}"]`);
    if (one) one.checked = true;
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
    const words = this.form.querySelector("[data-mix]");
    if (words) words.textContent = this.words(all, words);
  }

  // What is still to be said of one of them, and where.
  need() {
    const open = this.sections.filter((section) => !this.chosen(section));
    const words = `${open.length} action${open.length === 1 ? " still needs" : "s still need"} a verdict`;
    return open.length ? [words, open[0].querySelector("[data-ballot]")] : undefined;
  }

  // The fields for why each of them is rejected.
  reasons() {
    return this.sections.map((section) => section.querySelector('[data-on="reject"] textarea')).filter(Boolean);
  }

  words(all, { dataset }) {
    if (all.includes("")) return "Send these verdicts";
    const said = Object.entries(VERBS).filter(([name]) => all.includes(name))
      .map(([name, verb]) => `${verb} ${all.filter((each) => each === name).length}`).join(", ");
    const runs = this.sections.filter((_, at) => ["approve", "edit"].includes(all[at])).map((one) => one.dataset.effect);
    const effects = [...new Set([...runs, ...dataset.also.split("\n")])].filter(Boolean);
    const does = "later" in dataset ? "" : effects.length ? ` and run ${effects.map((each) => `“${each}”`).join(", ")}` : " and go on";
    return said[0].toUpperCase() + said.slice(1) + does;
  }
}

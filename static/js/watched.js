// The elements of a page that name in [data-watch] what they show, and what the socket subscribes to. [data-hear] names
// subjects of which they need only hear what all of the team do: nothing is subscribed to for those. Where those are too
// many to be listed, [data-among] has the numbers of the first and the last run.
export function watched() {
  return [...document.querySelectorAll("[data-watch]")];
}

export function concerns(element, fact) {
  if (fact.kind === "reset") return true; // too much happened to be told one by one
  const [first, last] = (element.dataset.among ?? "").split(" ").map(Number);
  const run = Number(fact.run?.slice(4));
  if (first <= run && run <= last) return true;
  return `${element.dataset.watch} ${element.dataset.hear ?? ""}`.trim().split(" ").some((watch) =>
    watch.endsWith(".") ? fact.kind.startsWith(watch) : watch === fact.subject || watch === fact.run);
}

// The version of the proposal on the page, which the server remembers as seen.
function shown() {
  return Number(document.querySelector("hp-gate-form[data-proposal]")?.dataset.proposal ?? 0);
}

// What the server is told: the subjects of this page, and the gate that is being looked at.
export function wanted() {
  const subjects = watched().flatMap((element) => element.dataset.watch.split(" "));
  const gate = document.querySelector("[data-watch^='looking:']")?.dataset.watch.slice(8);
  const looking = gate && document.visibilityState === "visible" ? { looking: Number(gate), proposal: shown() } : {};
  return JSON.stringify({ watch: [...new Set(subjects.filter((subject) => subject.includes(":")))].sort(), ...looking });
}

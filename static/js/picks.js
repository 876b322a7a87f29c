// <hp-picks>: selects rows for a bulk decision. x selects the row under the cursor, X those since the last one; a and r
// open the list of what would be decided. The bar counts, sums the amounts by currency, and says why the selection may
// be decided together. The list is morphed as gates come and go: what is selected stays so while its row is there.

class Picks extends HTMLElement {
  connectedCallback() {
    this.picked = new Set();
    this.addEventListener("change", ({ target }) => target.name === "gate" && this.pick(target.value, target.checked));
    this.addEventListener("reset", () => setTimeout(() => this.clear()));
    this.addEventListener("click", (event) => this.range(event));
    document.addEventListener("keydown", (event) => this.press(event));
    document.addEventListener("htmx:after:swap", () => this.restore());
    for (const box of this.boxes()) if (box.checked) this.picked.add(box.value);
    this.tell();
  }

  boxes() {
    return [...this.querySelectorAll('[name="gate"]')];
  }

  pick(value, wanted) {
    if (wanted) this.picked.add(value);
    else this.picked.delete(value);
    this.last = value;
    this.tell();
  }

  clear() {
    this.picked.clear();
    this.tell();
  }

  // A click with Shift selects what lies between, as in every list.
  range(event) {
    if (event.target.name === "gate" && event.shiftKey) this.through(event.target);
  }

  through(box) {
    const all = this.boxes();
    const last = all.find((each) => each.value === this.last) ?? box; // none yet, or its gate has left the list
    const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((one, two) => one - two);
    for (const each of all.slice(from, to + 1)) {
      each.checked = true;
      this.picked.add(each.value);
    }
    this.last = box.value;
    this.tell();
  }

  press(event) {
    if (!document.querySelector("hp-hotkeys [data-keys-switch]")?.checked) return;
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || document.querySelector("dialog[open]")) return;
    if (event.target.closest?.('textarea, select, input:not([type="checkbox"])') || !["x", "X"].includes(event.key)) return;
    const row = event.target.closest?.(".gate-row") ?? this.querySelector(".gate-row[data-cursor-here]");
    const box = row?.querySelector('[name="gate"]');
    if (!box) return;
    event.preventDefault();
    if (event.key === "X") return this.through(box);
    box.checked = !box.checked;
    this.pick(box.value, box.checked);
  }

  restore() {
    const boxes = this.boxes();
    const there = new Set(boxes.map((box) => box.value));
    for (const value of this.picked) if (!there.has(value)) this.picked.delete(value);
    for (const box of boxes) box.checked = this.picked.has(box.value);
    this.tell();
  }

  tell() {
    const rows = this.boxes().filter((box) => box.checked).map((box) => box.closest(".gate-row"));
    const first = rows.find((row) => !row.dataset.alone) ?? rows[0];
    const others = rows.filter((row) => row.dataset.alike !== first.dataset.alike);
    const alone = rows.filter((row) => row.dataset.alike === first.dataset.alike && row.dataset.alone);
    const together = rows.filter((row) => !others.includes(row) && !alone.includes(row));
    this.say("[data-bulk-count]", `${rows.length} ${rows.length === 1 ? "gate" : "gates"} selected`);
    this.say("[data-bulk-sum]", sums(together));
    this.say("[data-bulk-why]", why(together, alone, others));
    this.say("[data-bulk-approve]", `Approve${together.length ? ` ${together.length}` : ""}…`);
    for (const button of this.querySelectorAll("[data-bulk]")) {
      button.toggleAttribute("disabled", !together.length);
      if (together.length) button.dataset.hotkey = button.dataset.bulk;
      else delete button.dataset.hotkey;
    }
  }

  say(place, words) {
    const element = this.querySelector(place);
    if (element && element.textContent !== words) element.textContent = words;
  }
}

function sums(rows) {
  const by = new Map();
  for (const { dataset } of rows) {
    if (dataset.currency) by.set(dataset.currency, (by.get(dataset.currency) ?? 0) + Math.round(Number(dataset.value) * 1e6));
  }
  const written = [...by].map(([currency, value]) => money(value / 1e6, currency));
  return written.length ? `· ${written.join(" + ")}` : "";
}

function money(value, currency) {
  try {
    return new Intl.NumberFormat("en", { style: "currency", currency }).format(value);
  } catch {
    return `${value.toFixed(2)} ${currency}`;
  }
}

function why(together, alone, others) {
  const said = [];
  if (together.length) said.push("Same agent, step and policy. The policy lets you decide this risk together.");
  if (alone.length) {
    const reasons = [...new Set(alone.map((row) => row.dataset.alone))].join(" ");
    const by = alone.length === 1 ? "has to be decided by itself" : "have to be decided by themselves";
    said.push(`${alone.length} ${by}. ${reasons}`);
  }
  if (others.length === 1) said.push("1 is of another kind and stays open.");
  else if (others.length) said.push(`${others.length} are of another kind and stay open.`);
  return said.join(" ");
}

customElements.define("hp-picks", Picks);

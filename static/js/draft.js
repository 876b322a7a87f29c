// What somebody typed on a gate and has not sent: kept in this browser only, per gate and person, with the number
// of the proposal it was typed against. Dropped once the server has taken it, or after a week.
const WEEK = 7 * 24 * 60 * 60 * 1000;

export class Draft {
  constructor(key, proposal) {
    this.key = key;
    this.proposal = proposal;
  }

  keep(values) {
    this.store(() => {
      if (Object.keys(values).length === 0) localStorage.removeItem(this.key);
      else localStorage.setItem(this.key, JSON.stringify({ values, proposal: this.proposal, at: Date.now() }));
    });
  }

  read() {
    const found = this.store(() => JSON.parse(localStorage.getItem(this.key)));
    if (!found || Date.now() - found.at > WEEK) return { values: {}, older: false };
    return { values: found.values, older: found.proposal !== this.proposal };
  }

  // Remember that it is on its way: the gate's next page drops it unless that page brings a refusal.
  sent() {
    this.store(() => sessionStorage.setItem("hp-sent", this.key));
  }

  static settle() {
    try {
      const key = sessionStorage.getItem("hp-sent");
      if (!key) return;
      sessionStorage.removeItem("hp-sent");
      if (!document.querySelector("#refusal")) localStorage.removeItem(key);
    } catch {
      // No storage, no draft.
    }
  }

  store(work) {
    try {
      return work();
    } catch {
      return null; // storage is off or full; the page works without
    }
  }
}

Draft.settle();

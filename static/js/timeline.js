// <hp-timeline>: j and k move along a run's checkpoints and show the one they come to beside the timeline. The
// server draws the choice; this keeps the address true to it, and on a small screen goes to what was chosen.
class Timeline extends HTMLElement {
  connectedCallback() {
    this.wide = matchMedia("(min-width: 68rem)");
    this.addEventListener("click", (event) => this.pick(event));
    document.addEventListener("keydown", (event) => this.press(event));
  }

  pick(event) {
    const link = event.target.closest("a[data-pick]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    history.replaceState(history.state, "", link.href.split("#")[0]);
    if (this.wide.matches || !link.closest("#timeline") || this.keyed) return;
    document.addEventListener("htmx:after:swap", () => this.querySelector("#inspect")?.scrollIntoView(), { once: true });
  }

  press(event) {
    if (!document.querySelector("hp-hotkeys [data-keys-switch]")?.checked) return;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest?.("input, textarea, select") || !["j", "k"].includes(event.key)) return;
    const links = [...this.querySelectorAll("#timeline a[data-pick]")];
    const focused = links.indexOf(document.activeElement);
    const at = focused >= 0 ? focused : links.findIndex((link) => link.closest("[aria-current]"));
    const next = links[Math.min(Math.max(at + (event.key === "j" ? 1 : -1), 0), links.length - 1)];
    if (!next) return;
    event.preventDefault();
    next.focus({ preventScroll: true });
    next.closest(".cp").scrollIntoView({ block: "nearest" });
    // Holding the key down passes over many rows: only the one it stops at is fetched.
    clearTimeout(this.stopping);
    this.stopping = setTimeout(() => {
      this.keyed = true;
      next.click();
      this.keyed = false;
    }, 120);
  }
}

customElements.define("hp-timeline", Timeline);

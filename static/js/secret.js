// <hp-secret>: a form that reveals one secret in place. The click fetches the text, which is in no cache and no history.
// It is masked again by a second click, after half a minute, or as soon as the page is left.

const SHOWN = 30_000; // milliseconds

class Secret extends HTMLElement {
  connectedCallback() {
    if (this.output) return;
    this.output = this.querySelector("output");
    this.label = this.querySelector("[data-label]");
    this.mask = this.output.textContent;
    this.addEventListener("submit", (event) => this.#submit(event));
    this.leave = () => document.hidden && this.#hide();
    document.addEventListener("visibilitychange", this.leave);
    addEventListener("pagehide", () => this.#hide());
  }

  disconnectedCallback() {
    this.#hide();
    document.removeEventListener("visibilitychange", this.leave);
  }

  async #submit(event) {
    event.preventDefault();
    if (this.hasAttribute("data-shown")) return this.#hide();
    const form = event.target;
    try {
      const answer = await fetch(form.action, {
        method: "POST", body: new FormData(form), headers: { "HX-Request": "true" }, cache: "no-store",
      });
      if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
      this.#show(await answer.text());
    } catch {
      this.output.textContent = "Could not load it. Try again.";
    }
  }

  #show(html) {
    this.output.innerHTML = html; // escaped and marked by the server, like every text of an agent
    this.setAttribute("data-shown", "");
    this.label.textContent = "Hide";
    this.timer = setTimeout(() => this.#hide(), SHOWN);
  }

  #hide() {
    clearTimeout(this.timer);
    this.output.textContent = this.mask;
    this.removeAttribute("data-shown");
    this.label.textContent = "Reveal";
  }
}

customElements.define("hp-secret", Secret);

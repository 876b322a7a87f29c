// <hp-secret>: a form that reveals one secret in its own place. The text is fetched by the click, is in no cache and no
// history, and is masked again by a second click, after half a minute, or as soon as the page is left.
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
      this.output.textContent = "It could not be fetched. Try again.";
    }
  }

  #show(html) {
    this.output.innerHTML = html; // escaped and marked by the server, as every text of an agent
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

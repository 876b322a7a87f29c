// <hp-codes>: a list of codes to copy, print or download; nothing of it leaves the page.

class Codes extends HTMLElement {
  connectedCallback() {
    this.said = this.querySelector("[role=status]");
    this.querySelector("[data-copy]").addEventListener("click", () => this.#copy());
    this.querySelector("[data-print]").addEventListener("click", () => print());
    this.querySelector("[data-download]").addEventListener("click", (event) => this.#download(event.target.dataset.download));
  }

  #text() {
    return [...this.querySelectorAll("code")].map((each) => `${each.textContent}\n`).join("");
  }

  async #copy() {
    try {
      await navigator.clipboard.writeText(this.#text());
      this.said.textContent = "Copied.";
    } catch {
      this.said.textContent = "Could not copy. Select the text instead.";
    }
  }

  #download(name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([this.#text()], { type: "text/plain" }));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  }
}

customElements.define("hp-codes", Codes);

// <hp-copy>: a text with a button that copies it to the clipboard. Without script or clipboard, one click selects the
// whole text.

class Copy extends HTMLElement {
  connectedCallback() {
    const button = this.querySelector("button");
    if (!navigator.clipboard) return;
    button.hidden = false;
    button.addEventListener("click", async () => {
      const said = this.querySelector("[role=status]");
      try {
        await navigator.clipboard.writeText(this.querySelector("code").textContent);
        said.textContent = "Copied.";
      } catch {
        said.textContent = "Could not copy. Select the text instead.";
      }
    });
  }
}

customElements.define("hp-copy", Copy);

// <hp-copy>: a text with a button that puts it on the clipboard. Without script, or where there is no clipboard, the
// text is selected whole by one click.
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
        said.textContent = "It could not be copied: select it instead.";
      }
    });
  }
}

customElements.define("hp-copy", Copy);

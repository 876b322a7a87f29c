// <hp-audit>: the filters' times are the reader's own. The server takes them in the zone that the form names.
class Audit extends HTMLElement {
  connectedCallback() {
    const field = this.querySelector("[name=zone]");
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
    const times = [...this.querySelectorAll("[type=datetime-local]")];
    // Times that were typed in another zone keep it, until they are emptied.
    if (!field.value || !times.some((time) => time.value)) field.value = zone;
    for (const label of this.querySelectorAll("[data-zone]")) label.textContent = `(${field.value})`;
    this.addEventListener("submit", () => {
      for (const empty of this.querySelectorAll("input, select")) if (!empty.value) empty.disabled = true;
      if (!times.some((time) => time.value)) field.disabled = true;
    });
    addEventListener("pageshow", () => {
      for (const each of this.querySelectorAll("input, select")) each.disabled = false;
    });
  }
}

customElements.define("hp-audit", Audit);

// <hp-audit>: the filters' times are in the reader's time zone, which the form sends to the server.
class Audit extends HTMLElement {
  connectedCallback() {
    const field = this.querySelector("[name=zone]");
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
    const times = [...this.querySelectorAll("[type=datetime-local]")];
    // Times that were typed in another zone keep that zone until they are cleared.
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

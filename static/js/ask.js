// <hp-ask>: a comment or a note is sent without leaving the page, and its field is then empty for the next. Other words
// have another key, so that pressing twice sends the same words once. Unsent words stay in this tab, however often the
// page is rendered again.
import { newKey } from "./form-key.js";
import { forget, recall, remember } from "./keeping.js";

const TAB = () => sessionStorage;
const NAME = "hp-ask:";
const { reader } = document.body.dataset;
if (reader) for (const each of others()) forget(TAB, each);

// What somebody else left in this tab.
function others() {
  try {
    return Object.keys(sessionStorage).filter((name) => name.startsWith(NAME) && !name.startsWith(`${NAME}${reader}:`));
  } catch {
    return []; // storage is off
  }
}

class Ask extends HTMLElement {
  connectedCallback() {
    const form = this.querySelector("form");
    const { text, key } = form.elements;
    const store = `${NAME}${reader}:${form.getAttribute("action")}`;
    let sent = false;
    text.value ||= recall(TAB, store) ?? "";
    form.addEventListener("input", () => {
      remember(TAB, store, text.value);
      if (sent) key.value = newKey();
      sent = false;
    });
    form.addEventListener("htmx:before:request", () => (sent = true));
    form.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
      if (!ctx.response.raw.ok || text.value !== ctx.request.body.get("text")) return; // refused, or typed on meanwhile
      [text.value, key.value] = ["", newKey()];
      forget(TAB, store);
    });
  }
}

customElements.define("hp-ask", Ask);

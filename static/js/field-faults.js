// Shows what is wrong with a field beside it, as it is typed. The server lists the faults in the decision's panel, each
// with a link to its field. A field of a new item is not marked as empty before somebody has been in it.
export class Faults {
  constructor(scope) {
    this.scope = scope;
    scope.addEventListener("focusout", ({ target }) => target.closest(".item")?.setAttribute("data-visited", ""));
    document.addEventListener("htmx:after:swap", () => this.show());
    this.show();
  }

  show() {
    const list = document.querySelector("#edit-faults");
    const said = new Map([...(list?.querySelectorAll("[data-fault]") ?? [])].map((link) => [link.dataset.fault, link.nextElementSibling]));
    if (!list || (list === this.seen && !said.size)) return;
    this.seen = list;
    for (const line of this.scope.querySelectorAll(".action-form .error[id$='-error']")) this.tell(line, said.get(line.id.slice(0, -6)));
  }

  tell(line, words) {
    const item = line.closest(".item");
    const early = item?.matches("[data-new]:not([data-visited])");
    const field = item?.querySelector(".input");
    line.hidden = !words || early;
    line.querySelector("[data-error]")?.replaceChildren(...(words ? words.cloneNode(true).childNodes : []));
    if (words && !early) field?.setAttribute("aria-invalid", "true");
    else field?.removeAttribute("aria-invalid");
  }
}

// The server writes the words of the large button from what is typed. Until the words for the last entry arrive, the
// button says in general what it does. Each entry has a number, which comes back with its words.
export class Says {
  constructor(form) {
    [this.form, this.count] = [form, form.elements.typed];
    this.show();
  }

  entered() {
    this.count.value = Number(this.count.value) + 1;
    this.show();
  }

  show() {
    for (const words of this.form.querySelectorAll("[data-says]")) {
      words.hidden = words.dataset.says !== this.count.value;
      words.nextElementSibling.hidden = !words.hidden;
    }
  }
}

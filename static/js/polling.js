// While only the socket is lost, the page's elements are fetched again from time to time: a proxy that ends every socket
// must not leave pages out of date. The random delay keeps browsers that lost it together from polling together.
const PAUSE = 20_000;

export class Polling {
  looked = false; // whether it has polled since it was started
  works = false; // whether the last poll was answered

  constructor(look) {
    this.look = look;
  }

  start() {
    if (this.waiting) return;
    this.waiting = setTimeout(() => {
      this.waiting = undefined;
      this.looked = true;
      this.look();
      this.start();
    }, PAUSE * (0.75 + Math.random() / 2));
  }

  stop() {
    clearTimeout(this.waiting);
    this.waiting = undefined;
    this.looked = this.works = false;
  }
}

// While the socket alone is gone, what the page shows is fetched again from time to time: a proxy that ends every socket
// must not make a page old. Browsers that lost it together do not ask together.
const PAUSE = 20_000;

export class Polling {
  looked = false; // since it began
  works = false; // whether the last look was answered

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

// <hp-count>: the number of gates that wait for the reader, in the bar at the top. It also shows in the page's title
// ("(3) Inbox"), as a dot on the page's icon, and on the installed app. The server draws the number; the inbox and a
// gate's page redraw it with the rest. Where a page does not, or is out of sight, the number alone is asked for.
const MARKED = /^\(\d+\+?\) /;
const REDRAWN = new Set(["inbox", "gate"]);
const SOON = 1_000; // milliseconds after a gate opened or ended, in sight
const RARELY = 10_000; // out of sight

class Count extends HTMLElement {
  connectedCallback() {
    this.show ??= () => show(this.shown());
    this.watching ??= new MutationObserver(this.show);
    this.watching.observe(this, { attributes: true, attributeFilter: ["hidden"], characterData: true, childList: true, subtree: true });
    this.hear ??= ({ detail: { kind } }) => (kind.startsWith("gate.") || kind === "reset") && this.askSoon();
    document.addEventListener("hp:fact", this.hear);
    document.addEventListener("htmx:after:swap", this.show); // a page drawn anew has a title of its own
    this.show();
  }

  disconnectedCallback() {
    this.watching.disconnect();
    document.removeEventListener("hp:fact", this.hear);
    document.removeEventListener("htmx:after:swap", this.show);
    clearTimeout(this.asking);
  }

  shown() {
    return this.hidden ? "" : this.firstChild.textContent.trim();
  }

  // Several gates at once cause one question; the random delay keeps many browsers from asking at the same time.
  askSoon() {
    if (this.asking || (!document.hidden && REDRAWN.has(document.body.dataset.page))) return;
    this.asking = setTimeout(() => this.ask(), (document.hidden ? RARELY : SOON) * (0.5 + Math.random() / 2));
  }

  async ask() {
    this.asking = undefined;
    const answer = await fetch(this.dataset.url, { cache: "no-store" }).catch(() => {});
    if (!answer?.ok || answer.redirected) return;
    const count = await answer.text();
    this.hidden = count === "0";
    this.firstChild.textContent = count;
  }
}

function show(count) {
  const title = document.title.replace(MARKED, "");
  const marked = count ? `(${count}) ${title}` : title;
  if (document.title !== marked) document.title = marked;
  mark(Boolean(count));
  badge(Number.parseInt(count, 10) || 0);
}

function mark(waiting) {
  const icon = document.querySelector("link[rel=icon][data-waiting]");
  if (!icon) return;
  icon.dataset.plain ??= icon.getAttribute("href");
  const wanted = waiting ? icon.dataset.waiting : icon.dataset.plain;
  if (icon.getAttribute("href") !== wanted) icon.setAttribute("href", wanted);
}

// A browser that is not installed as an app shows no number, and some refuse to be asked.
function badge(count) {
  const done = count ? navigator.setAppBadge?.(count) : navigator.clearAppBadge?.();
  done?.catch(() => {});
}

customElements.define("hp-count", Count);
if (!document.body.dataset.reader) badge(0);

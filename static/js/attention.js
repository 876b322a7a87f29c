// <hp-count>: the number of gates that wait for the reader, in the bar at the top. It also shows in the page's title
// ("(3) Inbox"), as a dot on the page's icon, and on the installed app. The server draws the number and redraws it.
const MARKED = /^\(\d+\+?\) /;

class Count extends HTMLElement {
  connectedCallback() {
    this.watching ??= new MutationObserver(() => show(this.shown()));
    this.watching.observe(this, { attributes: true, attributeFilter: ["hidden"], characterData: true, childList: true, subtree: true });
    show(this.shown());
  }

  disconnectedCallback() {
    this.watching.disconnect();
  }

  shown() {
    return this.hidden ? "" : this.firstChild.textContent.trim();
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
  icon.dataset.plain ??= icon.href;
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

// The service worker of the whole site: shows what is pushed, opens the gate when a person presses it, and answers with
// the page for no connection where a page cannot be loaded. It keeps that page and its files, and no other page, so it
// shows no gate as it was. config/web/installable.py starts it and names this release's files in `release`.
const { release } = globalThis;
const KEPT = `holdpoint-${release.name}`;
const LONGEST = 500; // characters of a text
const TOLD = "holdpoint-subscription"; // holds the address that the site was last told; installed.js has the same

addEventListener("install", (event) => {
  event.waitUntil(keep().then(() => globalThis.skipWaiting()));
});

addEventListener("activate", (event) => {
  event.waitUntil(begin());
});

async function keep() {
  const cache = await caches.open(KEPT);
  // Without cookies: what is kept is the same for everybody.
  await cache.addAll([release.page, ...release.files].map((url) => new Request(url, { credentials: "omit", cache: "no-cache" })));
}

async function begin() {
  for (const name of await caches.keys()) if (name !== KEPT && name !== TOLD) await caches.delete(name);
  await globalThis.registration.navigationPreload?.enable(); // the request leaves while this worker starts
  await globalThis.clients.claim();
}

addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET") return; // a decision is sent by the page alone
  if (request.mode === "navigate") event.respondWith(loaded(event));
  else if (release.files.includes(new URL(request.url).pathname)) event.respondWith(file(request));
});

async function loaded(event) {
  try {
    return (await event.preloadResponse) ?? (await fetch(event.request));
  } catch {
    const page = await caches.match(release.page);
    return page ? new Response(page.body, { status: 503, headers: page.headers }) : Response.error();
  }
}

// Their names change with their content.
async function file(request) {
  return (await caches.match(request)) ?? fetch(request);
}

addEventListener("push", (event) => {
  event.waitUntil(show(said(event.data)));
});

function said(data) {
  try {
    return data.json() ?? {};
  } catch {
    return {};
  }
}

// All messages about one gate have one tag: each takes the place of the one before. The end of a gate makes no sound.
// What is urgent stays in sight until it is dealt with.
async function show({ title, body, tag, link, ended = false, urgent = false }) {
  await globalThis.registration.showNotification(text(title) || "Holdpoint", {
    body: text(body),
    tag: text(tag),
    icon: release.icon,
    badge: release.badge,
    renotify: Boolean(tag) && !ended,
    silent: Boolean(ended),
    requireInteraction: Boolean(urgent) && !ended,
    data: { link: text(link), ended: Boolean(ended) },
  });
  const open = (await globalThis.registration.getNotifications()).filter((each) => !each.data?.ended);
  if (open.length) await navigator.setAppBadge?.(open.length);
}

function text(value) {
  return typeof value === "string" ? value.slice(0, LONGEST) : "";
}

// The push service ended the subscription, or gave it another address: the site is told of the new one. Without a
// connection it is told once there is one again, or by the next page that opens.
addEventListener("pushsubscriptionchange", (event) => {
  event.waitUntil(compare(event.oldSubscription?.endpoint, event.newSubscription).catch(later));
});

addEventListener("message", (event) => {
  if (event.data === "compare") event.waitUntil(compare().catch(later));
});

addEventListener("sync", (event) => {
  event.waitUntil(compare()); // where it fails the browser tries again, after longer and longer pauses
});

async function later() {
  await globalThis.registration.sync?.register("subscription").catch(() => {});
}

async function compare(old = "", changed = null) {
  const told = (await (await caches.match("/subscription", { cacheName: TOLD }))?.text()) || old;
  const known = changed ?? (await globalThis.registration.pushManager.getSubscription());
  if (!told && !known) return;
  if (Notification.permission !== "granted") await caches.delete(TOLD);
  else if (known?.endpoint !== told) await renew(known, told);
}

// One whose owner signed out, or removed the browser, ends.
async function renew(known, old) {
  const found = await fetch(release.keys, { cache: "no-store" });
  if (found.redirected) return; // nobody is signed in
  const { key, token } = await found.json();
  const options = { userVisibleOnly: true, applicationServerKey: key };
  const subscription = known ?? (await globalThis.registration.pushManager.subscribe(options));
  const { endpoint, keys } = subscription.toJSON();
  const body = new FormData();
  const said = { endpoint, ...keys, again: "1", old, csrfmiddlewaretoken: token };
  for (const [name, value] of Object.entries(said)) body.set(name, value);
  const answer = await fetch(release.browsers, { method: "POST", body });
  if (answer.status >= 500) throw new Error(release.browsers);
  if (answer.redirected) return;
  if (answer.ok) return (await caches.open(TOLD)).put("/subscription", new Response(endpoint));
  await subscription.unsubscribe();
  await caches.delete(TOLD);
}

addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data?.link));
});

// A page that shows the gate comes to the front. Any other page is left as it is: something may be typed there.
async function open(link) {
  const url = ours(link);
  const pages = await globalThis.clients.matchAll({ type: "window", includeUncontrolled: true });
  const there = pages.find((page) => new URL(page.url).pathname === url.pathname);
  return there ? there.focus() : globalThis.clients.openWindow(url.href);
}

// Nothing that is pushed leads to another site.
function ours(link) {
  const url = URL.canParse(link ?? "", location.origin) ? new URL(link, location.origin) : new URL("/", location.origin);
  return url.origin === location.origin ? url : new URL("/", location.origin);
}

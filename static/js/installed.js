// What an installed app and a browser that takes pushed messages do on every page: the app has the service worker, a
// message about a gate goes as soon as the gate is open here or has ended, signing out ends the messages, and the site
// is told where the subscription has changed meanwhile.
const PATIENCE = 2_000; // milliseconds
const ENDS = new Set(["gate.closed", "gate.expired", "gate.withdrawn"]);
const TOLD = "holdpoint-subscription"; // holds the address that the site was last told; service-worker.js has the same
const worker = navigator.serviceWorker;

export function register() {
  return worker.register("/service-worker.js", { updateViaCache: "none" });
}

if (worker) {
  if (matchMedia("(display-mode: standalone)").matches) register().catch(() => {});
  addEventListener("appinstalled", () => register().catch(() => {}));
  document.addEventListener("hp:fact", ({ detail: { kind, subject } }) => {
    if (ENDS.has(kind)) close(subject);
  });
  document.addEventListener("visibilitychange", seen);
  document.addEventListener("submit", leave);
  seen();
  worker.getRegistration("/").then((known) => known?.active?.postMessage("compare"), () => {});
}

function seen() {
  const [, gate] = location.pathname.match(/^\/gates\/(\d+)\/$/) ?? [];
  if (gate && document.visibilityState === "visible") close(`gate:${gate}`);
}

async function close(subject) {
  const known = await worker.getRegistration("/");
  const told = (await known?.getNotifications?.({ tag: subject?.replace(":", "-") })) ?? [];
  for (const each of told) each.close();
}

// The next person at this browser neither is told nor reads what was meant for the one who left.
async function leave(event) {
  const form = event.target;
  if (event.defaultPrevented || form.left || !form.getAttribute("action")?.endsWith("/accounts/logout/")) return;
  event.preventDefault();
  form.left = true;
  await Promise.race([Promise.allSettled([unsubscribe(), close()]), new Promise((done) => setTimeout(done, PATIENCE))]);
  form.requestSubmit();
}

export async function note(endpoint) {
  await (await caches.open(TOLD)).put("/subscription", new Response(endpoint));
}

export async function unsubscribe() {
  await globalThis.caches?.delete(TOLD);
  const known = await worker.getRegistration("/");
  const subscription = await known?.pushManager?.getSubscription();
  await subscription?.unsubscribe();
}

// Keeps "25 min" up to date, and shows every <time data-as> in the reader's time zone. The cookie tells the server the
// zone, so that the next page already has the right times. The formats are those of the server.
import { cookie, setCookie } from "./cookies.js";

const names = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" "); // as the server writes them
const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (own) setCookie("hp-zone", own);
const zone = known(cookie("hp-own-zone") || own); // the person's choice comes before the browser's
const inZone = new Intl.DateTimeFormat("en", {
  timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric",
});
const utc = zone === "UTC" ? " UTC" : "";

// The server may know zones that this browser does not.
function known(name) {
  try {
    return Intl.DateTimeFormat("en", { timeZone: name }) && name;
  } catch {
    return "UTC";
  }
}

function pad(number) {
  return String(number).padStart(2, "0");
}

function parts(date) {
  return Object.fromEntries(inZone.formatToParts(date).map(({ type, value }) => [type, Number(value)]));
}

export function clock(date, seconds = "") {
  const { hour, minute } = parts(date);
  return `${pad(hour)}:${pad(minute)}${seconds}${utc}`;
}

export function lasting(milliseconds) {
  const seconds = Math.max(Math.floor(milliseconds / 1000), 0);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 10) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`;
}

// To the second, as a countdown is.
function remaining(milliseconds) {
  const seconds = Math.ceil(milliseconds / 1000);
  if (seconds >= 3600) return lasting(milliseconds);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

export function words(date, style) {
  const now = Date.now();
  if (style === "countdown") return date > now ? `in ${remaining(date - now)}` : "now";
  if (style === "ago") return lasting(now - date);
  if (style === "until") return date > now ? `in ${lasting(date - now)}` : "overdue";
  const { year, month, day, second } = parts(date);
  const at = parts(now);
  const today = at.year === year && at.month === month && at.day === day;
  if (style === "second" && today) return clock(date, `:${pad(second)}`);
  return (style === "clock" && today ? "" : `${day} ${names[month - 1]}, `) + clock(date);
}

export function show(scope = document, wanted = "time[data-as]") {
  for (const time of scope.querySelectorAll(wanted)) {
    const text = words(new Date(time.dateTime), time.dataset.as);
    if (time.textContent !== text) time.textContent = text;
  }
}

show();
setInterval(() => document.visibilityState === "visible" && show(), 5000);
setInterval(() => document.visibilityState === "visible" && show(document, "time[data-as=countdown]"), 1000);
document.addEventListener("htmx:after:swap", () => show());

// Shows every <time data-as> in the reader's zone and keeps "25 min" true. The server wrote UTC.
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const second = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const moment = new Intl.DateTimeFormat(undefined, {
  day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23",
});

export function lasting(milliseconds) {
  const seconds = Math.max(Math.floor(milliseconds / 1000), 0);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 10) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`;
}

function words(date, style) {
  const now = Date.now();
  if (style === "ago") return lasting(now - date);
  if (style === "until") return date > now ? `in ${lasting(date - now)}` : "overdue";
  const today = new Date(now).toDateString() === date.toDateString();
  if (style === "second" && today) return second.format(date);
  return style === "clock" && today ? clock.format(date) : moment.format(date);
}

export function show(scope = document) {
  for (const time of scope.querySelectorAll("time[data-as]")) {
    const text = words(new Date(time.dateTime), time.dataset.as);
    if (time.textContent !== text) time.textContent = text;
  }
}

show();
setInterval(() => document.visibilityState === "visible" && show(), 5000);
document.addEventListener("htmx:after:swap", () => show());

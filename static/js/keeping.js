// What a browser keeps of a form for a while, in its storage: `where` gives that of the tab or of the browser.
const TOKEN = "csrfmiddlewaretoken";

// Files are no part of it: a browser does not let them be put back. Nor are secrets.
export function fields(form) {
  const secret = new Set([...form.elements].filter((field) => field.type === "password").map((field) => field.name));
  return [...new FormData(form)].filter(([name, value]) => typeof value === "string" && name !== TOKEN && !secret.has(name));
}

export function recall(where, name) {
  try {
    return JSON.parse(where().getItem(name));
  } catch {
    return null;
  }
}

export function remember(where, name, value) {
  try {
    where().setItem(name, JSON.stringify(value));
  } catch {
    // Storage is off or full: what can be done without it is done all the same.
  }
}

export function forget(where, name) {
  try {
    where().removeItem(name);
  } catch {
    // Nothing was kept.
  }
}

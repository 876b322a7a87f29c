// Keeps a form's fields, or a choice, in the browser's storage: `where` returns that of the tab or of the browser.
const TOKEN = "csrfmiddlewaretoken";

// Without files, which no browser lets a page put back, and without secrets.
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
    // Storage is off or full: everything else works without it.
  }
}

export function forget(where, name) {
  try {
    where().removeItem(name);
  } catch {
    // Nothing was kept.
  }
}

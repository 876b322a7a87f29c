// The key that makes a form count once. Not crypto.randomUUID: over plain HTTP, as in a private network, browsers do not
// have it.
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// The key by which a form counts once. Not crypto.randomUUID: over plain HTTP, as in a network of one's own, browsers
// have none.
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Choices that the server knows too: kept in cookies, which a person's profile sets at sign-in.
const YEAR = 31_536_000; // seconds

export function cookie(name) {
  const found = document.cookie.split("; ").find((each) => each.startsWith(`${name}=`));
  return found ? decodeURIComponent(found.slice(name.length + 1)).replace(/^"|"$/g, "") : "";
}

export function setCookie(name, value) {
  document.cookie = `${name}=${value}; path=/; max-age=${value ? YEAR : 0}; samesite=lax`;
}

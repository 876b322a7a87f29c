/** JSON Pointers (RFC 6901): places in JSON values. */

/** Return the pointer to a member of an object. */
export function pointerTo(name: string): string {
  return `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** Return what a pointer is made of: "", which is the whole value, and the names and positions that lead on from it. */
export function tokensOf(pointer: string): string[] {
  return pointer.split("/").map((each) => each.replaceAll("~1", "/").replaceAll("~0", "~"));
}

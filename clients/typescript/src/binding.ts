/**
 * Binds what is done to what people approved: the arguments that a claim hands out must be those of the gate's card, text
 * for text, and the card's digest the one that people decided on.
 */
import type { Read } from "./api.js";
import type { Gate } from "./endings.js";
import { Altered } from "./errors.js";
import { digestOf, parse, stringify, textAt } from "./exact.js";

/** Return the exact text of an action's arguments as approved. Throws Altered if `given` differs from it. */
export function bound(gate: Read<Gate>, action: string, given: string | undefined): string {
  const { card, digest, masked, outcome } = gate.value;
  const number = (card["actions"] as { id: string }[]).findIndex((each) => each.id === action);
  const approved = textAt(gate.text, "card", "actions", number, "arguments");
  const place = `/actions/${number}/arguments`;
  const hidden = masked.filter((each) => each.startsWith(place)).map((each) => each.slice(place.length));
  // Digests are of the true values: a card whose secrets are masked cannot be checked against its own.
  const known = masked.length > 0 || digestOf(textAt(gate.text, "card") ?? "") === digest;
  const same = given !== undefined && approved !== undefined && without(given, hidden) === without(approved, hidden);
  if (!known || outcome?.seen !== digest || !same) {
    throw new Altered(
      `The arguments of ${action} are not those that people approved at gate ${gate.value.id}, so nothing was done. ` +
        "Ask again, and tell the people who run Holdpoint.",
    );
  }
  return given;
}

/** Return a JSON text without the values at some pointers. */
function without(text: string, pointers: string[]): string {
  if (pointers.length === 0) return text;
  const value = parse(text);
  for (const pointer of pointers) {
    const names = pointer.split("/").slice(1).map((each) => each.replaceAll("~1", "/").replaceAll("~0", "~"));
    const last = names.pop();
    if (last === undefined) return "";
    const holder = names.reduce<unknown>((part, name) => (part as Record<string, unknown> | undefined)?.[name], value);
    if (typeof holder === "object" && holder !== null) (holder as Record<string, unknown>)[last] = null;
  }
  return stringify(value);
}

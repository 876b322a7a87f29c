/**
 * Binds what is done to what people approved: the arguments that a claim hands out must be those of the gate's card, text
 * for text, and the card's digest the one that people decided on.
 */
import { isDeepStrictEqual } from "node:util";

import type { Read } from "./api.js";
import type { Edit, Gate } from "./endings.js";
import { Altered } from "./errors.js";
import { digestOf, parse, stringify, textAt } from "./exact.js";
import { tokensOf } from "./json-pointer.js";

/** What a program asks about, as JSON text, and people's changes to it. */
export interface Question {
  asked: string | undefined;
  edits: Edit[];
}

/**
 * Return the exact text of an action's arguments as approved. Throws Altered if `given` differs from it, or from what the
 * program asks about: a gate that its key found may be about something else.
 */
export function bound(gate: Read<Gate>, action: string, given: string | undefined, question: Question): string {
  const { card, digest, masked, outcome } = gate.value;
  const number = (card["actions"] as { id: string }[]).findIndex((each) => each.id === action);
  const approved = textAt(gate.text, "card", "actions", number, "arguments");
  const place = `/actions/${number}/arguments`;
  const hidden = masked.filter((each) => each.startsWith(place)).map((each) => each.slice(place.length));
  // Digests are of the true values: a card whose secrets are masked cannot be checked against its own.
  const known = masked.length > 0 || digestOf(textAt(gate.text, "card") ?? "") === digest;
  const same = given !== undefined && approved !== undefined && shown(given, hidden) === shown(approved, hidden);
  if (!known || outcome?.seen !== digest || !same) {
    throw new Altered(
      `The arguments of ${action} are not those that people approved at gate ${gate.value.id}, so nothing was done. ` +
        "Ask again, and tell the people who run Holdpoint.",
    );
  }
  const { asked, edits } = question;
  // Both are read from texts and not written again: a float of 1e+20 would become an integer.
  const wanted = asked && without(edited(parse(asked), edits), hidden);
  if (wanted !== undefined && !isDeepStrictEqual(without(parse(given), hidden), wanted)) {
    throw new Altered(
      `People were asked at gate ${gate.value.id} about other arguments of ${action} than these, so nothing was done. ` +
        "Ask again, under another key.",
    );
  }
  return given;
}

/** Return the value with a JSON Patch of add, remove and replace applied. Throws Altered. */
function edited(value: unknown, edits: Edit[]): unknown {
  const root: Record<string, unknown> = { "": value };
  for (const { op, path, value: put } of edits) {
    const names = tokensOf(path);
    const last = names.pop() ?? "";
    const holder = names.reduce<unknown>((part, name) => (part as Record<string, unknown> | undefined)?.[name], root);
    if (typeof holder !== "object" || holder === null) {
      throw new Altered("People's edit does not fit what was asked, so nothing was done. Ask again.");
    }
    if (Array.isArray(holder)) {
      holder.splice(last === "-" ? holder.length : Number(last), op === "add" ? 0 : 1, ...(op === "remove" ? [] : [put]));
    } else if (op === "remove") delete (holder as Record<string, unknown>)[last];
    else (holder as Record<string, unknown>)[last] = put;
  }
  return root[""];
}

/** Return a JSON text without the values at some pointers. */
function shown(text: string, pointers: string[]): string {
  return pointers.length === 0 ? text : stringify(without(parse(text), pointers));
}

/** Return a value without those at some pointers: null stands in their place. */
function without(value: unknown, pointers: string[]): unknown {
  const root: Record<string, unknown> = { "": value };
  for (const pointer of pointers) {
    const names = tokensOf(pointer);
    const last = names.pop() ?? "";
    const holder = names.reduce<unknown>((part, name) => (part as Record<string, unknown> | undefined)?.[name], root);
    if (typeof holder === "object" && holder !== null) (holder as Record<string, unknown>)[last] = null;
  }
  return root[""];
}

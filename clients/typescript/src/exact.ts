/**
 * JSON without loss. People approve one exact text, but JSON.parse rounds integers beyond 2^53 and reads 1.0 as 1.
 *
 * Integers that a number cannot hold are read as a bigint and sent as one. Where 1 and 1.0 differ, take the exact text.
 */
import { createHash, randomUUID } from "node:crypto";

const STRING = String.raw`"[^"\\]*(?:\\.[^"\\]*)*"`;
const NUMBERS = new RegExp(String.raw`${STRING}|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?`, "gs");
const TOKENS = new RegExp(String.raw`${STRING}|[{}[\],:]`, "gs");
const MARK = randomUUID(); // begins no text of others

/** JSON text that is sent as it stands: `new Exact("1.0")` stays 1.0, whereas the number 1.0 is sent as 1. */
export class Exact {
  constructor(readonly text: string) {
    JSON.parse(text);
  }
}

/** Return the value of a JSON text; integers that a number cannot hold exactly are bigints. Throws SyntaxError. */
export function parse(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const marked = text.replace(NUMBERS, (token) =>
    /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token)) ? `"${MARK}${token}"` : token,
  );
  return JSON.parse(marked, (_, value: unknown) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  );
}

/** Return a value as JSON text. Throws TypeError for what JSON cannot hold: NaN, Infinity, and what holds itself. */
export function stringify(value: unknown): string {
  const texts: string[] = [];
  const text = JSON.stringify(value, (name, each: unknown) => {
    if (typeof each === "number" && !Number.isFinite(each)) {
      throw new TypeError(`${name || "The value"} is ${each}, which JSON cannot hold.`);
    }
    if (typeof each !== "bigint" && !(each instanceof Exact)) return each;
    return MARK + (texts.push(each instanceof Exact ? each.text : String(each)) - 1);
  });
  return (text ?? "null").replace(new RegExp(`"${MARK}(\\d+)"`, "g"), (_, at: string) => texts[Number(at)] ?? "");
}

/** Return the exact text at a place inside a JSON text, or undefined if nothing is there. */
export function textAt(text: string, ...path: (string | number)[]): string | undefined {
  return path.reduce<string | undefined>(
    (part, name) => (part === undefined ? undefined : parts(part).get(String(name))),
    text,
  );
}

/** Compute the digest of a value from its canonical JSON, in hex. */
export function digestOf(canonical: string): string {
  return createHash("sha256").update(`holdpoint value\n${canonical}`).digest("hex");
}

/** Return the exact text of each member of an object, or item of an array, by its name or number. */
function parts(text: string): Map<string, string> {
  const found = new Map<string, string>();
  let [depth, from, name, before] = [0, 0, "", ""];
  for (const { 0: token, index } of text.matchAll(TOKENS)) {
    if (depth === 1 && (token === "," || token === "}" || token === "]")) {
      const part = text.slice(from, index).trim();
      if (part) found.set(text.trimStart().startsWith("[") ? String(found.size) : name, part);
      from = index + 1;
    } else if (depth === 1 && token === ":") {
      name = JSON.parse(before) as string;
      from = index + 1;
    }
    if (token === "{" || token === "[") {
      depth += 1;
      if (depth === 1) from = index + 1;
    } else if (token === "}" || token === "]") {
      depth -= 1;
    }
    before = token;
  }
  return found;
}

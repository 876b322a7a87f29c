/** How a gate ended: the decision, people's changes, and the error for a refusal. */
import { Answered, Expired, type Place, type Refused, Rejected, Withdrawn } from "./errors.js";
import { stringify } from "./exact.js";
import { tokensOf } from "./json-pointer.js";
import type { components } from "./openapi.js";

export type Gate = components["schemas"]["GateDetail"];
export type Outcome = components["schemas"]["OutcomeAnswer"];
export type ActionOutcome = components["schemas"]["ActionOutcomeAnswer"];

/** One operation of a JSON Patch (RFC 6902). */
export interface Edit {
  op: string;
  path: string;
  value?: unknown;
}

/** People's decision: `verdict` approve or edit, `by` whom, and their `comment`. */
export interface Decision {
  verdict: string;
  by: string;
  at: string | undefined;
  comment: string;
}

/** People's answer to a question: `decision` says who decided, `arguments` has the final values. */
export interface Said<A> extends Place {
  decision: Decision;
  arguments: A;
  /** The same as canonical JSON, in which 1 and 1.0 differ. */
  text: string;
  edits: Edit[];
  /** Their changes in words, for a model; empty without changes. */
  changes: string[];
  /** Given instead of a decision, where the question allows it. */
  answer: unknown;
  /** When the same approval was handed out before, as under the same key; an approval is for one use. */
  toldAt?: string;
}

/** Return the error for a gate of which nothing may be done, or undefined. */
export function refused(gate: Gate, actions: string[], place: Place): Refused | undefined {
  const ending = gate.outcome;
  if (!ending) return undefined;
  const about = actions.join(", ");
  if (ending.kind === "expired") {
    return new Expired(notDone(`Nobody answered gate ${place.gate} in time, so ${about} is not done`), place);
  }
  if (ending.kind === "withdrawn") {
    const told = `Gate ${place.gate} was withdrawn, so ${about} is not done: ${ending.feedback}`;
    return new Withdrawn(notDone(told), place, { reason: ending.feedback });
  }
  const words = actions.flatMap((name) => ending.actions[name] ?? []);
  const [first] = words;
  if (words.length === 1 && first?.verdict === "respond") {
    const told = `${first.by} answered instead of ${about}, which is not done.`;
    return new Answered(told, place, first.by, first.response);
  }
  const none = words.length > 0 && words.every((each) => each.verdict === "reject");
  if (ending.kind !== "rejected" && !none) return undefined;
  const reason = [...new Set(words.map((each) => each.reason).filter(Boolean))].join(" ") || ending.feedback;
  const by = words.find((each) => each.by)?.by ?? ending.by;
  const told = `${by} said no to ${about}${reason ? `: ${reason}` : ""}`;
  return new Rejected(notDone(told), place, { by, reason });
}

// A model takes "ask again after 23:50" for an order, and asks until somebody says yes. The server says the same.
const INSTEAD =
  "Do not do it another way. Do not ask for it again unasked: go on without it, or tell the person and ask what they want.";

/** Return what an agent is told of what is not done: why, and what to do instead. */
function notDone(why: string): string {
  return `${sentence(why)} ${INSTEAD}`;
}

/** Return the decision on one action of a gate. */
export function decisionOf(gate: Gate, action: string): Decision {
  const ending = gate.outcome;
  const comments = gate.agreement.voices.filter((each) => each.counts && each.comment).map((each) => each.comment);
  const verdict = ending?.actions[action]?.verdict ?? ending?.kind ?? "";
  return { verdict, by: ending?.by ?? "", at: ending?.at, comment: comments.join("\n") };
}

/** Return people's changes, one line each. */
export function inWords(edits: Edit[]): string[] {
  return edits.map(({ op, path, value }) => {
    const place = tokensOf(path).slice(1).join(".") || "all of it";
    if (op === "remove") return `${place} was taken out`;
    return `${place} ${op === "add" ? "was added:" : "is now"} ${stringify(value)}`;
  });
}

/** Return the text, ended as a sentence. */
export function sentence(said: string): string {
  return /[.!?…]$/.test(said.trimEnd()) ? said.trimEnd() : `${said.trimEnd()}.`;
}

export function editsOf(outcome: Outcome, action: string): Edit[] {
  return (outcome.edits[action] ?? []) as unknown as Edit[];
}

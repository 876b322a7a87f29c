/** Does an approved action: calls the program with the final arguments and the key, and reports what came of it. */
import type { Read } from "./api.js";
import type { Turn } from "./claim.js";
import { type Decision, type Edit, inWords } from "./endings.js";
import { HoldpointError, NotDone, type Place, Problem, Unreachable } from "./errors.js";
import { parse, stringify } from "./exact.js";
import type { Allowed } from "./way.js";

const LONGEST = 2000; // characters of an error
const GENERATOR = /^\[object (Async)?Generator(Function)?\]$/;
const RESULTS = "/api/runs/{run_id}/effects/{effect_id}/results";

/** One approved action. */
export interface Call<A> extends Place {
  name: string;
  /** The arguments as people approved them. Integers that a number cannot hold are bigints. */
  arguments: A;
  /** The same as canonical JSON, in which 1 and 1.0 differ. */
  text: string;
  /** The idempotency key: pass it to the provider. */
  key: string;
  /** How often it was begun under this key, this time included. */
  attempts: number;
  /** People's changes to the arguments: a JSON Patch (RFC 6902). */
  edits: Edit[];
  /** The same in words, for a model; empty without changes. */
  changes: string[];
  decision: Decision;
  /** Aborted once another program has taken the run over: work in progress must not go on. */
  signal: AbortSignal;
  /** Throw if it was: call it right before the outside world. */
  check(): void;
}

/** What a program does with an approved action. What it returns is the result; see NotDone for what it throws. */
export type Work<A, R> = (call: Call<A>) => R | Promise<R>;

/** Do an action and report it. `goesOn`: the run goes on under the same claim. Throws what `work` throws. */
export async function perform<A, R>(allowed: Allowed, work: Work<A, R>, goesOn = false): Promise<[R, Read<Turn>]> {
  const { held } = allowed;
  let [turn, unanswered, holds]: [Read<Turn> | undefined, boolean, boolean] = [undefined, false, false];
  try {
    const result = await work(callOf(allowed));
    refuseUnfinished(allowed.action, result);
    const writes = allowed.undoes ? {} : { [`${allowed.action}_result`]: kept(result) };
    turn = await report(allowed, { status: "done", writes }).catch((error: unknown) => {
      unanswered = error instanceof Unreachable; // the server may know it, and refuses another report then
      throw error;
    });
    holds = goesOn;
    return [result, turn];
  } catch (error) {
    if (!unanswered) turn = await left(allowed, error);
    throw error;
  } finally {
    if (!holds) await (turn?.value.next ? held.release() : held.letGo());
  }
}

function callOf<A>(allowed: Allowed): Call<A> {
  const { held, action, text, effect, edits, decision, gate, run, url } = allowed;
  return {
    gate, run, url, text, edits, decision,
    name: action,
    arguments: parse(text) as A,
    key: effect.key,
    attempts: effect.attempts,
    changes: inWords(edits),
    signal: held.signal,
    check: () => held.signal.throwIfAborted(),
    ...allowed.undoes,
  };
}

interface Result {
  status: "done" | "failed" | "unknown";
  writes?: Record<string, unknown>;
  error?: string;
  retry?: boolean;
}

async function report({ held, effect }: Allowed, result: Result): Promise<Read<Turn>> {
  return held.work(RESULTS, result, { effect_id: effect.id });
}

/** Report an action that ended by an error: failed after NotDone, else unknown, and people are asked. */
async function left(allowed: Allowed, error: unknown): Promise<Read<Turn> | undefined> {
  const failed = error instanceof NotDone;
  try {
    return await report(allowed, {
      status: failed ? "failed" : "unknown",
      error: oneLine(error),
      retry: failed && error.retry,
    });
  } catch (own) {
    if (!(own instanceof HoldpointError)) throw own;
    if (!(own instanceof Problem && own.code === "reported_before")) {
      const { api, run } = allowed.held;
      api.log.warn(`holdpoint: effect ${allowed.effect.id} of run ${run} could not be reported: ${own.message}`);
    }
    return undefined;
  }
}

/** Throw TypeError for a function that yields: calling it runs nothing. */
export function refuseYielding(work: unknown): void {
  if (GENERATOR.test(Object.prototype.toString.call(work))) {
    throw new TypeError("This function yields, so that calling it does nothing. Return the result, or a promise of it.");
  }
}

/** Throw HoldpointError for a generator, whose body runs as far as somebody reads it. */
function refuseUnfinished(name: string, result: unknown): void {
  if (!GENERATOR.test(Object.prototype.toString.call(result))) return;
  throw new HoldpointError(`${name} returned a generator and not its result, so it is not reported as done. Return all that it yields.`);
}

/** Return the result as JSON, or else as text, because it happened either way. */
function kept(result: unknown): unknown {
  try {
    stringify(result);
    return result ?? null;
  } catch {
    return String(result);
  }
}

function oneLine(error: unknown): string {
  const words = error instanceof Error ? error.message : String(error);
  const name = error instanceof Error && !(error instanceof NotDone) ? `${error.name}: ` : "";
  return `${name}${words.split(/\s+/).join(" ").trim()}`.slice(0, LONGEST) || "It failed without a word.";
}

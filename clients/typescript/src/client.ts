/** The client: asks people before something is done, and does it with exactly what they approved. */
import { debuglog } from "node:util";

import { type Answering, Api, type Body, type Log } from "./api.js";
import type { Turn } from "./claim.js";
import type { ActionOutcome, Outcome, Said } from "./endings.js";
import { NotConfigured } from "./errors.js";
import { type Work, perform, refuseYielding } from "./performing.js";
import {
  type Ask, type Asked, type GateOptions, type Options, argumentsOf, batch, question, questions, thread,
} from "./question.js";
import type { Undo } from "./undoing.js";
import { type Waiting, Way } from "./way.js";

/** Where the server is, and how long to wait for it. */
export interface Settings {
  /** The server's address; HOLDPOINT_URL unless given. */
  url?: string;
  /** The agent's token; HOLDPOINT_TOKEN unless given. */
  token?: string;
  /** Seconds for which a request is tried again while the server does not answer: 60. */
  patience?: number;
  /** Seconds after which another process may claim a run if this one has died: 30. */
  lease?: number;
  /** Answers what people ask the program at a gate that it waits for. */
  onQuestion?: Answering;
  /** Where it writes; without it warnings go to the console, and the rest too with NODE_DEBUG=holdpoint. */
  log?: Log;
}

/** An open gate. `id` is all that another process needs to resume; people decide it at `url`. */
export interface Pending {
  id: number;
  run: number;
  url: string;
}

/** What became of several actions. */
export interface Results {
  /** The rejected actions, by name: `by` whom, and the `reason`. */
  refused: Record<string, ActionOutcome>;
  /** People's answers, given instead of an action. */
  answers: Record<string, unknown>;
  /** The result of each action that was done, now or by an earlier process. */
  results: Record<string, unknown>;
}

/** What takes an action back, if people send the run back to before it. */
export interface Undoing<A> {
  undo?: string | Undo<A>;
}

/** Asks people before something is done. All times are in seconds. */
export class Holdpoint {
  /** Every address of the server, with the types of its OpenAPI document. */
  readonly api: Api;

  constructor(settings: Settings = {}) {
    const { patience = 60, lease = 30, onQuestion, log = { info: debuglog("holdpoint"), warn: console.warn } } = settings;
    const url = (settings.url || process.env["HOLDPOINT_URL"] || "").replace(/\/+$/, "").replace(/\/api$/, "");
    const token = settings.token || process.env["HOLDPOINT_TOKEN"] || "";
    if (!/^https?:\/\/./.test(url)) {
      throw new NotConfigured("Give the server's address, http://… or https://…, or set HOLDPOINT_URL.");
    }
    if (!/^[!-~]+$/.test(token)) {
      throw new NotConfigured("Give a token, or set HOLDPOINT_TOKEN. `manage.py token` on the server makes one.");
    }
    this.api = new Api(url, token, { patience, lease, onQuestion, poll: 25 }, log);
  }

  /**
   * Ask whether `name` may be done with these arguments; once people approve, call `work` with what they approved.
   *
   * What `work` returns is reported as the result, and returned. If it throws NotDone, the action failed; if it throws
   * anything else, nobody knows whether it happened, and people are asked. Throws Rejected, Expired, Withdrawn, Stopped,
   * Answered, AlreadyDone (all of them Refused), StillOpen, Unknown, and what `work` throws.
   */
  async approve<A extends object, R>(name: string, args: A, options: Options & Undoing<A>, work: Work<A, R>): Promise<R> {
    needed(work);
    const body = question(name, args, options);
    const asked = argumentsOf(body);
    const { id } = await this.#post(body, options);
    return this.#gone<A, R>(id, options, work, asked);
  }

  /** Ask, and return at once; this process or another resumes by the gate's number. `askOnly`: as `ask`. */
  async defer(name: string, args: object, options: Options & { askOnly?: boolean } = {}): Promise<Pending> {
    const { askOnly, ...more } = options;
    const how = { deferred: true, ...(askOnly && { ask_only: true }) };
    return this.#post({ ...question(name, args, more), ...how }, options);
  }

  /** Ask up to 100 things in one call, a gate each: all are asked, or none. The same `key` again asks nothing new. */
  async deferAll(asked: Asked[], options: { key?: string; signal?: AbortSignal; askOnly?: boolean } = {}): Promise<Pending[]> {
    const { askOnly = false, ...how } = options;
    if (asked.length === 0) return [];
    return (await this.api.post("/api/gates/batches", batch(asked, askOnly), how)).gates.map(pending);
  }

  /**
   * Go on from a gate by its number, whichever process asked and however far it came.
   *
   * If people sent the run back after the action was done, `undo` is called, and people are asked again. Without it
   * ToTakeBack is thrown.
   */
  async resume<A extends object, R>(gate: number, options: Waiting & Undoing<A>, work: Work<A, R>): Promise<R> {
    needed(work);
    return this.#gone<A, R>(gate, options, work);
  }

  /** Ask people without doing anything. Throws Rejected, Expired, Withdrawn, Stopped, StillOpen, NotHandedOut. */
  async ask<A extends object>(name: string, args: A, options: Options = {}): Promise<Said<A>> {
    const body = question(name, args, options);
    const asked = argumentsOf(body);
    const { id } = await this.#post({ ...body, ask_only: true }, options);
    return new Way(this.api, id, options, false, false, asked).said<A>();
  }

  /** Wait for the answer to a question that was deferred; throws what `ask` does. */
  async said<A extends object>(gate: number, waiting: Waiting = {}): Promise<Said<A>> {
    return new Way(this.api, gate, waiting).said<A>();
  }

  /** Ask about several actions at one gate, each with a verdict of its own; `work` does the approved ones, in order. */
  async approveEach<A extends object>(actions: Ask[], options: GateOptions, work: Work<A, unknown>): Promise<Results> {
    needed(work);
    const body = questions(actions, options);
    const asked = argumentsOf(body);
    const { id } = await this.#post(body, options);
    return this.#goneEach<A>(id, options, work, asked);
  }

  /** Ask about several actions, and return at once; go on by `resumeEach`. */
  async deferEach(actions: Ask[], options: GateOptions = {}): Promise<Pending> {
    return this.#post({ ...questions(actions, options), deferred: true }, options);
  }

  /** Go on from a gate with several actions, with those that are not done yet. */
  async resumeEach<A extends object>(gate: number, waiting: Waiting, work: Work<A, unknown>): Promise<Results> {
    needed(work);
    return this.#goneEach<A>(gate, waiting, work);
  }

  /** Withdraw a gate: nothing of it is done. Throws Problem if it is already closed. */
  async withdraw(gate: number, reason = ""): Promise<Outcome> {
    return this.api.post("/api/gates/{gate_id}/withdrawals", { reason }, { path: { gate_id: gate } });
  }

  /** List everything asked inside `work` together, as parts of one conversation. */
  thread<T>(name: string, work: () => T): T {
    return thread(name, work);
  }

  async #gone<A extends object, R>(
    gate: number, options: Waiting & Undoing<A>, work: Work<A, R>, asked?: Record<string, string>,
  ): Promise<R> {
    const { undo } = options;
    for (;;) {
      const allowed = await new Way(this.api, gate, options, false, typeof undo === "function", asked).allowed();
      if (!allowed.undoes) return (await perform(allowed, work))[0];
      await perform(allowed, undo as Work<A, unknown>);
    }
  }

  async #goneEach<A extends object>(
    gate: number, waiting: Waiting, work: Work<A, unknown>, asked?: Record<string, string>,
  ): Promise<Results> {
    const way = new Way(this.api, gate, waiting, true, false, asked);
    await way.decided();
    for (let allowed = await way.following(); allowed; ) {
      const { held } = allowed;
      const [, turn] = await perform(allowed, work, true);
      allowed = await way.following(turn.value.next ? { held, turn } : undefined);
    }
    const results = await way.results();
    const words = Object.entries((await way.read()).outcome?.actions ?? {});
    const of = (verdict: string) => words.filter(([, each]) => each.verdict === verdict);
    const answers = of("respond").map(([name, each]) => [name, each.response]);
    return { refused: Object.fromEntries(of("reject")), answers: Object.fromEntries(answers), results };
  }

  async #post(body: Body<"/api/gates">, { key = "", signal }: GateOptions): Promise<Pending> {
    return pending(await this.api.post("/api/gates", body, { key, signal }));
  }
}

function pending({ gate, run, gate_url: url }: Turn): Pending {
  return { id: gate ?? 0, run, url: url ?? "" };
}

function needed(work: unknown): void {
  if (typeof work !== "function") throw new TypeError("Give a function that does the action once people approve it.");
  refuseYielding(work);
}

/**
 * The way from a gate to an approved effect: wait for people, claim the run, begin the effect.
 *
 * It is the same after a crash. The server knows how far the run came: an effect that was begun and not reported is
 * handed out again under its key if it is idempotent, else people are asked about it, and this waits for their answer.
 */
import { answerQuestions } from "./answering.js";
import { type Api, now, type Read, rest } from "./api.js";
import { bound } from "./binding.js";
import { type Held, type Turn, claim } from "./claim.js";
import { type Decision, type Gate, type Outcome, type Said, decisionOf, editsOf, inWords, refused, sentence } from "./endings.js";
import * as errors from "./errors.js";
import { parse, textAt } from "./exact.js";
import { handedBefore, keptBack } from "./handing.js";
import type { components } from "./openapi.js";
import { againOf } from "./question.js";
import { begunUndo } from "./undoing.js";

/** How long to wait for people, in seconds; without it for ever. `signal` ends the waiting. */
export interface Waiting {
  timeout?: number;
  signal?: AbortSignal;
}

/** An effect that is begun under a claim, with the exact text of its arguments. */
export interface Allowed extends errors.Place {
  held: Held;
  action: string;
  text: string;
  effect: components["schemas"]["Begun"];
  edits: ReturnType<typeof editsOf>;
  decision: Decision;
  /** Where it undoes an action: the result of that. */
  undoes?: { result: unknown };
}

const [FIRST, SLOWEST, AGAIN] = [0.2, 2, 1]; // seconds between two requests
const RESULT = "_result"; // the suffix to an action's id that names its result in the state
const PATH = "/api/gates/{gate_id}";

/** The way of one gate. `each`: its actions are done one after the other. */
export class Way {
  run = 0;
  url = "";
  actions: string[] = [];
  readonly #first: number;
  readonly #until: number;
  readonly #signal: AbortSignal | undefined;

  constructor(
    readonly api: Api,
    public gate: number, // the newest gate that asked
    waiting: Waiting,
    readonly each = false,
    readonly undoes = false, // whether the program can undo what it did
    readonly asked: Record<string, string> = {}, // what this program asks about, by action; none by the gate's number
  ) {
    this.#first = gate;
    this.#until = waiting.timeout === undefined ? Infinity : now() + waiting.timeout;
    this.#signal = waiting.signal;
  }

  /** Return the number of the gate, of its run, and its page. */
  get place(): errors.Place {
    return { gate: this.gate, run: this.run, url: this.url };
  }

  /** Wait for people. Throws StillOpen. */
  async decided(): Promise<void> {
    const gate = await this.#read(this.gate);
    this.#goOnWith(gate.value);
    this.actions = (gate.value.card["actions"] as { id: string }[]).map((each) => each.id);
    if (this.actions.length !== 1 && !this.each) {
      throw new errors.HoldpointError(
        `Gate ${this.gate} asks about ${this.actions.length} actions, and this goes on with one: call resumeEach.`,
      );
    }
    this.api.log.info(`holdpoint: gate ${this.gate} asks: ${sentence(gate.value.title)} ${this.url}`);
    await this.#outcome(this.gate);
  }

  /** Return the only effect, begun. Throws a kind of Refused, StillOpen, Unknown, ToTakeBack, Altered. */
  async allowed(): Promise<Allowed> {
    await this.decided();
    const found = await this.following();
    if (!found) throw await this.ending();
    return found;
  }

  /** Return the next effect, begun; undefined if the run has ended. `from`: a claim already held. */
  async following(from?: { held: Held; turn: Read<Turn> }): Promise<Allowed | undefined> {
    for (let claimed = from; ; claimed = undefined) {
      try {
        claimed ??= await claim(this.api, this.run);
      } catch (error) {
        if (code(error) === "run_ended") return undefined;
        if (code(error) !== "not_claimable") throw error;
        await this.#wait();
        continue;
      }
      const found = await this.#taken(claimed.held, claimed.turn);
      if (found || ["completed", "failed", "cancelled"].includes(claimed.turn.value.status)) return found;
    }
  }

  /** Return people's decision on a question that performs nothing. Throws a kind of Refused, StillOpen, NotHandedOut. */
  async said<A>(): Promise<Said<A>> {
    await this.decided();
    try {
      (await claim(this.api, this.run)).held.letGo();
    } catch (error) {
      if (error instanceof errors.Problem && error.status === 403) throw await keptBack(this.api, this.gate, error);
      if (!["not_claimable", "run_ended"].includes(code(error))) throw error; // it ends by itself
    }
    const [outcome, gate] = await this.#told();
    const refusal = refused(gate.value, this.actions, this.place);
    const about = this.actions.join();
    const known = { ...this.place, decision: decisionOf(gate.value, about) };
    if (refusal instanceof errors.Answered) {
      return { ...known, arguments: {} as A, text: "{}", edits: [], changes: [], answer: refusal.answer };
    }
    if (refusal) throw refusal;
    const edits = editsOf(outcome.value, about);
    const told = textAt(outcome.text, "outcome", "arguments", about) ?? "{}";
    const text = bound(gate, about, told, { asked: this.asked[about], edits });
    const toldAt = await handedBefore(this.api, this.gate);
    return { ...known, arguments: parse(text) as A, text, edits, changes: inWords(edits), answer: undefined, toldAt };
  }

  /** Return the actions' results. Throws why, if the run did not complete. */
  async results(): Promise<Record<string, unknown>> {
    const run = await this.#run();
    if (run.status !== "completed") throw await this.ending();
    const path = { run_id: this.run, seq: run.seq };
    const { state } = await this.api.get("/api/runs/{run_id}/checkpoints/{seq}", { path });
    const found = this.actions.map((name) => [name, state[name + RESULT]] as const);
    return Object.fromEntries(found.filter(([, result]) => result !== undefined && result !== null));
  }

  /** Return the gate as it is now. */
  async read(): Promise<Gate> {
    return (await this.#read(this.gate)).value;
  }

  /** Return why nothing is to be done in a run that has ended. */
  async ending(): Promise<errors.Refused> {
    const [run, gate] = [await this.#run(), await this.read()];
    const refusal = refused(gate, this.actions, this.place);
    const done = run.status === "completed";
    if (done && !(refusal instanceof errors.Answered || refusal instanceof errors.Rejected)) {
      const [results, about] = [await this.results(), this.actions.join(", ")];
      const told = `${about} was already done, once. Use its result.`;
      return new errors.AlreadyDone(told, this.place, this.each ? results : results[about]);
    }
    if (refusal && (done || !(refusal instanceof errors.Answered))) return refusal;
    return new errors.Stopped(`Run ${this.run} is ${run.status}: ${run.reason}`, this.place, { reason: run.reason });
  }

  /** Do what comes next in the run; return undefined to look again. */
  async #taken(held: Held, turn: Read<Turn>): Promise<Allowed | undefined> {
    const { next } = turn.value;
    try {
      let begun: Allowed | undefined;
      if (next?.kind === "effect") begun = await this.#begun(held, turn, next.step);
      if (next?.kind === "undo" && next.undoes) begun = await begunUndo(this, held, next.undoes);
      if (begun) return begun;
      if (next?.kind === "gate") await this.#askedAgain(held, next.step);
    } catch (error) {
      held.letGo();
      if (code(error) !== "stale_token") throw error;
      this.api.log.info(`holdpoint: run ${this.run} was moved meanwhile`);
    }
    held.letGo();
    return undefined;
  }

  async #begun(held: Held, turn: Read<Turn>, step: string): Promise<Allowed | undefined> {
    const begun = await held.work("/api/runs/{run_id}/effects", { step });
    const effect = begun.value.next?.effect;
    if (!effect || begun.value.next?.kind !== "effect") return undefined; // people have to be asked first
    const action = this.each ? step : (this.actions[0] ?? step);
    try {
      const [outcome, gate] = await this.#granting(effect.grant);
      const [edits, decision] = [editsOf(outcome.value, action), decisionOf(gate.value, action)];
      const asked = gate.value.id === this.#first ? this.asked[action] : undefined; // people may have edited it since
      const told = textAt(begun.text, "state", action) ?? textAt(turn.text, "state", action);
      const text = bound(gate, action, told, { asked, edits });
      return { ...this.place, held, action, text, effect, edits, decision };
    } catch (error) {
      if (!(error instanceof errors.Altered)) throw error;
      const body = { status: "failed", error: error.message } as const;
      await held.work("/api/runs/{run_id}/effects/{effect_id}/results", body, { effect_id: effect.id });
      throw error;
    }
  }

  /** Return the outcome and the gate that gave this grant: a later one, where the run was sent back and asked again. */
  async #granting(grant: number | null): Promise<[Read<Outcome>, Read<Gate>]> {
    const told = await this.#told();
    if (grant === null || told[0].value.grants.some((each) => each.id === grant)) return told;
    for (let after = "", more = true; more; ) {
      const query = { subject: `run:${this.run}`, after };
      const page = await this.api.get("/api/events", { query });
      for (const { kind, subject } of page.items) {
        const gate = Number(subject.split(":")[1]);
        if (kind !== "gate.opened" || gate <= this.gate) continue;
        const outcome = await this.api.get(`${PATH}/outcome`, { path: { gate_id: gate } });
        if (outcome.grants.some((each) => each.id === grant)) {
          [this.gate, this.url] = [gate, outcome.url];
          return this.#told();
        }
      }
      [after, more] = [page.next, page.more];
    }
    return told;
  }

  /** Ask again with the same card: the run came back to its gate, and the approval no longer holds. */
  async #askedAgain(held: Held, step: string): Promise<void> {
    const { card } = await this.read();
    const { value } = await held.work("/api/runs/{run_id}/gates", { ...againOf(card), step } as never);
    [this.gate, this.url] = [value.gate ?? this.gate, value.gate_url ?? this.url];
  }

  /** Wait until the run can be claimed again, as far as that is known. Throws StillOpen, Unknown. */
  async #wait(): Promise<void> {
    const asking = (await this.#run()).gates.at(-1);
    if (asking === undefined) {
      if (now() >= this.#until) {
        const told = `Run ${this.run} has another worker now, or pauses. Resume gate ${this.gate} later.`;
        throw new errors.StillOpen(told, this.place);
      }
      return rest(AGAIN, this.#signal);
    }
    const gate = (await this.#read(asking)).value;
    if (gate.kind === "review") {
      this.#goOnWith(gate);
      await this.#outcome(asking);
      return;
    }
    this.api.log.warn(`holdpoint: people are asked at gate ${gate.id}: ${sentence(gate.title)} ${gate.url}`);
    try {
      await this.#outcome(asking);
    } catch (error) {
      if (!(error instanceof errors.StillOpen)) throw error;
      throw new errors.Unknown(
        `People are asked at gate ${gate.id} how to go on: ${sentence(gate.title)} Do not do it again; resume gate ` +
          `${this.gate} later.`,
        { gate: gate.id, run: this.run, url: gate.url },
      );
    }
  }

  /** Return a gate's outcome once it is closed. Throws StillOpen at the end of the time. */
  async #outcome(gate: number): Promise<Outcome> {
    for (let pause = FIRST; ; ) {
      const began = now();
      const { onQuestion, poll } = this.api.habits;
      const wait = Math.max(0, Math.min(onQuestion ? SLOWEST : poll, this.#until - began));
      const [path, query] = [{ gate_id: gate }, { wait: Number(wait.toFixed(3)) }];
      const found = await this.api.get(`${PATH}/outcome`, { path, query, longer: wait, signal: this.#signal });
      if (found.status !== "open") return found;
      await answerQuestions(this.api, gate, this.#signal);
      const at = now();
      if (at >= this.#until) {
        const told = `Gate ${gate} is still open. Resume it by its number later.`;
        throw new errors.StillOpen(told, { gate, run: found.run, url: found.url });
      }
      if (at - began >= wait / 2) {
        pause = FIRST;
        continue;
      }
      await rest(Math.min(pause, this.#until - at), this.#signal); // it was answered at once
      pause = Math.min(2 * pause, SLOWEST);
    }
  }

  #goOnWith(gate: Gate): void {
    [this.gate, this.run, this.url] = [gate.id, gate.run, gate.url];
  }

  async #told(): Promise<[Read<Outcome>, Read<Gate>]> {
    return [await this.api.read(`${PATH}/outcome`, { path: { gate_id: this.gate } }), await this.#read(this.gate)];
  }

  async #read(gate: number): Promise<Read<Gate>> {
    return this.api.read(PATH, { path: { gate_id: gate } });
  }

  async #run(): Promise<components["schemas"]["RunSummary"]> {
    return this.api.get("/api/runs/{run_id}", { path: { run_id: this.run } });
  }
}

function code(error: unknown): string {
  return error instanceof errors.Problem ? error.code : "";
}

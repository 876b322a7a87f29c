/** A claim on a run, kept by heartbeats beside the work until it is released or lost. */
import { hostname } from "node:os";

import { type Address, type Api, type Body, type Read, rest } from "./api.js";
import { HoldpointError, Problem } from "./errors.js";
import type { components } from "./openapi.js";

/** The run's status, and its program's next piece of work. */
export type Turn = components["schemas"]["TurnAnswer"];

type OfRun = Extract<Address<"post">, `/api/runs/{run_id}/${string}`>;
type Work<P extends OfRun> = Omit<NonNullable<Body<P>>, "token">;

const BEAT = 30; // seconds between heartbeats at most: after 90 without one people are told that the program is gone
const LOST = ["stale_token", "run_ended"];

/** A claim, whose token is sent with everything. */
export class Held {
  /** Why the claim was lost, once that is known. */
  lost: Problem | undefined;
  readonly #gone = new AbortController();
  readonly #over = new AbortController();
  #atWork = 0; // requests under way that carry the token

  constructor(
    readonly api: Api,
    readonly run: number,
    readonly token: number,
    readonly lease: number,
  ) {}

  /** Tell by an AbortSignal that the claim is lost: work in progress must not go on. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  /** Send something about the run. It may end the claim before its answer arrives; heartbeats ignore that. */
  async work<P extends OfRun>(address: P, body: Work<P>, path: Record<string, number> = {}): Promise<Read<Turn>> {
    this.#atWork += 1;
    try {
      const sent = { token: this.token, ...body } as unknown as Body<P>;
      const told = (await this.api.write(address, sent, { path: { run_id: this.run, ...path } as never })) as Read<Turn>;
      if (!told.value.next) this.letGo(); // the run waits, or has ended: nobody holds it
      return told;
    } finally {
      this.#atWork -= 1;
    }
  }

  /** Release a run that goes on, so that the next program need not wait for the lease to end. */
  async release(): Promise<void> {
    this.letGo();
    try {
      await this.work("/api/runs/{run_id}/releases", {});
    } catch (error) {
      if (!(error instanceof HoldpointError)) throw error;
      this.api.log.info(`holdpoint: run ${this.run} was not released: ${error.message}`);
    }
  }

  /** Stop the heartbeats. */
  letGo(): void {
    this.#over.abort();
  }

  /** Send heartbeats until the claim is let go of, or lost. */
  async beat(): Promise<void> {
    const { signal } = this.#over;
    const [path, body] = [{ run_id: this.run }, { token: this.token }];
    while (!signal.aborted) {
      try {
        await rest(Math.min(this.lease / 3, BEAT), signal, false); // alone it keeps no program alive
        await this.api.post("/api/runs/{run_id}/heartbeats", body, { path, signal, patience: this.lease / 3 });
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof Problem && LOST.includes(error.code))) {
          this.api.log.warn(`holdpoint: no heartbeat for run ${this.run}: ${String(error)}`);
        } else if (!this.#atWork) {
          this.lost = error;
          this.api.log.warn(`holdpoint: run ${this.run} is lost: ${error.message}`);
          this.#gone.abort(error);
          return;
        }
      }
    }
  }
}

/** Claim a run and keep it by heartbeats. Throws Problem: not_claimable, run_ended. */
export async function claim(api: Api, run: number): Promise<{ held: Held; turn: Read<Turn> }> {
  const { lease } = api.habits;
  const body = { worker: `${hostname()}:${process.pid}`.slice(0, 120), lease };
  const turn = await api.write("/api/runs/{run_id}/claims", body, { path: { run_id: run } });
  const held = new Held(api, run, turn.value.token, lease);
  if (turn.value.next) void held.beat();
  return { held, turn };
}

/**
 * Sends requests until they are answered: the same request under the same key, so that it is done once.
 *
 * Failures that may pass are tried again: no answer, 429, and every 5xx. Every other refusal is final. Addresses, bodies
 * and answers have the types of the server's OpenAPI document.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { BadAnswer, Problem, Unreachable } from "./errors.js";
import { parse, stringify } from "./exact.js";
import type { components, paths } from "./openapi.js";

type Verb = "get" | "post";
type Operation<V extends Verb, P extends keyof paths> = paths[P] extends { [K in V]: infer O } ? O : never;
type Json<R> = R extends { content: { "application/json": infer T } } ? T : never;

/** The addresses that take a method. */
export type Address<V extends Verb> = {
  [P in keyof paths]: paths[P] extends { [K in V]: { responses: unknown } } ? P : never;
}[keyof paths];

/** The answer of an address. */
export type Answer<V extends Verb, P extends Address<V>> =
  Operation<V, P> extends { responses: infer R } ? Json<R[keyof R & (200 | 201)]> : never;

/** The body that an address takes. */
export type Body<P extends Address<"post">> =
  Operation<"post", P> extends { requestBody: { content: { "application/json": infer B } } } ? B : undefined;

type Parameters<V extends Verb, P extends Address<V>, In extends "path" | "query"> =
  Operation<V, P> extends { parameters: { [K in In]?: infer Q } } ? Q : never;

/** Options of a request. `longer`: seconds for which the server may hold it. */
export interface Options<V extends Verb, P extends Address<V>> {
  path?: Parameters<V, P, "path">;
  query?: Parameters<V, P, "query">;
  signal?: AbortSignal | undefined;
  longer?: number;
  patience?: number;
  key?: string;
}

/** Where the client writes: `info` about gates that ask, `warn` about what people should know. */
export type Log = Pick<Console, "info" | "warn">;

/** Limits on waiting, in seconds: `patience` for an answer, `poll` of one request, `lease` of a claim. */
export interface Habits {
  patience: number;
  poll: number;
  lease: number;
  onQuestion?: Answering | undefined;
}

/** A question that somebody put to the program at its open gate. */
export type Question = components["schemas"]["QuestionAnswer"];

/** Answers a question. What it throws is told to people. */
export type Answering = (question: Question) => string | Promise<string>;

/** An answer: its value, and its exact text. */
export interface Read<T> {
  value: T;
  text: string;
}

interface Reply {
  status: number;
  headers: Headers;
  text: string;
}

type Lost = { status: 0; reason: string };

const [FIRST, MOST] = [0.2, 8]; // seconds between attempts: the first pause, and the longest after doubling
const REQUEST = 30; // seconds for one answer
const KEY = /^[!-~]{1,200}$/;

/** Sends requests to one server with one token. */
export class Api {
  readonly #token: string;

  constructor(
    readonly url: string,
    token: string,
    readonly habits: Habits,
    readonly log: Log,
  ) {
    this.#token = token;
  }

  /** Read something. Throws Problem, Unreachable, BadAnswer. */
  async get<P extends Address<"get">>(address: P, options: Options<"get", P> = {}): Promise<Answer<"get", P>> {
    return (await this.read(address, options)).value;
  }

  /** Read something, with its exact text. */
  async read<P extends Address<"get">>(address: P, options: Options<"get", P> = {}): Promise<Read<Answer<"get", P>>> {
    return this.#sent("GET", address, options as Options<Verb, never>);
  }

  /** Do something, once for a key; without one a new key is made. */
  async post<P extends Address<"post">>(
    address: P,
    body: Body<P>,
    options: Options<"post", P> = {},
  ): Promise<Answer<"post", P>> {
    return (await this.write(address, body, options)).value;
  }

  /** Do something, and return the exact text of the answer too. */
  async write<P extends Address<"post">>(
    address: P,
    body: Body<P>,
    options: Options<"post", P> = {},
  ): Promise<Read<Answer<"post", P>>> {
    const key = options.key || randomUUID();
    if (!KEY.test(key)) throw new TypeError("A key has 1 to 200 printable ASCII characters, and no space.");
    const sent = body === undefined ? "" : stringify(body);
    return this.#sent("POST", address, { ...(options as Options<Verb, never>), key }, sent);
  }

  async #sent<T>(method: string, address: string, options: Options<Verb, never>, body = ""): Promise<Read<T>> {
    const { signal, patience = this.habits.patience } = options;
    const url = this.#address(address, options);
    const until = now() + patience;
    for (let pause = FIRST; ; pause = Math.min(2 * pause, MOST)) {
      const told = await this.#attempt(method, url, options, body);
      if (told.status && isFinal(told as Reply)) return read(told as Reply);
      const wait = askedToWait(told) || pause * (0.5 + Math.random() / 2);
      if (now() + wait > until) throw givenUp(told, patience);
      if (pause === 2 * FIRST) {
        this.log.warn(`holdpoint: no usable answer: ${said(told)}. It is tried again for ${patience} s.`);
      }
      await rest(wait, signal);
    }
  }

  #address(address: string, options: Options<Verb, never>): string {
    const path = (options.path ?? {}) as Record<string, unknown>;
    const place = address.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(path[name])));
    const url = new URL(this.url + place);
    for (const [name, value] of Object.entries(options.query ?? {})) {
      if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, String(value));
    }
    return url.href;
  }

  async #attempt(method: string, url: string, options: Options<Verb, never>, body: string): Promise<Reply | Lost> {
    const { signal, key, longer = 0 } = options;
    const limit = AbortSignal.timeout(Math.ceil(1000 * (REQUEST + longer))); // it takes no fraction
    const headers: Record<string, string> = { Authorization: `Bearer ${this.#token}`, Accept: "application/json" };
    if (key) headers["Idempotency-Key"] = key;
    if (body) headers["Content-Type"] = "application/json";
    try {
      const answer = await fetch(url, {
        method,
        headers,
        redirect: "manual", // the token goes to no other server
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
        ...(body && { body }),
      });
      return { status: answer.status, headers: answer.headers, text: await answer.text() };
    } catch (error) {
      signal?.throwIfAborted();
      return { status: 0, reason: reasonOf(error) };
    }
  }
}

/** Return the time in seconds, by a clock that never goes back. */
export function now(): number {
  return performance.now() / 1000;
}

/** Wait so many seconds. Throws the signal's reason once it is aborted. */
export async function rest(seconds: number, signal?: AbortSignal, ref = true): Promise<void> {
  await sleep(1000 * seconds, undefined, { ref, ...(signal && { signal }) }).catch(() => undefined);
  signal?.throwIfAborted();
}

/** Tell whether sending it again is of no use. What people rejected is not asked about again unasked. */
function isFinal({ status, text }: Reply): boolean {
  if (status !== 429) return status < 500;
  const value = parsed(text);
  return isObject(value) && value["code"] === "rejected_before";
}

function read<T>(told: Reply): Read<T> {
  const value = parsed(told.text);
  if ((told.status === 200 || told.status === 201) && value !== undefined) return { value: value as T, text: told.text };
  if (told.status >= 400 && (told.headers.get("content-type") ?? "").includes("problem") && isObject(value)) {
    throw new Problem(told.status, value);
  }
  throw new BadAnswer(`The answer (${told.status}) is not from Holdpoint. Check the address.`);
}

function parsed(text: string): unknown {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function said(told: Reply | Lost): string {
  return "reason" in told ? told.reason : `the server said ${told.status}`;
}

function reasonOf(error: unknown): string {
  const { cause, name, message } = error as Error & { cause?: { code?: string; message?: string } };
  return name === "TimeoutError" ? "it took too long" : (cause?.code ?? cause?.message) || message;
}

/** Return the seconds to wait by Retry-After, in seconds or as a date by the server's clock; 0 without it. */
function askedToWait(told: Reply | Lost): number {
  if (!("headers" in told)) return 0;
  const asked = told.headers.get("retry-after") ?? "";
  if (/^\d+$/.test(asked)) return Number(asked);
  const at = Date.parse(told.headers.get("date") ?? "") || Date.now();
  return Math.max(0, (Date.parse(asked) - at) / 1000) || 0;
}

function givenUp(told: Reply | Lost, patience: number): Error {
  if ("reason" in told) {
    return new Unreachable(
      `No answer within ${patience} s: ${told.reason}. It is unknown whether the last request was done, but nothing is ` +
        "lost: look at the run, or resume by the gate's number once the server is back.",
    );
  }
  const value = parsed(told.text);
  const detail = `The server answered ${told.status} for ${patience} s.`;
  return new Problem(told.status, isObject(value) ? value : { detail });
}

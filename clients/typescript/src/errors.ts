/** The errors of this package. Each message says what to do, so that it can be given to a model; none holds the token. */

/** The base of all errors of this package. */
export class HoldpointError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** Throw it if an approved action certainly did not happen. `retry`: nothing was sent, trying again is safe. */
export class NotDone extends HoldpointError {
  readonly retry: boolean;

  constructor(reason: string, options: { retry?: boolean } = {}) {
    super(reason);
    this.retry = options.retry ?? false;
  }
}

/** The address or the token is missing or malformed. */
export class NotConfigured extends HoldpointError {}

/** No usable answer came in time. The request may have been done: sent again with its key, it is not done twice. */
export class Unreachable extends HoldpointError {}

/** The answer is not from a Holdpoint server that this package knows. */
export class BadAnswer extends HoldpointError {}

/** What the server handed out is not what people approved. Nothing was done. */
export class Altered extends HoldpointError {}

/** One fault of a request: the place, a JSON Pointer or a parameter, and what is wrong with it. */
export interface Fault {
  parameter: string;
  detail: string;
}

/** The server refused the request: its problem document (RFC 9457). docs/api.md says what each `code` asks for. */
export class Problem extends HoldpointError {
  readonly code: string;
  readonly detail: string;
  readonly errors: Fault[];

  constructor(
    readonly status: number,
    document: { code?: unknown; title?: unknown; detail?: unknown; errors?: unknown },
  ) {
    const code = String(document.code ?? "");
    const detail = String(document.detail || document.title || `The server answered ${status}.`);
    const errors = (Array.isArray(document.errors) ? document.errors : []) as Fault[];
    const told = errors.map((each) => `\n  ${each.parameter}: ${each.detail}`).join("");
    super(`${detail} (${[status, code].filter(Boolean).join(" ")})${told}`);
    [this.code, this.detail, this.errors] = [code, detail, errors];
  }
}

/** The gate that an error is about: its number, its run's number, and the page on which people decide. */
export interface Place {
  gate: number;
  run: number;
  url: string;
}

class AtGate extends HoldpointError implements Place {
  readonly gate: number;
  readonly run: number;
  readonly url: string;

  constructor(message: string, place: Place) {
    super(message);
    [this.gate, this.run, this.url] = [place.gate, place.run, place.url];
  }
}

/** The action must not be done. */
export class Refused extends AtGate {
  readonly by: string;
  readonly reason: string;

  constructor(message: string, place: Place, said: { by?: string; reason?: string } = {}) {
    super(message, place);
    [this.by, this.reason] = [said.by ?? "", said.reason ?? ""];
  }
}

/** People said no: `by` whom, and the `reason` in their words. */
export class Rejected extends Refused {}

/** Nobody decided in time. This is no rejection: a person says whether it still matters. */
export class Expired extends Refused {}

/** The gate was closed without an answer; `reason` says why. */
export class Withdrawn extends Refused {}

/** The run ended otherwise: people stopped or cancelled it; `reason` says why. */
export class Stopped extends Refused {}

/** A person answered instead: use `answer` as the result. */
export class Answered extends Refused {
  constructor(
    message: string,
    place: Place,
    by: string,
    readonly answer: unknown,
  ) {
    super(message, place, { by });
  }
}

/** It was already done, once; use `result`. */
export class AlreadyDone extends Refused {
  constructor(
    message: string,
    place: Place,
    readonly result: unknown,
  ) {
    super(message, place);
  }
}

/** The server did not hand out the answer at `gate`, so it allows nothing; the message says why, and what to do. */
export class NotHandedOut extends HoldpointError {
  constructor(
    message: string,
    readonly gate: number,
  ) {
    super(message);
  }
}

/** Nobody has decided before the timeout: resume by `gate` later. */
export class StillOpen extends AtGate {}

/** Nobody knows whether it happened, and people are asked at `gate`: resume later, and do not do it again. */
export class Unknown extends StillOpen {}

/** An effect must be undone first, since people sent the run back to before it: its number, and its key. */
export class ToTakeBack extends AtGate {
  constructor(
    message: string,
    place: Place,
    readonly effect: number,
    readonly key: string,
  ) {
    super(message, place);
  }
}

/** The gates that a program posts. */
import { AsyncLocalStorage } from "node:async_hooks";

import type { Body } from "./api.js";
import { stringify } from "./exact.js";
import { pointerTo } from "./json-pointer.js";
import type { components } from "./openapi.js";
import { type Undo, nameOf } from "./undoing.js";
import type { Waiting } from "./way.js";

type PostGate = Body<"/api/gates">;
type PostedAction = components["schemas"]["PostedAction"];

/** How one action is asked about. */
export interface ActionOptions {
  /** Its title. */
  title?: string;
  /** The arguments that are shown first: names, or JSON Pointers. */
  pinned?: string[];
  /** The JSON Schema of the arguments; the form that people edit is made from it. */
  schema?: Record<string, unknown>;
  /** Whether people may answer instead; or the JSON Schema of their answer. */
  respond?: boolean | Record<string, unknown>;
  /** What undoes it, by name; or, for `approve`, the function that people's sending back calls. */
  undo?: string | Undo<never>;
  /** Whether it may be sent twice under one key. */
  idempotent?: boolean;
  /** The tool's name, if it is not the action's. */
  tool?: string;
  /** How people see arguments, beside their exact values: as a diff or a command, by JSON Pointers to them. */
  draws?: PostedAction["draws"];
}

/** How a gate asks. The members without a comment are those of the server's `PostGate`. */
export interface GateOptions extends Waiting {
  title?: string;
  /** Values that are shown beside the arguments. */
  state?: Record<string, unknown>;
  summary?: string;
  for_whom?: string;
  amount?: string;
  resource?: string;
  risk?: PostGate["risk"];
  reasons?: string[];
  /** People's own words in `state`. */
  quotes?: PostGate["quotes"];
  policy?: string;
  agent?: string;
  team?: string;
  /** The conversation that it is a part of. */
  thread?: string;
  /** The same key again asks nothing new, but goes on with the first gate. */
  key?: string;
}

/** How one action is asked about at a gate of its own. */
export type Options = GateOptions & ActionOptions;

/** One of several actions to ask about at one gate. */
export interface Ask extends ActionOptions {
  name: string;
  arguments?: object;
}

/** One of several gates: with one action, or with `actions`. */
export type Asked = Omit<GateOptions, "key" | "timeout" | "signal"> & (Ask | { actions: Ask[] });

/** Return the body that posts several gates together. Throws TypeError where they are not all for one agent and team. */
export function batch(asked: Asked[], askOnly: boolean): Body<"/api/gates/batches"> {
  const { agent, team } = asked[0] ?? {};
  if (asked.some((each) => each.agent !== agent || each.team !== team)) {
    throw new TypeError("Questions of one call are for one agent and team. Ask those for others in another call.");
  }
  const gates = asked.map(({ agent: _, team: __, ...each }) => {
    if ("actions" in each) return { ...questions(each.actions, each), ...(askOnly && { ask_only: true }) };
    const { name, arguments: given = {}, ...options } = each;
    return { ...question(name, given, options), ...(askOnly && { ask_only: true }) };
  });
  return { agent, team, deferred: true, gates } as Body<"/api/gates/batches">;
}

const OF_CARD = ["title", "summary", "for_whom", "amount", "resource", "risk", "reasons", "quotes"];
const OF_ACTION = ["id", "title", "tool", "pinned", "draws", "verdicts", "schema", "response", "effect", "pointer"];
const THREAD = new AsyncLocalStorage<string>();

/** List everything asked inside `work` together, as parts of one conversation. */
export function thread<T>(name: string, work: () => T): T {
  return THREAD.run(name, work);
}

/** Return the body that posts a gate with one action. */
export function question(name: string, args: object, options: Options): PostGate {
  const { pinned, schema, respond, undo, idempotent, tool, draws, ...gate } = options;
  const { title } = options;
  return questions([{ name, arguments: args, title, pinned, schema, respond, undo, idempotent, tool, draws }], gate);
}

/** Return the body that posts a gate: the same in every process, so that its key is good for all of them. */
export function questions(actions: Ask[], options: GateOptions): PostGate {
  const { timeout: _, signal: __, key: ___, ...words } = options;
  const title = options.title ?? actions[0]?.name ?? "";
  const conversation = options.thread ?? THREAD.getStore() ?? "";
  return { ...words, title, thread: conversation, actions: actions.map(action) } as PostGate;
}

/** Return the arguments that a posted gate asks about, by action, as texts: the caller may change its object meanwhile. */
export function argumentsOf(body: PostGate): Record<string, string> {
  return Object.fromEntries(body.actions.map((each) => [each.id, stringify(each.arguments)]));
}

/** Return what asks the same again, of a gate's card. */
export function againOf(card: Record<string, unknown>): Record<string, unknown> {
  const actions = (card["actions"] as Record<string, unknown>[]).map((each) => only(each, OF_ACTION));
  return { ...only(card, OF_CARD), actions };
}

function only(from: Record<string, unknown>, names: string[]): Record<string, unknown> {
  return Object.fromEntries(names.filter((name) => name in from).map((name) => [name, from[name]]));
}

function action({ name, arguments: given = {}, title, pinned = [], respond, schema, ...more }: Ask): PostedAction {
  const editable = Object.keys(given).length > 0 || schema !== undefined; // without arguments nothing can be edited
  return {
    ...more,
    id: name,
    tool: more.tool ?? name,
    arguments: given as Record<string, unknown>,
    pinned: pinned.map(pointer),
    title,
    schema,
    undo: nameOf(more.undo),
    ...(respond && { verdicts: ["approve", ...(editable ? ["edit"] : []), "reject", "respond"] }),
    ...(typeof respond === "object" && { response: respond }),
  } as PostedAction;
}

function pointer(name: string): string {
  return name.startsWith("/") ? name : pointerTo(name);
}

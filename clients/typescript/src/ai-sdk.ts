/**
 * The Vercel AI SDK: tools whose calls people approve at gates.
 *
 * The SDK stops at a call that needs approval, and its messages hold the request. `answers` asks people, waits, and
 * returns the message that answers the requests; then the SDK calls the tool, which does what people approved. All that
 * a program keeps are its messages: a request has the same gate in every process, and a call that was changed since has
 * none.
 */
import type { FlexibleSchema, ModelMessage, Tool, ToolExecutionOptions, ToolModelMessage, ToolSet } from "ai";
import { asSchema } from "ai";

import type { Holdpoint } from "./client.js";
import { refused } from "./endings.js";
import { AlreadyDone, Answered, HoldpointError } from "./errors.js";
import type { Call } from "./performing.js";
import type { Options } from "./question.js";
import { type Waiting, Way } from "./way.js";

type Words = Omit<Options, "key" | "timeout" | "signal">;
type Content = ToolModelMessage["content"];
type Part = Exclude<ModelMessage["content"], string>[number];
type Given = Parameters<NonNullable<Tool["toModelOutput"]>>[0];
type Output = Awaited<ReturnType<NonNullable<Tool["toModelOutput"]>>>;

/** How the calls of some tools are asked about, by the tool's name: from the arguments that the model gave. */
export type Asks<T extends ToolSet> = { [N in keyof T]?: (input: never) => Words };

/** Tools that ask first, and the answers to what they ask. */
export interface Gated<T extends ToolSet> {
  /** Give these to the SDK. */
  tools: T;
  /** Ask people what the messages still ask, and return the message that answers; undefined if they ask nothing. */
  answers(messages: ModelMessage[], waiting?: Waiting): Promise<ToolModelMessage | undefined>;
}

interface Request {
  approvalId: string;
  toolCallId: string;
  name: string;
  input: object;
  answered: boolean;
}

/** Have people approve the calls of the tools that `asks` names. */
export function gated<T extends ToolSet>(hp: Holdpoint, tools: T, asks: Asks<T>): Gated<T> {
  const ask = async ({ name, input, approvalId }: Request) => {
    const schema = (await asSchema(tools[name]?.inputSchema as FlexibleSchema).jsonSchema) as Record<string, unknown>;
    const words = asks[name]?.(input as never);
    return hp.defer(name, input, { schema, ...words, key: `ai-sdk:${approvalId}` });
  };
  const gatedTool = (name: string, tool: Tool): Tool => ({
    ...tool,
    needsApproval: true,
    ...(tool.toModelOutput && { toModelOutput: (given: Given) => read(tool, given) }),
    execute: async (_: unknown, options: ToolExecutionOptions) => {
      const request = requestsIn(options.messages).filter((each) => each.toolCallId === options.toolCallId).at(-1);
      if (!request) throw new HoldpointError(`${name} was not asked about, so it is not done.`);
      const { id } = await ask(request);
      return performed(hp, id, tool, options);
    },
  });
  const named = Object.entries(tools).map(([name, tool]) => [name, name in asks ? gatedTool(name, tool) : tool]);
  return {
    tools: Object.fromEntries(named) as T,
    async answers(messages, waiting = {}) {
      const open = requestsIn(messages).filter((each) => !each.answered && each.name in asks);
      if (open.length === 0) return undefined;
      const gates = [];
      for (const each of open) gates.push({ request: each, gate: (await ask(each)).id }); // all, before any is awaited
      const content = await Promise.all(gates.map(({ request, gate }) => answerTo(hp, request, gate, waiting)));
      return { role: "tool", content };
    },
  };
}

/** Return the approved call that a gated tool performs: its `key`, its `decision`, and people's `changes`. */
export function callOf(options: ToolExecutionOptions): Call<object> {
  const { call } = options as { call?: Call<object> };
  if (!call) throw new HoldpointError("This tool is not called for an approved call.");
  return call;
}

/** Do what people approved. A change of theirs is told to the model beside the result. */
async function performed(hp: Holdpoint, gate: number, tool: Tool, options: ToolExecutionOptions): Promise<unknown> {
  let begun = false;
  try {
    return await hp.resume(gate, { signal: options.abortSignal }, async (call) => {
      begun = true;
      const result = await last(tool.execute?.(call.arguments, { ...options, call } as ToolExecutionOptions));
      return call.changes.length ? { result, changed_by_people: call.changes } : result;
    });
  } catch (error) {
    if (error instanceof AlreadyDone && !begun) return error.result; // else that is of another call, which the tool made
    if (error instanceof HoldpointError && !(error instanceof AlreadyDone)) throw error;
    const told = error instanceof Error ? error.message : String(error);
    throw new HoldpointError(`Nobody knows whether it happened (${told}), and people are asked. Do not do it again.`);
  }
}

/** Return what the model reads of a tool with an output of its own: that, and people's change beside it. */
async function read(tool: Tool, given: Given): Promise<Output> {
  const { result, changed_by_people: changes, ...more } = (given.output ?? {}) as Record<string, unknown>;
  const changed = Array.isArray(changes) && Object.keys(more).length === 0;
  const own = await (tool.toModelOutput as (given: Given) => Output)(changed ? { ...given, output: result } : given);
  if (!changed) return own;
  const words = `People changed the call: ${changes.join("; ")}.`;
  switch (own.type) {
    case "text":
    case "error-text":
      return { ...own, value: `${own.value}\n${words}` };
    case "json":
    case "error-json":
      return { ...own, value: { result: own.value, changed_by_people: changes } };
    case "content":
      return { ...own, value: [...own.value, { type: "text", text: words }] };
    default:
      return own;
  }
}

async function answerTo(hp: Holdpoint, request: Request, gate: number, waiting: Waiting): Promise<Content[number]> {
  const way = new Way(hp.api, gate, waiting);
  await way.decided();
  const refusal = refused(await way.read(), way.actions, way.place);
  const { approvalId, toolCallId, name } = request;
  if (refusal instanceof Answered) {
    const output = { type: "json", value: refusal.answer as never } as const;
    return { type: "tool-result", toolCallId, toolName: name, output };
  }
  if (refusal) return { type: "tool-approval-response", approvalId, approved: false, reason: refusal.message };
  return { type: "tool-approval-response", approvalId, approved: true };
}

/** Return the approval requests in some messages, each with its call: the last of that id before it. */
function requestsIn(messages: ModelMessage[]): Request[] {
  const calls = new Map<string, { toolName: string; input: unknown }>();
  const found: Request[] = [];
  for (const part of messages.flatMap(({ content }): Part[] => (typeof content === "string" ? [] : content))) {
    if (part.type === "tool-call") calls.set(part.toolCallId, part);
    if (part.type === "tool-approval-request") {
      const { approvalId, toolCallId } = part;
      const call = calls.get(toolCallId);
      const asked = { approvalId, toolCallId, answered: false };
      if (call) found.push({ ...asked, name: call.toolName, input: call.input as object });
    }
    for (const each of found) {
      if (part.type === "tool-approval-response") each.answered ||= part.approvalId === each.approvalId;
      if (part.type === "tool-result") each.answered ||= part.toolCallId === each.toolCallId;
    }
  }
  return found;
}

/** Return what a tool returned; of one that returns several results, the last. */
async function last(returned: unknown): Promise<unknown> {
  const found = await returned;
  if (typeof found !== "object" || found === null || !(Symbol.asyncIterator in found)) return found;
  let result: unknown;
  for await (const each of found as AsyncIterable<unknown>) result = each;
  return result;
}

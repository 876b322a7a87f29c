/** Ask people before your agent acts, and go on with exactly what they approved. */
export type { Address, Answer, Answering, Body, Log, Question } from "./api.js";
export { Api } from "./api.js";
export type { Pending, Results, Settings, Undoing } from "./client.js";
export { Holdpoint } from "./client.js";
export type { ActionOutcome, Decision, Edit, Gate, Outcome, Said } from "./endings.js";
export * from "./errors.js";
export { Exact, digestOf, parse, stringify } from "./exact.js";
export type { components, paths } from "./openapi.js";
export type { Call, Work } from "./performing.js";
export type { ActionOptions, Ask, Asked, GateOptions, Options } from "./question.js";
export { thread } from "./question.js";
export type { Undo } from "./undoing.js";
export type { Waiting } from "./way.js";

/** What people sent back: an effect that has to be undone before the run goes on. */
import type { Read } from "./api.js";
import type { Held, Turn } from "./claim.js";
import { decisionOf } from "./endings.js";
import { ToTakeBack } from "./errors.js";
import { parse, textAt } from "./exact.js";
import type { components } from "./openapi.js";
import type { Call } from "./performing.js";
import type { Allowed, Way } from "./way.js";

/** What undoes an action: it gets the arguments with which that was done, its result, and a key of its own. */
export type Undo<A> = (done: Call<A> & { result: unknown }) => unknown;

type Undone = NonNullable<NonNullable<Turn["next"]>["undoes"]>;

/** Return the name of an undo, which people read; it may be a name already. */
export function nameOf(undo: string | Undo<never> | undefined): string | undefined {
  return typeof undo === "function" ? undo.name || "undo" : undo;
}

/** Begin to undo an effect, if the program can. Throws ToTakeBack where it cannot. */
export async function begunUndo(way: Way, held: Held, undoes: Undone): Promise<Allowed | undefined> {
  const { id, key, undo } = undoes;
  if (!way.undoes) {
    await held.release();
    const told = `People sent run ${way.run} back: take back what was done under the key ${key} first (${undo}).`;
    throw new ToTakeBack(`${told} Begin the undo of effect ${id}, do it, and report it.`, way.place, id, key);
  }
  const begun: Read<Turn> = await held.work("/api/runs/{run_id}/effects", { undoes: id } as never);
  const effect: components["schemas"]["Begun"] | null | undefined = begun.value.next?.effect;
  if (!effect) return undefined;
  const action = way.actions.join();
  const text = textAt(begun.text, "state", action) ?? "{}";
  const result: unknown = parse(textAt(begun.text, "state", `${action}_result`) ?? "null");
  const decision = decisionOf(await way.read(), action);
  return { ...way.place, held, action, text, effect, edits: [], decision, undoes: { result } };
}

/** Hands people's approval of a question out, to one call: it is good for one use. */
import type { Api } from "./api.js";
import { NotHandedOut, Problem } from "./errors.js";

const PATH = "/api/gates/{gate_id}/handouts";

/** Record that the approval of a question is handed out; return when it was before. Throws NotHandedOut. */
export async function handedBefore(api: Api, gate: number): Promise<string | undefined> {
  try {
    const handed = await api.post(PATH, { to: `gate-${gate}` }, { path: { gate_id: gate } });
    return handed.first ? undefined : handed.at;
  } catch (error) {
    throw error instanceof Problem ? await keptBack(api, gate, error) : error;
  }
}

/** Return the error for an answer that the server refused to hand out. */
export async function keptBack(api: Api, gate: number, refusal: Problem): Promise<NotHandedOut> {
  const { code, status, detail } = refusal;
  let told = `The server did not hand out the answer at gate ${gate}, so the call was not made: ${detail}`;
  if (code === "insufficient_scope") {
    told =
      `This token may not work on runs, so the answer at gate ${gate} was not handed out to it and the call was not ` +
      "made. Use a token with the scope runs:work.";
  } else if (status === 404 && !(await handsOut(api, gate))) {
    told =
      `The Holdpoint server is older than this client and cannot hand out the answer at gate ${gate} once, so the call ` +
      "was not made. Update the server, then ask again.";
  }
  return new NotHandedOut(told, gate);
}

/** Tell whether the server knows the address, whose 404 is also for a gate that is hidden: then GET is a 405. */
async function handsOut(api: Api, gate: number): Promise<boolean> {
  try {
    await api.get(PATH as never, { path: { gate_id: gate } } as never);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return error.status !== 404;
  }
  return true;
}

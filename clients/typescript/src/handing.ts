import type { Api } from "./api.js";

/** Record that the approval of a question is handed out; return when it was before. */
export async function handedBefore(api: Api, gate: number): Promise<string | undefined> {
  const handed = await api.post("/api/gates/{gate_id}/handouts", { to: `gate-${gate}` }, { path: { gate_id: gate } });
  return handed.first ? undefined : handed.at;
}

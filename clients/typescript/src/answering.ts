/** Answers the questions that people put to the program at its open gate. */
import type { Api, Question } from "./api.js";
import { Problem } from "./errors.js";

const LONGEST = 8000; // characters of an answer

/** Answer each open question at the gate by the client's `onQuestion`. */
export async function answerQuestions(api: Api, gate: number, signal?: AbortSignal): Promise<void> {
  if (!api.habits.onQuestion) return;
  const path = { gate_id: gate };
  const { items } = await api.get("/api/gates/{gate_id}/questions", { path, signal });
  for (const each of items.filter(({ status, text }) => status === "asked" && text !== null)) {
    const body = { question: each.id, ...(await said(api, each)) };
    try {
      await api.post("/api/gates/{gate_id}/answers", body, { path, signal, key: `answer-${gate}-${each.id}` });
    } catch (error) {
      if (!(error instanceof Problem)) throw error; // another process has answered, or the gate is closed
      api.log.warn(`holdpoint: the answer to question ${each.id} was not taken: ${error.message}`);
    }
  }
}

async function said(api: Api, question: Question): Promise<{ text: string; failed: boolean }> {
  try {
    const text = await api.habits.onQuestion?.(question);
    return { text: (text || "no words").slice(0, LONGEST), failed: !text };
  } catch (error) {
    api.log.warn(`holdpoint: question ${question.id} was not answered: ${String(error)}`);
    return { text: String(error).slice(0, LONGEST) || "no words", failed: true };
  }
}

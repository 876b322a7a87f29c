// An agent of the Vercel AI SDK that pays an invoice once people have allowed it. All it keeps are its messages: stop it
// at any moment and start it again.
import { existsSync, readFileSync, writeFileSync } from "node:fs";

import { generateText, stepCountIs, tool } from "ai";
import { Holdpoint } from "holdpoint";
import { callOf, gated } from "holdpoint/ai-sdk";
import { z } from "zod";

import { model } from "./model.mjs"; // any model of the SDK, such as openai("…")

const file = process.argv[2] ?? "messages.json";
const wire = tool({
  description: "Wire money.",
  inputSchema: z.object({ to: z.string(), amount: z.string() }),
  execute: async (payment, options) => {
    const { key } = callOf(options); // bank.wire(payment, key)
    console.log("wiring", payment.amount, "under", key);
    return { id: "tx_1" };
  },
});

const hp = new Holdpoint(); // HOLDPOINT_URL and HOLDPOINT_TOKEN
const { tools, answers } = gated(hp, { wire }, {
  wire: (/** @type {{ to: string, amount: string }} */ { to, amount }) => ({
    title: `Wire ${amount} to ${to}`,
    pinned: ["amount"],
  }),
});

/** @type {import("ai").ModelMessage[]} */
const messages = existsSync(file)
  ? JSON.parse(readFileSync(file, "utf8"))
  : [{ role: "user", content: "Pay invoice 7: 120.00 to ACME Ltd." }];
for (;;) {
  const answer = await answers(messages); // waits for people, if the model asks for something
  if (answer) messages.push(answer);
  const result = await generateText({ model, tools, messages, stopWhen: stepCountIs(5) });
  messages.push(...result.response.messages);
  writeFileSync(file, JSON.stringify(messages));
  if (result.text) console.log("the agent:", result.text);
  if (!result.content.some((each) => each.type === "tool-approval-request")) break;
}

// A model for the example that needs no key: it asks for one payment, and says what it was told about it.
import { MockLanguageModelV3 } from "ai/test";

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

export const model = new MockLanguageModelV3({
  doGenerate: async ({ prompt }) => {
    const told = prompt.at(-1);
    const result = told?.role === "tool" ? told.content.find((part) => part.type === "tool-result") : undefined;
    return {
      content: result
        ? [{ type: "text", text: `I was told ${JSON.stringify(result.output)}` }]
        : [{ type: "tool-call", toolCallId: "call-1", toolName: "wire", input: '{"to":"ACME Ltd","amount":"120.00"}' }],
      finishReason: { unified: result ? "stop" : "tool-calls", raw: undefined },
      usage,
      warnings: [],
    };
  },
});

// ADK for JavaScript loses results when a call of a batch asks for a confirmation: node adk-confirmation-drops-results.mjs
//
// The model calls `pay` twice. The second call asks for a confirmation. The result of the first call never gets into the session,
// so a model may pay again. The confirmed call does not run either. google/adk-python#6732 is similar.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { installed } from "../hosts.ts";

const { resolve } = createRequire(join(installed("libraries/javascript"), "package.json"));
const { BaseLlm, FunctionTool, InMemoryRunner, LlmAgent } = await import(pathToFileURL(resolve("@google/adk")).href);
const place = { appName: "repro", userId: "user", sessionId: "session" };

class TwoCalls extends BaseLlm {
  async *generateContentAsync({ contents }) {
    const calls = [5, 60].map((amount) => ({ functionCall: { id: `call-${amount}`, name: "pay", args: { amount } } }));
    yield { content: { role: "model", parts: contents.length === 1 ? calls : [{ text: "done" }] } };
  }
}

const pay = new FunctionTool({
  name: "pay",
  description: "Pays.",
  execute: ({ amount }, context) => {
    if (amount < 50 || context.toolConfirmation?.confirmed) return `paid ${amount}`;
    context.requestConfirmation({ hint: "a person decides" });
    return { error: "not yet" };
  },
});

/** Returns the events' parts of a run that starts with this part. */
async function run(part) {
  const events = await Array.fromAsync(runner.runAsync({ ...place, newMessage: { role: "user", parts: [part] } }));
  return events.flatMap(({ content }) => content?.parts ?? []);
}

const agent = new LlmAgent({ name: "payer", model: new TwoCalls({ model: "two-calls" }), tools: [pay] });
const runner = new InMemoryRunner({ agent, appName: place.appName });
await runner.sessionService.createSession(place);
const parts = await run({ text: "pay both" });
const results = parts.flatMap(({ functionResponse }) => functionResponse?.response ?? []);
const request = parts.find(({ functionCall }) => functionCall?.name === "adk_request_confirmation").functionCall;
const answer = { functionResponse: { id: request.id, name: request.name, response: { confirmed: true } } };
const after = await run(answer).catch(({ reason }) => reason);
process.stdout.write(
  `results in the session: ${JSON.stringify(results)}\nafter the confirmation: ${JSON.stringify(after)}\n`,
);

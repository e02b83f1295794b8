/**
 * Goal: the adapter for the Vercel AI SDK guards every form of a tool, and refuses tools that it cannot guard. Method: its tools
 * are called without the SDK, against a stub. test/process/hosts runs the adapter in the SDK, and runs broken adapters.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { guarded } from "../../../adapters/ai-sdk.mjs";

const options = { toolCallId: "c1", messages: [] };

function gateThat(verdict: "ALLOW" | "BLOCK"): any {
  const outcomes: string[] = [];
  const found = {
    verdict,
    reason: "Svc: said so",
    mode: "enforce",
    unreached: false,
    receipt: { seq: 1 },
    approval: null,
  };
  return {
    outcomes,
    check: async () => ({ ...found, allowed: verdict === "ALLOW", escalated: false }),
    outcome: async (_: unknown, status: string) => void outcomes.push(status),
  };
}

async function outputsOf(steps: AsyncIterable<unknown>): Promise<unknown[]> {
  const found = [];
  for await (const each of steps) found.push(each);
  return found;
}

suite("the adapter for the Vercel AI SDK", () => {
  test("a tool that yields keeps its outputs, and yields nothing if the gate refuses", async () => {
    const tool = {
      execute: async function* (input: { readonly amount: number }) {
        yield "paying";
        yield `paid ${input.amount}`;
      },
    };
    const gate = gateThat("ALLOW");
    const tools: any = guarded({ pay: tool }, { gate });
    assert.deepEqual(await outputsOf(tools.pay.execute({ amount: 5 }, options)), ["paying", "paid 5"]);
    assert.deepEqual(gate.outcomes, ["done"]);
    const refused: any = guarded({ pay: tool }, { gate: gateThat("BLOCK") });
    await assert.rejects(outputsOf(refused.pay.execute({ amount: 5 }, options)), /Svc: said so/);
  });

  test("a tool that yields and fails, or that nobody reads to its end, is reported as unknown", async () => {
    const gate = gateThat("ALLOW");
    const fails = {
      execute: async function* () {
        yield "paying";
        throw new Error("broken");
      },
    };
    const tools: any = guarded({ fails }, { gate });
    await assert.rejects(outputsOf(tools.fails.execute({}, options)), /broken/);
    for await (const _ of tools.fails.execute({}, options)) break;
    assert.deepEqual(gate.outcomes, ["unknown", "unknown"]);
  });

  test("a function that returns a stream has its last output as the result", async () => {
    const steps = async function* (): AsyncGenerator<string> {
      yield "paying";
      yield "paid";
    };
    const tools: any = guarded({ pay: { execute: () => steps() } }, { gate: gateThat("ALLOW") });
    assert.equal(await tools.pay.execute({}, options), "paid");
  });

  test("a tool without execute, and a name with a dot, are refused at set-up, each with a sentence", () => {
    const gate = gateThat("ALLOW");
    const tools = { web: { type: "provider" }, "a.b": { execute: () => 1 } };
    assert.throws(() => guarded(tools, { gate }), /web has no execute function.*a\.b has a dot/);
  });

  test("the program's own question for an approval stays", async () => {
    const pay = { execute: () => 1, needsApproval: (input: { readonly amount: number }) => input.amount > 3 };
    const asks: any = guarded({ pay }, { gate: gateThat("ALLOW"), onEscalate: "park" });
    assert.deepEqual(
      [await asks.pay.needsApproval({ amount: 4 }, options), await asks.pay.needsApproval({ amount: 3 }, options)],
      [true, false],
    );
    const refuses = guarded({ pay }, { gate: gateThat("ALLOW") });
    assert.equal(refuses.pay.needsApproval, pay.needsApproval);
  });
});

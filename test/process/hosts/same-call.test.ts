/**
 * Goal: the call that runs is the call that the gate judged, and one verdict lets one call run. Method: each scene uses an adapter
 * with a stub of the gate's client, or with tools of the real framework, and returns what ran. Positive control: each scene also
 * runs with an adapter that lacks the check, and then returns something else.
 */
import assert from "node:assert/strict";
import { cpSync, existsSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { installed } from "../../../adapters/conformance/hosts.ts";
import { root, temporaryFolder } from "../../support/gate.ts";
import { mutatedFile, type Mutation } from "../../support/mutation/mutate.ts";

interface Scene {
  readonly title: string;
  /** A package of the framework, if the scene needs one. */
  readonly framework?: string;
  /** Takes the module of an adapter. Returns what ran. */
  readonly play: (adapters: (name: string) => Promise<any>) => Promise<unknown>;
  readonly expected: unknown;
  /** The check that the broken adapter lacks, and the adapter's file. */
  readonly broken: readonly [file: string, mutation: Mutation];
}

const packages = installed("libraries/javascript");
const { resolve } = createRequire(join(packages, "package.json"));
const load = (name: string): Promise<any> => import(pathToFileURL(resolve(name)).href);

/** A gate that allows amounts under 100. */
const gate = {
  check: async (_: string, { amount }: any) => {
    const [verdict, allowed] = amount < 100 ? ["ALLOW", true] : ["BLOCK", false];
    return {
      verdict,
      allowed,
      escalated: false,
      unreached: false,
      mode: "enforce",
      reason: verdict,
      receipt: { seq: 1 },
    };
  },
  settle: async (verdict: unknown) => verdict,
  outcome: async () => null,
};

const scenes: readonly Scene[] = [
  {
    title: "facts that change the input refuse the call, because a host can have a copy of the first input",
    play: async (adapters) => {
      const facts = ({ input }: any): void => void Object.assign(input, { amount: 5 });
      const { hooks } = (await adapters("claude-agent-sdk")).guarded({}, { gate, facts });
      const call = { tool_name: "Pay", tool_input: { amount: 900 }, tool_use_id: "t1" };
      return (await hooks.PreToolUse[0].hooks[0](call)).hookSpecificOutput.permissionDecision;
    },
    expected: "deny",
    broken: ["guard.mjs", { within: "judge", find: "text === JSON.stringify(call.input)", put: "true" }],
  },
  {
    title: "an input that changes while the gate is asked is refused",
    play: async (adapters) => {
      const ran: unknown[] = [];
      const input = { amount: 5 };
      const check = async (name: string, call: object): Promise<unknown> => {
        const verdict = await gate.check(name, call);
        input.amount = 900;
        return verdict;
      };
      const pay = { execute: ({ amount }: any) => ran.push(amount) };
      const tools = (await adapters("ai-sdk")).guarded({ pay }, { gate: { ...gate, check } });
      await tools.pay.execute(input, { toolCallId: "c1", messages: [] }).catch(() => undefined);
      return ran;
    },
    expected: [],
    broken: ["guard.mjs", { within: "judge", find: "text === JSON.stringify(call.input)", put: "true" }],
  },
  {
    title: "a judgement lets one run start, and refuses the next",
    play: async (adapters) => {
      const guard = (await adapters("guard")).guardOf({ gate });
      const judgement = await guard.judge({ name: "pay", input: { amount: 5 } });
      const run = (): Promise<string> =>
        guard.runJudged(
          judgement,
          () => "ran",
          ({ reason }: any) => reason,
        );
      return [await run(), await run()];
    },
    expected: ["ran", "Svc: the verdict of this call was already used; the action is blocked."],
    broken: ["guard.mjs", { within: "runJudged", find: "used.has(judgement)", put: "false" }],
  },
  {
    title: "a log that fails does not fail a report",
    play: async (adapters) => {
      const log = (): never => assert.fail("the log is full");
      const client = { ...gate, outcome: async () => "not recorded" };
      const guard = (await adapters("guard")).guardOf({ gate: client, log });
      const judgement = await guard.judge({ name: "pay", input: { amount: 5 } });
      return guard.report(judgement, "done").then(
        () => "reported",
        () => "rejected",
      );
    },
    expected: "reported",
    broken: ["guard.mjs", { within: "safely", first: "return log;" }],
  },
  {
    title: "Mastra: a schema that would change the judged input again refuses the call",
    framework: "@mastra/core/tools",
    play: async (adapters) => {
      const ran: unknown[] = [];
      const [{ createTool }, { z }] = await Promise.all(["@mastra/core/tools", "zod"].map(load));
      const tool = (id: string, amount: unknown): object =>
        createTool({
          id,
          description: "Pays.",
          inputSchema: z.object({ amount }),
          execute: async (got: any) => ran.push(got.amount),
        });
      const times10 = z.number().transform((each: number) => 10 * each);
      const own = { pay: tool("pay", z.coerce.number().default(7)), pay10: tool("pay10", times10) };
      const tools = (await adapters("mastra")).guarded(own, { gate });
      await tools.pay.execute({ amount: 5 }, {});
      await tools.pay10.execute({ amount: 50 }, {});
      return ran;
    },
    expected: [5],
    broken: ["mastra.mjs", { within: "isFinal", first: "return true;" }],
  },
  {
    title: "LangChain: a tool with an invoke of its own is refused at set-up",
    framework: "@langchain/core/tools",
    play: async (adapters) => {
      const ran: unknown[] = [];
      const [{ StructuredTool, tool }, { z }] = await Promise.all(["@langchain/core/tools", "zod"].map(load));
      const schema = z.object({ amount: z.number() });
      class Odd extends StructuredTool {
        name = "odd";
        description = "Pays.";
        schema = schema;
        invoke = async ({ amount }: any): Promise<unknown> => ran.push(amount);
        _call = async (): Promise<string> => "never";
      }
      const { guarded } = await adapters("langchain");
      const [pay] = guarded([tool(({ amount }: any) => ran.push(amount), { name: "pay", schema })], { gate });
      await pay.invoke({ amount: 5 });
      try {
        await guarded([new Odd()], { gate })[0].invoke({ amount: 900 });
      } catch (error) {
        ran.push(String(error));
      }
      return ran;
    },
    expected: [
      5,
      "TypeError: svc-gate cannot guard these tools: odd has an invoke of its own, which could act before the gate is asked",
    ],
    broken: ["langchain.mjs", { within: "ownersOf", first: "return 0;" }],
  },
];

for (const { title, framework, play, expected, broken } of scenes)
  test(title, async (t) => {
    if (
      framework !== undefined &&
      !existsSync(join(packages, "node_modules", framework.split("/").slice(0, 2).join("/")))
    )
      return t.skip(`${framework} is not installed: run npm run hosts`);
    assert.deepEqual(await play(adaptersIn(join(root, "adapters"))), expected);
    assert.notDeepEqual(await play(adaptersIn(brokenFolder(t, ...broken))), expected);
    return undefined;
  });

function adaptersIn(folder: string): (name: string) => Promise<any> {
  return (name) => import(pathToFileURL(join(folder, `${name}.mjs`)).href);
}

/** Returns a folder with the adapters, one of them broken. */
function brokenFolder(t: TestContext, file: string, mutation: Mutation): string {
  const folder = join(temporaryFolder(t), "adapters");
  cpSync(join(root, "adapters"), folder, { recursive: true, filter: (path) => !path.endsWith("conformance") });
  writeFileSync(join(folder, file), mutatedFile(join(root, "adapters", file), [mutation]));
  return folder;
}

/**
 * Goal: the plugin for opencode lets a call run only on the gate's ALLOW, in each way that its hooks can be called. Method:
 * a host and a gate that are objects. Positive control: each mutation of the adapter lets a call through that must not run.
 */
import assert from "node:assert/strict";
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import plugin, { guarded } from "../../../adapters/opencode.mjs";
import { control } from "../../support/controls/control.ts";
import { root, temporaryFolder } from "../../support/gate.ts";
import { mutatedFile, type Mutation } from "../../support/mutation/mutate.ts";

type Settings = Parameters<typeof guarded>[0];

const allow = {
  verdict: "ALLOW",
  allowed: true,
  escalated: false,
  unreached: false,
  mode: "enforce",
  reason: "Svc: fine",
  receipt: { seq: 1 },
  approval: null,
};

interface World {
  readonly checks: {
    readonly session: string;
    readonly name: string;
    readonly input: object;
    readonly facts: object;
  }[];
  readonly outcomes: string[];
  readonly config: Record<string, any>;
  readonly call: (tool: string, args: object, sessionID?: string) => Promise<unknown>;
  readonly hooks: Awaited<ReturnType<ReturnType<typeof guarded>>>;
}

/** A host whose session `inner` belongs to `root`, and a gate that gives the verdict. */
async function world(
  verdict: object = allow,
  settings: Partial<Settings> = {},
  permission: unknown = { "*": "deny" },
  adapter: typeof guarded = guarded,
): Promise<World> {
  const checks: World["checks"] = [];
  const outcomes: string[] = [];
  const gate = (session: string): any => ({
    check: async (name: string, input: object, facts: object) => {
      checks.push({ session, name, input, facts });
      return verdict;
    },
    settle: async () => verdict,
    outcome: async (_: object, status: string) => {
      outcomes.push(status);
      return null;
    },
  });
  const sessions: Record<string, object> = { root: { id: "root" }, inner: { id: "inner", parentID: "root" } };
  const client = {
    session: { get: async ({ path: { id } }: any) => ({ data: sessions[id] }) },
    app: { log: async () => undefined },
  };
  const hooks = await adapter({ gate, log: () => undefined, ...settings })({ directory: "/srv/app", client });
  const config: Record<string, any> = { permission, mcp: { other: {}, "a.b": {} } };
  await hooks["config"]?.(config);
  return {
    checks,
    outcomes,
    config,
    hooks,
    call: async (tool, args, sessionID = "root") => {
      const output = { args };
      await hooks["tool.execute.before"]?.({ tool, sessionID, callID: "c1" }, output);
      return output.args;
    },
  };
}

interface Mutant {
  readonly fault: string;
  readonly mutation: Mutation;
  /** Whether a call, a change or a session gets through that must not. */
  readonly letsThrough: (adapter: typeof guarded) => Promise<boolean>;
}

const passes = async (run: Promise<unknown>): Promise<boolean> =>
  run.then(
    () => true,
    () => false,
  );

const mutants: readonly Mutant[] = [
  {
    fault: "lets a BLOCK run",
    mutation: { within: "hooksOf", find: "!judgement.runs", put: "false" },
    letsThrough: async (adapter) => {
      const { call } = await world({ ...allow, allowed: false, mode: "observe" }, { grant: false }, {}, adapter);
      return passes(call("bash", {}));
    },
  },
  {
    fault: "grants while the gate observes",
    mutation: { within: "hooksOf", find: "isGranting && !judgement.grants", put: "false" },
    letsThrough: async (adapter) =>
      passes((await world({ ...allow, mode: "observe" }, {}, undefined, adapter)).call("bash", {})),
  },
  {
    fault: "leaves the arguments open",
    mutation: { within: "fix", find: "freeze(output.args);", put: "" },
    letsThrough: async (adapter) => {
      const args = (await (await world(allow, {}, undefined, adapter)).call("pay", { amount: 5 })) as {
        amount: number;
      };
      return passes(Promise.resolve().then(() => (args.amount = 900)));
    },
  },
  {
    fault: "counts a sub-agent in a session of its own",
    mutation: { within: "rootOf", find: "!data.parentID", put: "true" },
    letsThrough: async (adapter) => {
      const { call, checks } = await world(allow, {}, undefined, adapter);
      await call("bash", {}, "inner");
      return checks[0]?.session !== "root";
    },
  },
  {
    fault: "believes a name that two servers could have",
    mutation: { within: "nameOf", find: "found.length > 1", put: "false" },
    letsThrough: async (adapter) => {
      const { call } = await world(allow, { servers: { o: {}, o_ther: {} } }, undefined, adapter);
      return passes(call("o_ther_pay", {}));
    },
  },
];

/** A copy of the adapter with one change. */
async function mutated(t: TestContext, mutation: Mutation): Promise<typeof import("../../../adapters/opencode.mjs")> {
  const folder = temporaryFolder(t);
  const file = join(root, "adapters", "opencode.mjs");
  cpSync(join(root, "adapters", "guard.mjs"), join(folder, "guard.mjs"));
  writeFileSync(join(folder, "opencode.mjs"), mutatedFile(file, [mutation]));
  return import(pathToFileURL(join(folder, "opencode.mjs")).href);
}

suite("the plugin for opencode", () => {
  test("an ALLOW runs, with the arguments that the gate judged, the folder, and the session of the person", async () => {
    const { call, checks } = await world();
    assert.deepEqual(await call("bash", { command: "ls" }, "inner"), { command: "ls" });
    assert.deepEqual(checks, [{ session: "root", name: "bash", input: { command: "ls" }, facts: { cwd: "/srv/app" } }]);
  });

  for (const [name, verdict] of Object.entries({
    BLOCK: { ...allow, verdict: "BLOCK", allowed: false },
    ESCALATE: { ...allow, verdict: "ESCALATE", allowed: false, escalated: true },
    "an observing gate": { ...allow, mode: "observe" },
    "fail-open": { ...allow, unreached: true, mode: null },
    "no verdict": {},
  }))
    test(`${name} refuses the call`, async () => {
      const { call, checks } = await world(verdict);
      await assert.rejects(call("bash", { command: "ls" }), /Svc: /);
      assert.equal(checks.length, 1);
    });

  test("without grant, an observing gate leaves the call to the host's own permissions", async () => {
    const { call, config } = await world({ ...allow, mode: "observe" }, { grant: false }, { "*": "ask" });
    await call("bash", { command: "ls" });
    assert.deepEqual(config["permission"], { "*": "ask" });
  });

  test("it opens the tools that the settings deny, and keeps other permissions", async () => {
    assert.deepEqual((await world(allow, {}, "deny")).config["permission"], { "*": "allow" });
    const mixed = { "*": "deny", bash: { "rm *": "deny" }, edit: "ask" };
    assert.deepEqual((await world(allow, {}, mixed)).config["permission"], { ...mixed, "*": "allow" });
    assert.deepEqual((await world(allow, {}, { bash: "deny" })).config["permission"], { bash: "deny" });
  });

  test("a later plugin cannot change what the gate judged", async () => {
    const { hooks } = await world();
    const output: { args: any } = { args: { amount: 5, deep: { list: [1] } } };
    await hooks["tool.execute.before"]?.({ tool: "pay", sessionID: "root", callID: "c1" }, output);
    assert.throws(() => (output.args.amount = 900), TypeError);
    assert.throws(() => output.args.deep.list.push(2), TypeError);
    assert.throws(() => (output.args = {}), TypeError);
  });

  test("tools of MCP servers have their server's name, and those of a project's servers are marked", async () => {
    const servers = { kit: { type: "local", command: ["x"] } };
    const { call, checks, config } = await world(allow, { servers });
    for (const tool of ["kit_pay", "other_pay", "a_b_c", "other"]) await call(tool, {});
    const names = checks.map(({ name }) => name);
    assert.deepEqual(names, ["kit.pay", "project:other.pay", "project:a%2Eb.c", "other"]);
    assert.deepEqual(config["mcp"]["kit"], servers.kit);
  });

  test("a name that two servers could have, and a session that the host does not know, are refused", async () => {
    const { call, checks } = await world(allow, { servers: { o: {}, o_ther: {} } });
    await assert.rejects(call("o_ther_pay", {}), /not clear which MCP server/);
    await assert.rejects(call("bash", {}, "unknown"), /does not know the session/);
    assert.equal(checks.length, 0);
  });

  test("a call before the host has given its settings is refused", async () => {
    const hooks = await guarded({ gate: () => assert.fail("asked") })({ directory: "/", client: {} });
    const output = { args: {} };
    const hooked = hooks["tool.execute.before"]?.({ tool: "bash", sessionID: "root", callID: "c" }, output);
    await assert.rejects(hooked ?? Promise.resolve(), /not clear which MCP server/);
  });

  test("the outcome is done after the tool, and unknown after an error; the end of the host waits for it", async () => {
    const { call, hooks, outcomes } = await world();
    await call("bash", {});
    await hooks["tool.execute.after"]?.({ callID: "c1" });
    await call("bash", {});
    const part = { callID: "c1", state: { status: "error" } };
    await hooks["event"]?.({ event: { type: "message.part.updated", properties: { part } } });
    await hooks["dispose"]?.();
    assert.deepEqual(outcomes, ["done", "unknown"]);
  });

  test("a setting that does not exist, and a gate that is not a function, are errors", async () => {
    assert.throws(() => guarded({ gate: {} as never }), TypeError);
    const settings = { gate: () => ({}) as never, onescalate: "wait" };
    await assert.rejects(guarded(settings)({ directory: "/", client: {} }), /unknown setting onescalate/);
  });

  test("options that cannot be used refuse every call, because the host goes on without a plugin that fails", async (t) => {
    const said: string[] = [];
    const client = { app: { log: async ({ body }: any) => void said.push(body.message) } };
    const wrong: any[] = [
      { url: "http://127.0.0.1:9", keyFile: "/nowhere/key", grant: false },
      { onEscalated: "wait" },
      {},
    ];
    for (const options of wrong) {
      const hooks = await plugin.server({ directory: "/", client }, options);
      const call = hooks["tool.execute.before"]?.({ tool: "bash", sessionID: "root", callID: "c1" }, { args: {} });
      await assert.rejects(call ?? Promise.resolve(), /Svc: the plugin's options or its key cannot be used/);
    }
    assert.match(said.join(), /ENOENT.*unknown option onEscalated/);
    const broken = await mutated(t, { within: "started", first: "return hooksWith(host, options);" });
    await assert.rejects(broken.default.server({ directory: "/", client }, wrong[1]), /unknown option/);
  });

  for (const { fault, mutation, letsThrough } of mutants)
    control(`positive control: an adapter that ${fault} is noticed`, async (t) => {
      assert.equal(await letsThrough(guarded), false);
      assert.equal(await letsThrough((await mutated(t, mutation)).guarded), true);
    });
});

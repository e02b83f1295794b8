/**
 * Goal: the adapter for the Claude Agent SDK refuses options under which a call could run without the gate, and grants only on
 * an enforced ALLOW. Method: its options and its callbacks are used without the SDK, against verdicts of a stub.
 * test/process/hosts runs the adapter in the SDK, and runs broken adapters as positive controls.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { guarded } from "../../../adapters/claude-agent-sdk.mjs";

const verdict = {
  verdict: "ALLOW",
  reason: "Svc: fine",
  mode: "enforce",
  unreached: false,
  receipt: { seq: 1 },
  approval: null,
};
type Stub = Omit<typeof verdict, "mode" | "receipt" | "approval"> & {
  readonly mode: string | null;
  readonly receipt: object | null;
  readonly approval: object | null;
};

/** A gate that gets no request. */
const unused: any = { check: () => assert.fail("the gate was asked") };

/** Asks the callback about a call, with a gate that gives these verdicts one after another. */
async function decisionOn(verdicts: readonly Partial<Stub>[], more: object = {}, input: object = {}): Promise<any> {
  const requests: unknown[][] = [];
  const waiting = [...verdicts];
  const gate: any = {
    check: async (...args: unknown[]) => {
      requests.push(args);
      const found = { ...verdict, ...waiting.shift() };
      return { ...found, allowed: found.verdict === "ALLOW", escalated: found.verdict === "ESCALATE" };
    },
  };
  const options: any = guarded({}, { gate, log: () => undefined, ...more });
  const call = { hook_event_name: "PreToolUse", tool_name: "Bash", tool_input: { command: "ls" }, tool_use_id: "t1" };
  const output = await options.hooks.PreToolUse[0].hooks[0]({ ...call, ...input }, "t1", {});
  return { ...output.hookSpecificOutput, asked: requests };
}

suite("the adapter for the Claude Agent SDK", () => {
  test("options that could let a call run without the gate are refused, each with a sentence", () => {
    const wrong: readonly (readonly [options: object, says: RegExp])[] = [
      [{ permissionMode: "acceptEdits" }, /permissionMode must be dontAsk/],
      [{ permissionMode: "bypassPermissions" }, /permissionMode must be dontAsk/],
      [{ allowDangerouslySkipPermissions: true }, /allowDangerouslySkipPermissions/],
      [{ allowedTools: ["Bash"] }, /allowedTools must be empty/],
      [{ canUseTool: async () => ({ behavior: "allow" }) }, /canUseTool/],
      [{ settings: "settings.json" }, /settings must be an object/],
      [{ settings: { permissions: { allow: ["Bash"] } } }, /permissions\.allow must be empty/],
      [{ settings: { disableAllHooks: true } }, /disableAllHooks/],
      [{ mcpServers: { a: { tools: [{ name: "b", permission_policy: "always_allow" }] } } }, /always_allow/],
      [{ agents: { a: { permissionMode: "acceptEdits" } } }, /an agent's permissionMode/],
      [{ sandbox: { autoAllowBashIfSandboxed: true } }, /sandbox/],
      [{ extraArgs: { "dangerously-skip-permissions": null } }, /extraArgs/],
      [{ extraArgs: { "plugin-dir": "x" } }, /extraArgs/],
      [{ plugins: [{ type: "local", path: "x" }] }, /plugins/],
      [{ managedSettings: { permissions: { allow: ["Bash"] } } }, /managedSettings.permissions.allow/],
      [{ managedSettings: { hooks: { PreToolUse: [] } } }, /managedSettings must have no hooks/],
      [{ hooks: { PermissionRequest: [{ hooks: [] }] } }, /PermissionRequest/],
      [{ skills: "all" }, /skills/],
      [{ hooks: { PreToolUse: [{ hooks: [] }] } }, /another PreToolUse hook/],
      [{ toolAliases: { Bash: "x" } }, /toolAliases/],
      [{ tools: ["Bash", "WebSearch"] }, /the provider runs WebSearch/],
      [{ agents: { a: { tools: ["WebSearch"] } } }, /the provider runs WebSearch/],
    ];
    for (const [options, says] of wrong) assert.throws(() => guarded(options, { gate: unused }), says);
    const plain: any = guarded(
      { maxTurns: 3, extraArgs: { debug: null }, mcpServers: { a: { type: "stdio" } } },
      { gate: unused },
    );
    assert.equal(plain.permissionMode, "dontAsk");
    assert.deepEqual(plain.settingSources, []);
    assert.deepEqual(plain.disallowedTools, ["WebSearch"]);
    assert.equal(plain.hooks.PreToolUse[0].onFailure, "block");
  });

  test("only an enforced ALLOW that the gate itself gave is a grant", async () => {
    assert.equal((await decisionOn([{}])).permissionDecision, "allow");
    assert.equal((await decisionOn([{ mode: "assist" }])).permissionDecision, "allow");
    assert.equal((await decisionOn([{ mode: "observe" }])).permissionDecision, undefined);
    assert.equal((await decisionOn([{ unreached: true, mode: null, receipt: null }])).permissionDecision, "deny");
    assert.equal((await decisionOn([{ verdict: "BLOCK" }])).permissionDecision, "deny");
    assert.equal((await decisionOn([{ verdict: "BLOCK" }], { grant: false })).permissionDecision, "deny");
    assert.equal((await decisionOn([{}], { grant: false })).permissionDecision, undefined);
  });

  test("the model does not read why the gate could not be reached", async () => {
    const said = await decisionOn([{ verdict: "BLOCK", unreached: true, reason: "Svc: http://10.0.0.1 refused" }]);
    assert.equal(said.permissionDecisionReason, "Svc: the gate gave no verdict; the action is blocked.");
  });

  test("an ESCALATE is refused with the person's part, and an approved one is checked with its approval", async () => {
    const refused = await decisionOn([{ verdict: "ESCALATE", approval: { id: "a1", next: "wait" } }]);
    assert.match(refused.permissionDecisionReason, /a person decides/);
    const approved = await decisionOn([{ verdict: "ESCALATE", approval: { id: "a1", next: "check" } }, {}]);
    assert.equal(approved.permissionDecision, "allow");
    assert.equal(approved.asked[1][3], "a1");
    const wrong: any = "defer";
    assert.throws(() => guarded({}, { gate: unused, onEscalate: wrong }), /onEscalate/);
  });

  test("facts go with the call, and facts that throw refuse it", async () => {
    const facts = async ({ name }: { readonly name: string }): Promise<object> => ({ of: name });
    assert.deepEqual((await decisionOn([{}], { facts })).asked[0][2], { of: "Bash" });
    const failed = await decisionOn([{}], { facts: () => assert.fail("no facts") });
    assert.equal(failed.permissionDecision, "deny");
    assert.deepEqual(failed.asked, []);
  });

  test("two different tools never have one name at the gate", async () => {
    const nameOf = async (tool_name: string, mcp_server?: object): Promise<unknown> =>
      (await decisionOn([{}], {}, { tool_name, mcp_server })).asked[0]?.[0];
    assert.equal(await nameOf("Bash"), "Bash");
    assert.equal(await nameOf("mcp__kit__pay", { name: "kit", source: "user" }), "kit.pay");
    assert.equal(await nameOf("mcp__kit__pay", { name: "kit", source: "project" }), "project:kit.pay");
    for (const source of ["agent", "plugin", "later", undefined])
      assert.equal(await nameOf("mcp__kit__pay", { name: "kit", source }), "project:kit.pay");
    assert.equal(await nameOf("mcp__project_kit__pay", { name: "project:kit", source: "user" }), "project%3Akit.pay");
    assert.equal(await nameOf("mcp__a_b__c", { name: "a.b", source: "user" }), "a%2Eb.c");
    assert.equal(await nameOf("mcp__a__b__c", { name: "a", source: "user" }), "a.b%5F%5Fc");
    assert.equal(await nameOf("mcp__kit__pay"), undefined);
    assert.equal(await nameOf("mcp__kit__pay", { name: "other", source: "user" }), undefined);
    assert.equal(await nameOf("odd.name"), undefined);
    // With CLAUDE_AGENT_SDK_MCP_NO_PREFIX a tool of an MCP server has the name of a built-in tool.
    assert.equal(await nameOf("Bash", { name: "kit", source: "sdk" }), "kit.Bash");
    assert.equal(await nameOf("Bash", { source: "sdk" }), undefined);
  });
});

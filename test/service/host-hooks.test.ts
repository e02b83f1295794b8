/**
 * Goal: POST /hooks/codex, /hooks/gemini-cli and /hooks/copilot-cli answer every request with a valid key in the form of
 * the host's hooks, and with nothing that the host takes for "go on" unless the gate allowed the call. Method: a gate over
 * HTTP gets the inputs that Codex 0.169.0, Gemini CLI 0.61.0 and Copilot CLI 1.0.102 send. Positive controls: each rule
 * fails on a gate with a planted defect. The test claude-code-hook.test.ts covers the parts that the four routes share.
 */
import assert from "node:assert/strict";
import { runScenarios, type Desk } from "../support/approvals.ts";
import { ask, key, type Answer } from "../support/gate.ts";
import { eventually } from "../support/patience.ts";

interface Host {
  readonly name: "codex" | "copilot-cli" | "gemini-cli";
  /** The hook's input before a call. */
  readonly input: (tool: string, args: object, more?: object) => object;
  /** The hook's input after a call. */
  readonly after: (tool: string, args: object, hasFailed: boolean) => object;
  /** The members that the input cannot lack. */
  readonly needed: readonly string[];
  /** The decision and the reason that the host reads. It reads nothing else of the answer. */
  readonly read: (json: any) => readonly [decision: string, reason: string];
}

const hosts: readonly Host[] = [
  {
    name: "codex",
    input: (tool, args, more = {}) => ({
      session_id: "s",
      turn_id: "t",
      cwd: "/home/a",
      hook_event_name: "PreToolUse",
      model: "m",
      permission_mode: "bypassPermissions",
      tool_name: tool,
      tool_input: args,
      tool_use_id: "call_1",
      ...more,
    }),
    after: (tool, args, hasFailed) => ({
      session_id: "s",
      hook_event_name: "PostToolUse",
      tool_name: tool,
      tool_input: args,
      tool_response: hasFailed ? { content: [], isError: true } : "",
      tool_use_id: "call_1",
    }),
    needed: ["session_id", "hook_event_name", "tool_name", "tool_input"],
    read: ({
      hookSpecificOutput: { hookEventName, permissionDecision, permissionDecisionReason, ...rest },
      ...more
    }) => {
      assert.deepEqual([hookEventName, rest, more], ["PreToolUse", {}, {}]);
      return [permissionDecision, permissionDecisionReason];
    },
  },
  {
    name: "gemini-cli",
    input: (tool, args, more = {}) => ({
      session_id: "s",
      cwd: "/home/a",
      hook_event_name: "BeforeTool",
      timestamp: "2026-11-25T22:56:56.859Z",
      tool_name: tool,
      tool_input: args,
      ...more,
    }),
    after: (tool, args, hasFailed) => ({
      session_id: "s",
      hook_event_name: "AfterTool",
      tool_name: tool,
      tool_input: args,
      tool_response: { llmContent: "", ...(hasFailed && { error: { message: "no" } }) },
    }),
    needed: ["session_id", "hook_event_name", "tool_name", "tool_input"],
    read: ({ decision, reason, ...rest }) => {
      assert.deepEqual(rest, {});
      return [decision, reason];
    },
  },
  {
    name: "copilot-cli",
    input: (tool, args, more = {}) => ({
      sessionId: "s",
      timestamp: 1795646930047,
      cwd: "/home/a",
      toolName: tool,
      toolArgs: args,
      ...more,
    }),
    after: (tool, args, hasFailed) => ({
      sessionId: "s",
      toolName: tool,
      toolArgs: args,
      toolResult: { resultType: hasFailed ? "failure" : "success", textResultForLlm: "" },
    }),
    needed: ["sessionId", "toolName", "toolArgs"],
    read: ({ permissionDecision, permissionDecisionReason, ...rest }) => {
      assert.deepEqual(rest, permissionDecision === undefined ? { decision: "none" } : {});
      return [permissionDecision ?? "none", permissionDecisionReason];
    },
  },
];
const [codex, gemini, copilot] = hosts as [Host, Host, Host];

const any = "{ type: object, additionalProperties: true }";
const contract = `contract: host
platform: { type: object, additionalProperties: true, properties: { cwd: { type: string } } }
tools:
  run:
    input: { type: object, additionalProperties: true, required: [command], properties: { command: { type: string } } }
    otherwise: ALLOW
  bank.pay: { input: ${any}, otherwise: ALLOW }
  bank.pay_now: { input: ${any}, otherwise: ALLOW }
  bank_pay.now: { input: ${any}, otherwise: ALLOW }
rules:
  - { rule: destroys, on: run, when: 'input.command == "rm"', verdict: BLOCK, reason: it destroys }
  - { rule: asks, on: run, when: 'input.command == "pay"', verdict: ESCALATE, reason: it pays }
`;
const options = { contract };

function hooks({ address }: Pick<Desk, "address">, { name }: Host, body: object | string, query = ""): Promise<Answer> {
  return ask({ address }, `/hooks/${name}${query}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

async function decisionOf(host: Host, answer: Promise<Answer>): Promise<readonly [decision: string, reason: string]> {
  const { status, json, text } = await answer;
  assert.equal(status, 200, text);
  return host.read(json);
}

const lastRow = async ({ address }: Desk): Promise<any> =>
  (await ask({ address }, "/receipts?limit=1")).json.receipts[0];

async function nameAtGate(desk: Desk, host: Host, tool: string, more: object = {}, query = ""): Promise<string> {
  const rows = await desk.rows();
  const [decision, reason] = await decisionOf(host, hooks(desk, host, host.input(tool, {}, more), query));
  if ((await desk.rows()) === rows) {
    assert.equal(decision, "deny");
    return reason;
  }
  return (await lastRow(desk)).tool_name;
}

runScenarios("POST /hooks of hosts", [
  ...hosts.map((host) => ({
    rule: `${host.name}: ALLOW is allow, BLOCK is deny with a reason, and ESCALATE is deny with the approval's id`,
    options,
    run: async (desk: Desk) => {
      const [decision] = await decisionOf(host, hooks(desk, host, host.input("run", { command: "ls" })));
      assert.equal(decision, "allow");
      const { platform_state } = await lastRow(desk);
      assert.equal(platform_state.cwd, "/home/a");
      assert.deepEqual(await decisionOf(host, hooks(desk, host, host.input("run", { command: "rm" }))), [
        "deny",
        "Svc: it destroys",
      ]);
      const parked = await hooks(desk, host, host.input("run", { command: "pay" }));
      const [word, reason] = await decisionOf(host, Promise.resolve(parked));
      const id = parked.headers.get("svc-approval");
      const card = `${desk.address}/console/approvals/${id}`;
      const says = `Svc: it pays; a person decides at ${card}: ask again after the decision`;
      assert.deepEqual([word, reason], ["deny", says]);
      assert.equal((await ask(desk, `/approvals/${id}`)).status, 200);
    },
    defect: { within: "decide", module: "http/hook-route", find: 'verdict === "ALLOW"', put: 'verdict !== "BLOCK"' },
  })),
  ...hosts.map((host) => ({
    rule: `${host.name}: an input or an address that cannot be read is deny with a reason`,
    options,
    run: async (desk: Desk) => {
      const whole = host.input("run", { command: "ls" });
      const lacking = host.needed.map((name) => ({ ...whole, [name]: undefined }));
      const odd = host.needed.map((name) => ({ ...whole, [name]: 1 }));
      const repeated = `{"${host.needed.at(-1)}":{},${JSON.stringify(whole).slice(1)}`;
      for (const body of ["", "{", "[]", "null", repeated, ...lacking, ...odd, host.input("Nobody", {})]) {
        const [decision, reason] = await decisionOf(host, hooks(desk, host, body));
        assert.equal(decision, "deny", JSON.stringify(body));
        assert.match(reason, /^Svc: \S/, JSON.stringify(body));
      }
      const words = ["on_escalate=allow", "on_escalate=defer", "wait=0", "other=1", "servers=", "servers=a,a"];
      for (const word of words)
        assert.equal((await decisionOf(host, hooks(desk, host, whole, `?${word}`)))[0], "deny", word);
    },
    defect: {
      within: "answer",
      module: "http/hook-route",
      find: 'sendDecision(hooked, "deny", call.problem)',
      put: 'sendJson(reply, "{}")',
    },
  })),
  {
    rule: "while the gate observes, no answer grants: Copilot gets no decision, and Codex and Gemini cannot be granted anything",
    options: { ...options, mode: "observe" },
    run: async (desk) => {
      for (const command of ["ls", "rm", "pay"]) {
        const words = hosts.map(async (host) => {
          const [decision] = await decisionOf(host, hooks(desk, host, host.input("run", { command })));
          return decision;
        });
        assert.deepEqual(await Promise.all(words), ["allow", "allow", "none"]);
      }
    },
    defect: { within: "decide", module: "http/hook-route", find: 'mode === "observe"', put: "false" },
  },
  {
    rule: "Codex's MCP tools are server.tool, and a name that two pairs have is refused",
    options,
    run: async (desk) => {
      assert.equal(await nameAtGate(desk, codex, "mcp__bank__pay"), "bank.pay");
      assert.equal(await nameAtGate(desk, codex, "mcp__my-bank_2__pay_now"), "my-bank_2.pay_now");
      for (const name of ["mcp__a__b__c", "mcp__a___b", "mcp__a__", "mcp____b", "mcp__a", "mcp__a__b.c", "mcp___a__b"])
        assert.match(await nameAtGate(desk, codex, name), /two MCP servers could have the tool/, name);
      assert.match(await nameAtGate(desk, codex, "bank.pay"), /has a dot/);
    },
    defect: {
      within: "gateName",
      module: "dialects/codex",
      find: "pair.exec(name) ?? []",
      put: 'name.split("__")',
    },
  },
  {
    rule: "Gemini's MCP tools have the names of mcp_context, escaped",
    options,
    run: async (desk) => {
      const context = (server_name: unknown, tool_name: unknown): object => ({
        mcp_context: { server_name, tool_name, command: "node" },
      });
      assert.equal(await nameAtGate(desk, gemini, "mcp_bank_pay", context("bank", "pay")), "bank.pay");
      assert.equal(await nameAtGate(desk, gemini, "mcp_a_b_c", context("a.b", "c__d")), "a%2Eb.c%5F%5Fd");
      assert.equal(await nameAtGate(desk, gemini, "run", context("bank", "pay")), "bank.pay");
      for (const more of [{}, context("bank", 1), context("", "pay"), context("bank", ""), { mcp_context: "bank" }])
        assert.match(await nameAtGate(desk, gemini, "mcp_bank_pay", more), /does not say which MCP server/);
      assert.match(await nameAtGate(desk, gemini, "bank.pay"), /does not say which MCP server/);
    },
    defect: {
      within: "gateName",
      module: "dialects/gemini-cli",
      find: "context === undefined",
      put: "true",
    },
  },
  {
    rule: "Copilot's patch, which is a text, is judged as an object; Codex's and Gemini's texts are refused",
    options,
    run: async (desk) => {
      const patch = '*** Begin Patch\n+"a"\n*** End Patch\n';
      await hooks(desk, copilot, copilot.input("apply_patch", {}, { toolArgs: patch }));
      const { tool_name, tool_input } = await lastRow(desk);
      assert.deepEqual([tool_name, tool_input], ["apply_patch", { patch }]);
      for (const host of [codex, gemini]) {
        const [decision, reason] = await decisionOf(
          host,
          hooks(desk, host, host.input("run", {}, { tool_input: patch })),
        );
        assert.equal(decision, "deny");
        assert.match(reason, /lacks tool_name, tool_input or session_id/);
      }
    },
    defect: { within: "inputOf", module: "http/hook-route", find: "JSON.stringify(textMember)", put: "'\"text\"'" },
  },
  {
    rule: "a text as arguments of any other tool of Copilot is refused, because no rule would see what is in it",
    options,
    run: async (desk) => {
      for (const tool of ["run", "bank-pay"]) {
        const input = copilot.input(tool, {}, { toolArgs: JSON.stringify({ command: "rm" }) });
        const [decision, reason] = await decisionOf(copilot, hooks(desk, copilot, input, "?servers=bank"));
        assert.equal(decision, "deny");
        assert.match(reason, /lacks toolName, toolArgs or sessionId/);
      }
    },
    defect: { within: "inputOf", module: "http/hook-route", find: "textMembers?.get(tool)", put: '"patch"' },
  },
  {
    rule: "a refused name is quoted in the reason: short, and with nothing hidden",
    options,
    run: async (desk) => {
      for (const [host, name] of [
        [codex, "mcp__\u202E"],
        [copilot, "\u202E-"],
      ] as const) {
        const [decision, reason] = await decisionOf(host, hooks(desk, host, host.input(name.padEnd(100_000, "x"), {})));
        assert.equal(decision, "deny");
        assert.ok(reason.length < 300, String(reason.length));
        assert.match(reason, /\\u202e-?xxx/);
      }
    },
    defect: { within: "gateName", module: "dialects/codex", find: "quote(name)", put: "JSON.stringify(name)" },
  },
  {
    rule: "Gemini may give tools of two servers one name: an outcome belongs to the call of its own server",
    options,
    run: async (desk) => {
      const of = (server_name: string, tool_name: string): object => ({ mcp_context: { server_name, tool_name } });
      const name = "mcp_bank_pay_now";
      await hooks(desk, gemini, gemini.input(name, {}, of("bank", "pay_now")));
      await hooks(desk, gemini, gemini.input(name, {}, of("bank_pay", "now")));
      await hooks(desk, gemini, { ...gemini.after(name, {}, false), ...of("bank", "pay_now") });
      const done = async (): Promise<readonly any[]> => (await ask(desk, "/receipts?outcome=done")).json.receipts;
      await eventually("the outcome", async () => (await done()).length >= 1, desk.patienceMs);
      assert.deepEqual(
        (await done()).map(({ tool_name }) => tool_name),
        ["bank.pay_now"],
      );
    },
    defect: {
      within: "identifyCall",
      module: "http/hook-route",
      find: "[tenant, key?.id, dialect.host, session, tool, useId]",
      put: "[tenant, key?.id, dialect.host, session, useId]",
    },
  },
  {
    rule: "Copilot's MCP tools need the list of servers, and a name of none or of two of them is refused",
    options,
    run: async (desk) => {
      const query = "?servers=bank,bank-two,a.b";
      assert.equal(await nameAtGate(desk, copilot, "bank-pay", {}, query), "bank.pay");
      assert.equal(await nameAtGate(desk, copilot, "a.b-c__d", {}, query), "a%2Eb.c%5F%5Fd");
      assert.equal(await nameAtGate(desk, copilot, "bash", {}, query), "bash");
      assert.match(await nameAtGate(desk, copilot, "bank-two-pay", {}, query), /bank and bank-two could both have/);
      for (const name of ["other-pay", "bank-", "bank.pay", "-pay", "b ank"])
        assert.match(await nameAtGate(desk, copilot, name, {}, query), /no listed MCP server has the tool/, name);
      assert.match(await nameAtGate(desk, copilot, "bank-pay"), /no listed MCP server has the tool/);
    },
    defect: {
      within: "gateName",
      module: "dialects/copilot-cli",
      find: "server !== undefined && second === undefined",
      put: "server !== undefined",
    },
  },
  ...hosts.map((host) => ({
    rule: `${host.name}: the hook after a call reports done or unknown, and its answer grants nothing`,
    options,
    run: async (desk: Desk) => {
      for (const [command, hasFailed] of [
        ["one", false],
        ["two", true],
      ] as const) {
        await hooks(desk, host, host.input("run", { command }));
        const { status, text } = await hooks(desk, host, host.after("run", { command }, hasFailed));
        assert.equal(status, 200);
        assert.doesNotMatch(text, /allow/);
      }
      const count = async (status: string): Promise<number> =>
        (await ask(desk, `/receipts?outcome=${status}`)).json.receipts.length;
      const both = async (): Promise<boolean> => (await count("done")) + (await count("unknown")) >= 2;
      await eventually("both outcomes", both, desk.patienceMs);
      assert.deepEqual([await count("done"), await count("unknown")], [1, 1]);
    },
    defect: { within: "reportRun", find: 'run === "done"', put: "true" },
  })),
]);

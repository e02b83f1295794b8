/**
 * Goal: POST /hooks/claude-code answers every request with a valid key in the form of Claude Code's hooks, and says
 * `allow` only for an ALLOW that counts. Method: a gate over HTTP gets the inputs that Claude Code 2.1.332 sends.
 * Positive controls: each rule fails on a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { runScenarios, type Desk } from "../support/approvals.ts";
import { ask, key, type Answer } from "../support/gate.ts";
import { eventually } from "../support/patience.ts";

const contract = `contract: host
platform:
  type: object
  additionalProperties: true
  properties: { cwd: { type: string } }
tools:
  Bash:
    input: { type: object, additionalProperties: true, required: [command], properties: { command: { type: string } } }
    otherwise: ALLOW
  bank.pay: { input: { type: object, additionalProperties: true }, otherwise: ALLOW }
  project:bank.pay: { input: { type: object, additionalProperties: true }, otherwise: BLOCK }
  a%5F%5Fb.c: { input: { type: object, additionalProperties: true }, otherwise: ALLOW }
rules:
  - { rule: destroys, on: Bash, when: 'input.command == "rm"', verdict: BLOCK, reason: it destroys }
  - { rule: asks, on: Bash, when: 'input.command == "pay"', verdict: ESCALATE, reason: it pays }
  - rule: elsewhere
    on: Bash
    when: platform.present && has(platform.cwd) && platform.cwd == "/elsewhere"
    verdict: BLOCK
    reason: it runs elsewhere
`;
const options = { contract };

const input = {
  session_id: "s",
  transcript_path: "/home/a/t.jsonl",
  cwd: "/home/a",
  permission_mode: "dontAsk",
  hook_event_name: "PreToolUse",
  tool_name: "Bash",
  tool_input: { command: "ls" },
  tool_use_id: "toolu_1",
};
const running = (command: string): object => ({ ...input, tool_input: { command } });

function hooks({ address }: Pick<Desk, "address">, body: object | string, query = "", own = key): Promise<Answer> {
  return ask({ address }, `/hooks/claude-code${query}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${own}` },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

/** The decision and its reason. The answer has nothing else. */
async function decisionOf(answer: Promise<Answer>): Promise<readonly [decision: string, reason: string]> {
  const { status, json, text } = await answer;
  assert.equal(status, 200, text);
  assert.deepEqual(Object.keys(json), ["hookSpecificOutput"]);
  const { hookEventName, permissionDecision, permissionDecisionReason, ...rest } = json.hookSpecificOutput;
  assert.deepEqual([hookEventName, rest], ["PreToolUse", {}]);
  return [permissionDecision, permissionDecisionReason];
}

const lastRow = async ({ address }: Desk): Promise<any> =>
  (await ask({ address }, "/receipts?limit=1")).json.receipts[0];

const outcomes = async ({ address }: Desk): Promise<number> =>
  (await ask({ address }, "/receipts?act=outcome")).json.receipts.length;

/** Waits until a call waits for a person. @returns the approval's id */
function pending(desk: Desk): Promise<string> {
  return eventually("a call that waits", async () => {
    const { json } = await desk.as("anna", "/approvals?state=pending");
    return json.approvals[0]?.id as string | undefined;
  });
}

runScenarios("POST /hooks/claude-code", [
  {
    rule: "ALLOW is allow, BLOCK is deny with the reason, and ESCALATE is deny with the approval's id",
    options,
    run: async (desk) => {
      assert.equal((await decisionOf(hooks(desk, input)))[0], "allow");
      assert.deepEqual(await decisionOf(hooks(desk, running("rm"))), ["deny", "Svc: it destroys"]);
      const parked = await hooks(desk, running("pay"));
      const [decision, reason] = await decisionOf(Promise.resolve(parked));
      assert.equal(decision, "deny");
      const id = parked.headers.get("svc-approval");
      assert.equal((await ask(desk, `/approvals/${id}`)).status, 200);
      const card = `${desk.address}/console/approvals/${id}`;
      assert.equal(reason, `Svc: it pays; a person decides at ${card}: ask again after the decision`);
      assert.match((await ask(desk, `/console/approvals/${id}`)).text, /<!doctype html>/i, "the link opens a page");
    },
    defect: {
      within: "decide",
      module: "http/hook-route",
      find: 'verdict === "ALLOW"',
      put: 'verdict !== "BLOCK"',
    },
  },
  {
    rule: "while the gate observes, the answer has no decision: the host's own rules decide",
    options: { ...options, mode: "observe" },
    run: async (desk) => {
      for (const command of ["ls", "rm", "pay"])
        assert.deepEqual(await decisionOf(hooks(desk, running(command))), [undefined, undefined]);
      assert.equal((await lastRow(desk)).verdict, "ESCALATE");
    },
    defect: {
      within: "decide",
      module: "http/hook-route",
      find: 'mode === "observe"',
      put: 'mode === "assist"',
    },
  },
  {
    rule: "in assist mode an allowed call is allow, and a softened BLOCK waits for a person",
    options: { ...options, mode: "assist" },
    run: async (desk) => {
      assert.equal((await decisionOf(hooks(desk, input)))[0], "allow");
      const [decision, reason] = await decisionOf(hooks(desk, running("rm")));
      assert.equal(decision, "deny");
      assert.match(reason, /a person decides/);
    },
    defect: {
      within: "decide",
      module: "http/hook-route",
      find: 'mode === "observe"',
      put: 'mode !== "enforce"',
    },
  },
  {
    rule: "a request that the gate cannot judge is deny, and never an answer that the host takes for none",
    options,
    run: async (desk) => {
      const { tool_input: _, ...incomplete } = input;
      const bodies = [
        "",
        "{",
        "[]",
        "null",
        `{"tool_name":"Bash",${JSON.stringify(input).slice(1)}`, // a repeated member
        incomplete,
        { ...input, tool_input: "ls" },
        { ...input, tool_name: 1 },
        { ...input, session_id: "" },
        { ...input, hook_event_name: "SessionStart" },
        { ...input, tool_name: "mcp__bank__pay" },
        { ...input, tool_name: "mcp__bank__pay", mcp_server: { name: "other" } },
        { ...input, tool_name: "Nobody" },
      ];
      for (const body of bodies) assert.equal((await decisionOf(hooks(desk, body)))[0], "deny", JSON.stringify(body));
      for (const query of ["?on_escalate=allow", "?wait=0", "?wait=1000", "?other=1"])
        assert.equal((await decisionOf(hooks(desk, input, query)))[0], "deny", query);
    },
    defect: {
      within: "answer",
      module: "http/hook-route",
      find: 'sendDecision(hooked, "deny", call.problem)',
      put: 'sendJson(reply, "{}")',
    },
  },
  {
    rule: "the route needs a key with the scope check, and keeps to the key's tools",
    options,
    run: async (desk) => {
      assert.equal((await hooks(desk, input, "", "wrong-key-wrong-key")).status, 401);
      const reader = await desk.operates("/admin/keys", { name: "reader", scopes: ["rules"] });
      assert.equal((await hooks(desk, input, "", reader.json.key)).status, 403);
      const narrow = await desk.operates("/admin/keys", { name: "narrow", scopes: ["check"], tools: ["bank.*"] });
      const rows = await desk.rows();
      const [decision, reason] = await decisionOf(hooks(desk, input, "", narrow.json.key));
      assert.equal(decision, "deny");
      assert.match(reason, /does not cover the tool "Bash"/);
      assert.equal(await desk.rows(), rows);
    },
    defect: {
      within: "Sequencer.#decide",
      find: "submission.context.allowsTool?.(current.prepared.request.toolName) === false",
      put: "false",
    },
  },
  {
    rule: "the receipt has the arguments as they came, the session, the host's facts, and the digest of the hook's input",
    options,
    run: async (desk) => {
      const text = JSON.stringify(running("ls")).replace('"ls"', '"ls", "n": 1.50');
      const answer = await hooks(desk, text);
      assert.equal(answer.headers.get("svc-request"), hash("sha256", text, "hex"));
      const { text: row } = await ask(desk, "/receipts?limit=1");
      assert.match(row, /"tool_input":\{"command":"ls","n":1\.50\}/);
      const { session_id, platform_state, tool_name } = await lastRow(desk);
      assert.deepEqual([session_id, tool_name], ["s", "Bash"]);
      assert.deepEqual(platform_state, { cwd: "/home/a", permission_mode: "dontAsk" });
      const [decision] = await decisionOf(hooks(desk, { ...input, cwd: "/elsewhere", agent_id: "a1" }));
      assert.equal(decision, "deny");
      assert.equal((await lastRow(desk)).platform_state.agent_id, "a1");
    },
    defect: {
      within: "inputOf",
      module: "http/hook-route",
      find: "document.source(names.input)",
      put: "JSON.stringify(Object.fromEntries(document.members.get(names.input)))",
    },
  },
  {
    rule: "a tool of an MCP server is server.tool, a project's server is marked, and two pairs never have one name",
    options,
    run: async (desk) => {
      const call = async (tool: string, server: object): Promise<string> => {
        const [decision] = await decisionOf(hooks(desk, { ...input, tool_name: tool, mcp_server: server }));
        return `${(await lastRow(desk)).tool_name} ${decision}`;
      };
      assert.equal(await call("mcp__bank__pay", { name: "bank", source: "user" }), "bank.pay allow");
      assert.equal(await call("mcp__bank__pay", { name: "bank", source: "project" }), "project:bank.pay deny");
      for (const source of ["agent", "plugin", "later", undefined])
        assert.equal(await call("mcp__bank__pay", { name: "bank", source }), "project:bank.pay deny");
      assert.equal(await call("mcp__a__b__c", { name: "a__b", source: "user" }), "a%5F%5Fb.c allow");
      assert.equal(await call("mcp__a__b__c", { name: "a", source: "user" }), "a.b%5F%5Fc deny");
      assert.equal(await call("mcp__b_nk__pay", { name: "b.nk", source: "user" }), "b%2Enk.pay deny");
      assert.equal(
        await call("mcp__project_bank__pay", { name: "project:bank", source: "user" }),
        "project%3Abank.pay deny",
      );
    },
    defect: {
      within: "gateName",
      module: "dialects/claude-code",
      find: 'ownSources.includes(textIn(server, "source") ?? "")',
      put: 'textIn(server, "source") !== "project"',
    },
  },
  {
    rule: "a tool of an MCP server is never a built-in tool, also if the host writes its name without the server",
    options,
    run: async (desk) => {
      for (const [name, gateName] of [
        ["Bash", "kit.Bash"],
        ["a.b__c", "kit.a%2Eb%5F%5Fc"],
      ]) {
        const call = { ...input, tool_name: name, mcp_server: { name: "kit", source: "sdk" } };
        assert.equal((await decisionOf(hooks(desk, call)))[0], "deny");
        assert.equal((await lastRow(desk)).tool_name, gateName);
      }
      for (const server of [null, "kit", { source: "sdk" }]) {
        const [decision, reason] = await decisionOf(hooks(desk, { ...input, mcp_server: server }));
        assert.equal(decision, "deny");
        assert.match(reason, /does not say which MCP server/);
      }
    },
    defect: {
      within: "gateName",
      module: "dialects/claude-code",
      find: "isBare && server === undefined",
      put: "isBare",
    },
  },
  {
    rule: "a call that a person approved runs when the host asks again, once",
    options,
    run: async (desk) => {
      const id = (await hooks(desk, running("pay"))).headers.get("svc-approval") ?? "";
      assert.equal((await desk.decides("anna", id, "approve")).status, 200);
      const [other] = await decisionOf(hooks(desk, { ...running("pay"), session_id: "other" }));
      assert.equal(other, "deny");
      const changed = { ...input, tool_input: { command: "pay", more: 1 } };
      assert.equal((await decisionOf(hooks(desk, changed)))[0], "deny");
      const [decision, reason] = await decisionOf(hooks(desk, running("pay")));
      assert.equal(decision, "allow");
      assert.match(reason, /^Svc: anna approved this call/);
      assert.equal((await decisionOf(hooks(desk, running("pay"))))[0], "deny");
    },
    defect: { within: "checkAndWait", find: 'first.value.approval?.next === "check"', put: "false" },
  },
  {
    rule: "with wait, the answer comes when a person has decided; with defer, the call is parked",
    options,
    run: async (desk) => {
      const [parked] = await decisionOf(hooks(desk, running("pay"), "?on_escalate=defer"));
      assert.equal(parked, "defer");
      const waiting = decisionOf(hooks(desk, running("pay"), "?on_escalate=wait&wait=30"));
      await desk.decides("anna", await pending(desk), "approve");
      assert.equal((await waiting)[0], "allow");
      const refused = decisionOf(hooks(desk, { ...running("pay"), session_id: "t" }, "?on_escalate=wait&wait=30"));
      await desk.decides("anna", await pending(desk), "deny");
      assert.deepEqual(await refused, ["deny", "Svc: anna denied this call: not today"]);
      const start = performance.now();
      const [late] = await decisionOf(
        hooks(
          desk,
          { ...running("pay"), session_id: "u", tool_input: { command: "pay", n: 1 } },
          "?on_escalate=wait&wait=1",
        ),
      );
      assert.equal(late, "deny");
      assert.ok(performance.now() - start > 900);
    },
    defect: { within: "checkAndWait", find: 'status === "approved"', put: 'status === "used"' },
  },
  {
    rule: "PostToolUse reports done, a failure reports unknown, and neither grants anything",
    options,
    run: async (desk) => {
      await hooks(desk, input);
      await hooks(desk, { ...input, tool_use_id: "toolu_2" });
      // Another tool with the same id is another call.
      const other = {
        tool_name: "mcp__bank__pay",
        mcp_server: { name: "bank", source: "user" },
        tool_use_id: "toolu_1",
      };
      await hooks(desk, { ...input, ...other, hook_event_name: "PostToolUse" });
      // So are other arguments, if the host sends no id.
      const nameless = (command: string): object => ({ ...running(command), tool_use_id: undefined });
      await hooks(desk, nameless("one"));
      await hooks(desk, { ...nameless("two"), hook_event_name: "PostToolUse" });
      for (const [id, event] of [
        ["toolu_1", "PostToolUse"],
        ["toolu_2", "PostToolUseFailure"],
        ["toolu_3", "PostToolUse"],
      ]) {
        const { json } = await hooks(desk, { ...input, tool_use_id: id, hook_event_name: event });
        assert.deepEqual(json, { hookSpecificOutput: { hookEventName: event } });
      }
      await eventually("both outcomes", async () => (await outcomes(desk)) >= 2, desk.patienceMs);
      const done = (await ask(desk, "/receipts?outcome=done")).json.receipts;
      const unknown = (await ask(desk, "/receipts?outcome=unknown")).json.receipts;
      assert.deepEqual([done.length, unknown.length], [1, 1]);
      assert.equal(await outcomes(desk), 2);
    },
    defect: { within: "reportRun", find: 'run === "done"', put: "true" },
  },
]);

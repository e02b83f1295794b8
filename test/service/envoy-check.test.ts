/**
 * Goal: POST /hooks/envoy/{server} answers 200 only for an ALLOW and for messages that carry no call, because Envoy's
 * ext_authz reads only the status. Method: a gate over HTTP gets the questions that Envoy 1.40.0 sends.
 * Positive controls: each rule fails on a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { assertLedgerValid, runScenarios, type Desk } from "../support/approvals.ts";
import { ask, key, type Answer } from "../support/gate.ts";
import type { Mutation } from "../support/mutation/mutate.ts";

const any = "{ type: object, additionalProperties: true }";
const one = (member: string): string => `{ type: object, additionalProperties: true, properties: { ${member} } }`;
const contract = `contract: bank
platform: { type: object, additionalProperties: true }
tools:
  bank.pay: { input: ${one("amount: { type: number }")}, otherwise: ALLOW }
  bank.a%2Eb: { input: ${any}, otherwise: ALLOW }
  bank.stated: { input: ${any}, requires: [{ when: platform.present, reason: nobody said so }], otherwise: ALLOW }
  bank.mcp.resources.read: { input: ${one("uri: { type: string }")}, otherwise: ALLOW }
counters:
  calls: { of: [bank.a%2Eb], per: session }
rules:
  - rule: large
    on: bank.pay
    when: has(input.amount) && input.amount >= 500
    verdict: BLOCK
    reason: "{input.amount} is too much"
  - rule: medium
    on: bank.pay
    when: has(input.amount) && input.amount >= 50 && input.amount < 500
    verdict: ESCALATE
    reason: "{input.amount} is much"
  - { rule: once, on: bank.a%2Eb, when: counters.calls >= 1, verdict: BLOCK, reason: once is enough }
  - rule: secret
    on: bank.mcp.resources.read
    when: '!has(input.uri) || input.uri != "file:///open"'
    verdict: BLOCK
    reason: it is not open
`;
const options = { contract };

type Headers = Readonly<Record<string, string>>;

interface EnvoyRequest {
  readonly headers?: Headers;
  readonly path?: string;
  readonly key?: string;
}

function envoy({ address }: Desk, body: object | string, given: EnvoyRequest = {}): Promise<Answer> {
  return ask({ address }, given.path ?? "/hooks/envoy/bank", {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${given.key ?? key}`,
      "x-envoy-auth-partial-body": "false",
      ...given.headers,
    },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

const request = (method: string, params: object, id: unknown = 7): object => ({ jsonrpc: "2.0", id, method, params });
const calling = (name: string, input: object, more: object = {}): object =>
  request("tools/call", { name, arguments: input, ...more });
const paying = (amount: number): object => calling("pay", { amount });

const lastRow = async ({ address }: Desk): Promise<any> =>
  (await ask({ address }, "/receipts?limit=1")).json.receipts[0];

type Refused = readonly [body: object | string, says: string, headers?: Headers];

/** Messages that the gate refuses without a verdict, with a part of the reason. Each group has a defect of its own. */
const groups: readonly { readonly rule: string; readonly messages: readonly Refused[]; readonly defect: Mutation }[] = [
  {
    rule: "a text that is not one strict JSON object",
    messages: [
      [[paying(5)], "not one strict JSON object"],
      ["", "not one strict JSON object"],
      ["{", "not one strict JSON object"],
      ['{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}', "not one strict JSON object"],
      ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","name":"pay"}}', "not one strict"],
      [`\uFEFF${JSON.stringify(paying(5))}`, "not one strict JSON object"],
    ],
    defect: {
      within: "readMcpMessage",
      find: "readJson(text)",
      put: "readJson(JSON.stringify([JSON.parse(text)].flat()[0]))",
    },
  },
  {
    rule: "a message that is not a request or a notification of JSON-RPC",
    messages: [
      [{ ...paying(5), Method: "ping" }, 'no member "Method"'],
      [{ ...paying(5), jsonrpc: "1.0" }, "not JSON-RPC 2.0"],
      [{ ...paying(5), id: null }, "the id is neither"],
      [{ ...paying(5), id: 1.5 }, "the id is neither"],
      [{ ...paying(5), params: [] }, "the params are not an object"],
      [{ jsonrpc: "2.0", id: 7 }, "the method is missing"],
      [{ jsonrpc: "2.0", id: 7, result: {} }, "an answer to a question of the server"],
      [{ jsonrpc: "2.0", id: 7, error: { code: 1, message: "m" } }, "an answer to a question of the server"],
    ],
    defect: { within: "faultOf", module: "http/mcp-message", first: "return undefined;" },
  },
  {
    rule: "a method that is not listed",
    messages: [
      [{ jsonrpc: "2.0", method: "tools/call", params: { name: "pay" } }, "not one that the gate passes on"],
      [request("notifications/initialized", {}), "not one that the gate passes on"],
      [request("sampling/createMessage", {}), "not one that the gate passes on"],
      [request("tasks/get", {}), "not one that the gate passes on"],
      [request("toString", {}), "not one that the gate passes on"],
    ],
    defect: {
      within: "toMcpCall",
      module: "http/mcp-message",
      find: "if (isHarmless) $then",
      put: "if (isHarmless || !judged.has(method)) return good(undefined);",
    },
  },
  {
    rule: "params that a server could read differently",
    messages: [
      [calling("pay", {}, { task: {} }), 'unknown member "task"'],
      [calling("pay", {}, { inputResponses: {} }), 'unknown member "inputResponses"'],
      [calling("pay", {}, { Name: "other" }), 'unknown member "Name"'],
      [calling("", {}), "a call needs the tool's name"],
      [request("tools/call", { name: 1 }), "a call needs the tool's name"],
      [request("tools/call", { name: "pay", arguments: [] }), "a call needs the tool's name"],
    ],
    defect: { within: "toMcpCall", module: "http/mcp-message", find: "stranger !== undefined", put: "false" },
  },
  {
    rule: "a number that programs read differently",
    messages: [
      [JSON.stringify(paying(5)).replace(":5", ":[{},9007199254740993]"), 'the number "9007199254740993"'],
      [JSON.stringify(paying(5)).replace(":5", ":1e400"), 'the number "1e400"'],
    ],
    defect: { within: "misreadIn", first: "return undefined;" },
  },
  {
    rule: "a header that does not equal the body",
    messages: [
      [paying(5), "the header mcp-method", { "mcp-method": "tools/list" }],
      [paying(5), "the header mcp-name", { "mcp-name": "other" }],
      [paying(5), "the header mcp-name", { "mcp-name": "pay, pay" }],
      [paying(5), "the header mcp-param-amount", { "mcp-param-amount": "6" }],
      [paying(5), "the header mcp-session-id is not one id", { "mcp-session-id": "run-1, run-2" }],
      [paying(5), "the header mcp-session-id is not one id", { "mcp-session-id": "\u00e9" }],
      [
        calling("pay", {}, { _meta: { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } }),
        "the header mcp-protocol-version",
        { "mcp-protocol-version": "2025-11-25" },
      ],
    ],
    defect: { within: "headerFault", first: "return undefined;" },
  },
  {
    rule: "a body that Envoy has cut",
    messages: [
      [paying(5), "did not send the whole body", { "x-envoy-auth-partial-body": "true" }],
      [paying(5), "did not send the whole body", { "x-envoy-auth-partial-body": "" }],
    ],
    defect: { within: "envoyCheck", find: 'request.headers["x-envoy-auth-partial-body"] === "false"', put: "true" },
  },
];
const refused = groups.flatMap(({ messages }) => messages);

runScenarios("POST /hooks/envoy/{server}", [
  {
    rule: "an ALLOW is 200; a BLOCK and an ESCALATE are 403 with a result that the model reads",
    options,
    run: async (desk) => {
      assert.equal((await envoy(desk, paying(5))).status, 200);
      for (const [amount, says] of [
        [900, /^Svc: 900 is too much$/],
        [
          75,
          /^Svc: 75 is much; a person decides at http:\/\/127[.]0[.]0[.]1:\d+\/console\/approvals\/apr_\w+: ask again after/,
        ],
      ] as const) {
        const { status, json } = await envoy(desk, paying(amount));
        const [{ text }] = json.result.content;
        assert.deepEqual([status, json.jsonrpc, json.id, json.result.isError], [403, "2.0", 7, true]);
        assert.match(text, says);
      }
      const unknown = await envoy(desk, calling("other", {}));
      assert.equal(unknown.status, 403);
      assert.match(unknown.json.result.content[0].text, /unknown tool/);
    },
    defect: { within: "envoyCheck", find: 'verdict === "ALLOW"', put: 'verdict !== "BLOCK"' },
  },
  {
    rule: "while the gate observes, nothing is refused, and each message that enforce mode would refuse has a row",
    options: { ...options, mode: "observe" },
    run: async (desk) => {
      for (const amount of [5, 75, 900]) assert.equal((await envoy(desk, paying(amount))).status, 200);
      assert.equal((await lastRow(desk)).verdict, "BLOCK");
      for (const [body, says, headers = {}] of refused) {
        const before = await desk.rows();
        assert.equal((await envoy(desk, body, { headers })).status, 200, JSON.stringify(body));
        assert.equal(await desk.rows(), before + 1);
        const { tool_name, tool_input, verdict } = await lastRow(desk);
        assert.deepEqual([tool_name, verdict], ["bank.mcp.refused", "BLOCK"]);
        assert.ok(tool_input.reason.includes(says), tool_input.reason);
      }
    },
    defect: { within: "envoyCheck", find: 'answer.ok && answer.value.mode === "observe"', put: "false" },
  },
  {
    rule: "[P5] while the gate observes, a stop refuses each message that may be a call in its scope, and no other",
    options: { ...options, mode: "observe" },
    run: async (desk) => {
      const unread: readonly Refused[] = [
        ...refused,
        [paying(5), "over 256 bytes", { "mcp-session-id": "s".repeat(257) }],
        [calling("p".repeat(300), {}), "over 256 bytes"],
      ];
      // The operator's key asks; a key of another name, and a tool of another server, are beside the point.
      const session = (name: string): object => ({ session: { key: name, id: "run-1" } });
      const cases: readonly (readonly [scope: unknown, covers: boolean])[] = [
        ["all", true],
        [{ key: "default" }, true],
        [{ key: "another" }, false],
        [{ tools: ["bank.pay"] }, true],
        [{ tools: ["bank.unknown"] }, true],
        [{ tools: ["shop.pay"] }, false],
        [{ tools: ["bank"] }, false],
        [session("default"), true],
        [session("another"), false],
      ];
      for (const [scope, covers] of cases) {
        assert.equal((await desk.operates("/admin/stop", { scope, why: "a drill" })).status, 200);
        for (const [body, , headers = {}] of unread) {
          const { status, text } = await envoy(desk, body, { headers });
          assert.equal(status, covers ? 403 : 200, `${JSON.stringify(scope)}: ${JSON.stringify(body)}: ${text}`);
        }
        const { verdict, answered, mode, reason } = await lastRow(desk);
        const blocked = {
          verdict: "BLOCK",
          answered: covers ? "BLOCK" : "ALLOW",
          mode: covers ? "enforce" : "observe",
        };
        assert.deepEqual({ verdict, answered, mode }, blocked, reason);
        const harmless = await envoy(desk, request("tools/list", {}));
        assert.equal(harmless.status, 200, "a message without a call passes");
        const lifted = await desk.operates("/admin/stop/lift", { scope });
        assert.deepEqual([lifted.status, lifted.json.stops], [200, []]);
      }
      for (const [body, , headers = {}] of unread) assert.equal((await envoy(desk, body, { headers })).status, 200);
      await assertLedgerValid(desk);
    },
    defect: [{ within: "envoyCheck", find: "{ unreadFor: server }", put: "{}" }],
  },
  {
    rule: "[P5] while the gate observes, a stop refuses the unread messages to each server that has a name of the tool",
    options: { ...options, mode: "observe" },
    run: async (desk) => {
      await desk.operates("/admin/stop", { scope: { tools: ["payments.send"] }, why: "a drill" });
      const aliased = contract.replace("  bank.pay: {", "  bank.pay: { aliases: [payments.send, cash.out],");
      writeFileSync(join(desk.folder, "contracts", "pay.yaml"), aliased);
      assert.equal((await desk.operates("/admin/reload", {})).status, 200);
      for (const [server, status] of Object.entries({ bank: 403, payments: 403, cash: 403, shop: 200 }))
        assert.equal((await envoy(desk, [], { path: `/hooks/envoy/${server}` })).status, status, server);
      await assertLedgerValid(desk);
    },
    defect: [
      { within: "stopOf", find: "aliases.get(name) ?? name", put: "name" },
      { within: "stopOf", find: "other.startsWith(start)", put: "false" },
    ],
  },
  {
    rule: "while the gate observes, a call that no row can have passes too: its session or its tool is too long",
    options: { ...options, mode: "observe" },
    run: async (desk) => {
      for (const [body, headers, says] of [
        [paying(5), { "mcp-session-id": "s".repeat(257) }, /"session_id" is over 256 bytes/],
        [[], { "mcp-session-id": "s".repeat(257) }, /not one strict JSON object/],
        [calling("p".repeat(300), {}), {}, /"tool_name" is over 256 bytes/],
      ] as const) {
        const { status, text } = await envoy(desk, body, { headers });
        assert.equal(status, 200, text);
        const { tool_name, tool_input, verdict, session_id } = await lastRow(desk);
        assert.deepEqual([tool_name, verdict, session_id], ["bank.mcp.refused", "BLOCK", null]);
        assert.match(tool_input.reason, says);
      }
    },
    defect: {
      within: "envoyCheck",
      find: "refuseUnjudged(answer.problem)",
      put: "refuseMessage(reply, message, answer.problem)",
    },
  },
  {
    rule: "in assist mode an allowed call is 200, and a softened BLOCK waits for a person",
    options: { ...options, mode: "assist" },
    run: async (desk) => {
      assert.equal((await envoy(desk, paying(5))).status, 200);
      const { status, json } = await envoy(desk, paying(900));
      assert.equal(status, 403);
      assert.match(json.result.content[0].text, /a person decides/);
      assert.equal((await envoy(desk, [])).status, 403);
    },
    defect: { within: "envoyCheck", find: 'verdict === "ALLOW"', put: 'verdict !== "BLOCK"' },
  },
  ...groups.map(({ rule, messages, defect }) => ({
    rule: `${rule} is 403 and has no row`,
    options,
    run: async (desk: Desk) => {
      const rows = await desk.rows();
      for (const [body, says, headers = {}] of messages) {
        const { status, json, text } = await envoy(desk, body, { headers });
        assert.equal(status, 403, JSON.stringify(body));
        assert.ok((json.error?.message ?? json.result.content[0].text).includes(says), text);
      }
      assert.equal(await desk.rows(), rows);
    },
    defect,
  })),
  {
    rule: "messages that carry no call pass, and have no row",
    options,
    run: async (desk) => {
      const rows = await desk.rows();
      for (const method of ["initialize", "ping", "server/discover", "tools/list", "resources/list", "prompts/list"])
        assert.equal((await envoy(desk, request(method, {}))).status, 200, method);
      assert.equal((await envoy(desk, { jsonrpc: "2.0", id: "a", method: "ping" })).status, 200);
      for (const method of ["notifications/initialized", "notifications/cancelled", "notifications/progress"])
        assert.equal((await envoy(desk, { jsonrpc: "2.0", method, params: {} })).status, 200, method);
      assert.equal(await desk.rows(), rows);
    },
    defect: { within: "harmlessNotifications", value: "new Set()" },
  },
  {
    rule: "the server's name comes from the path, and the channels that carry data are tools",
    options,
    run: async (desk) => {
      assert.equal((await envoy(desk, calling("a.b", {}))).status, 200);
      assert.equal((await lastRow(desk)).tool_name, "bank.a%2Eb");
      assert.equal((await envoy(desk, calling("pay", {}), { path: "/hooks/envoy/other" })).status, 403);
      assert.equal((await lastRow(desk)).tool_name, "other.pay");
      const read = (uri: string): Promise<Answer> =>
        envoy(desk, request("resources/read", { uri, _meta: { progressToken: 1 } }), { headers: { "mcp-name": uri } });
      assert.equal((await read("file:///open")).status, 200);
      assert.deepEqual((await lastRow(desk)).tool_input, { uri: "file:///open" });
      const closed = await read("file:///etc/passwd");
      assert.deepEqual([closed.status, closed.json.error.code], [403, -31999]);
      assert.equal((await envoy(desk, request("prompts/get", { name: "greet" }))).status, 403);
      assert.equal((await lastRow(desk)).tool_name, "bank.mcp.prompts.get");
      for (const path of ["/hooks/envoy/a.b", "/hooks/envoy/a__b", "/hooks/envoy/bank/mcp", "/hooks/envoy/bank?x=1"])
        assert.equal((await envoy(desk, paying(5), { path })).status, 404, path);
    },
    defect: { within: "toMcpCall", module: "http/mcp-message", find: "escapeName(name)", put: "name" },
  },
  {
    rule: "the receipt has the arguments as they came, no facts, and the session that the MCP server gave",
    options,
    run: async (desk) => {
      const text = JSON.stringify(paying(5)).replace(":5", ":5.0");
      const headers = {
        "mcp-session-id": "s1",
        "mcp-method": "tools/call",
        "mcp-name": "=?base64?cGF5?=",
        "mcp-param-amount": "5.0",
      };
      assert.equal((await envoy(desk, text, { headers })).status, 200);
      assert.match((await ask(desk, "/receipts?limit=1")).text, /"tool_input":\{"amount":5\.0\}/);
      const { session_id, platform_state } = await lastRow(desk);
      assert.deepEqual([session_id, platform_state], ["s1", null]);
      assert.equal((await envoy(desk, calling("stated", {}))).status, 403);
      assert.equal(
        (await envoy(desk, request("tools/call", { name: "a.b" }), { headers: { "mcp-session-id": "t" } })).status,
        200,
      );
      assert.deepEqual((await lastRow(desk)).tool_input, {});
      assert.equal((await envoy(desk, calling("a.b", {}), { headers: { "mcp-session-id": "t" } })).status, 403);
      assert.equal((await envoy(desk, calling("a.b", {}), { headers: { "mcp-session-id": "u" } })).status, 200);
    },
    defect: {
      within: "toMcpCall",
      module: "http/mcp-message",
      find: 'params.source("arguments") ?? "{}"',
      put: '"{}"',
    },
  },
  {
    rule: "a call that a person approved passes when the client sends it again, once",
    options,
    run: async (desk) => {
      const parked = await envoy(desk, paying(75));
      const id = parked.headers.get("svc-approval") ?? "";
      assert.equal((await desk.decides("anna", id, "approve")).json.status, "approved");
      assert.equal((await envoy(desk, paying(76))).status, 403);
      assert.equal((await envoy(desk, paying(75))).status, 200);
      assert.equal((await envoy(desk, paying(75))).status, 403);
    },
    defect: { within: "checkAndWait", find: 'first.value.approval?.next === "check"', put: "false" },
  },
  {
    rule: "the route needs a key with the scope check, keeps to the key's tools, and opens for a host's key",
    options,
    run: async (desk) => {
      assert.equal((await envoy(desk, paying(5), { key: "wrong-key-wrong-key" })).status, 401);
      const made = async (body: object): Promise<string> => (await desk.operates("/admin/keys", body)).json.key;
      const reader = await made({ name: "reader", scopes: ["rules"] });
      assert.equal((await envoy(desk, request("ping", {}), { key: reader })).status, 403);
      const host = await made({ name: "envoy", kind: "host", tools: ["bank.*"] });
      assert.equal((await envoy(desk, paying(5), { key: host })).status, 200);
      const narrow = await made({ name: "narrow", scopes: ["check"], tools: ["shop.*"] });
      const { status, text } = await envoy(desk, paying(5), { key: narrow });
      assert.equal(status, 403);
      assert.match(text, /does not cover the tool/);
      for (const headers of [
        { "content-type": "text/plain" },
        { "content-encoding": "br" },
        { "content-type": "application/json; charset=utf-16" },
      ])
        assert.equal((await envoy(desk, paying(5), { headers })).status, 415);
    },
    defect: { within: "envoyCheck", find: "!answer.ok", put: "false" },
  },
]);

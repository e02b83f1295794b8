/**
 * Goal: spec/api.md and spec/openapi.json describe the gate as it is. Method: the tables of api.md are compared with
 * the code's tables. The paths and methods of openapi.json are compared with the routes, and its schemas with real
 * answers, by a validator of the few keywords that it uses. Positive control: doctored answers are reported.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { test } from "node:test";
import { routes } from "../../packages/gate/src/server/http/routes.ts";
import { version } from "../../packages/gate/src/server/version.ts";
import { limits, refusals } from "../../packages/core/src/wire/mod.ts";
import { control } from "../support/controls/control.ts";
import { ask, check, key, root, startGate, type Answer, type Running } from "../support/gate.ts";

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: boolean;
  readonly enum?: readonly (string | null)[];
  readonly examples?: readonly string[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean;
  readonly items?: Schema;
  readonly oneOf?: readonly Schema[];
  readonly description?: string;
  readonly default?: unknown;
}

interface Operation {
  readonly security?: readonly unknown[];
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[];
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Schema }>> }>
  >;
}

interface OpenApi {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const document: OpenApi = JSON.parse(readFileSync(join(root, "spec", "openapi.json"), "utf8"));
const prose = readFileSync(join(root, "spec", "api.md"), "utf8");

/** Returns the rows of the table that follows a marker or a heading, without the table's head. */
function table(after: string): string[][] {
  const lines = prose.slice(prose.indexOf(after)).split("\n");
  const from = lines.findIndex((line) => line.startsWith("|---"));
  const rows = lines.slice(from + 1);
  const end = rows.findIndex((line) => !line.startsWith("|"));
  return rows.slice(0, end < 0 ? undefined : end).map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
}

/** Returns a route's path as the documents write it. */
function templateOf(path: string): string {
  return path.replace(/:(\w+)/g, "{$1}").replace("*", "{path}");
}

test("the tables of api.md equal those of the code", () => {
  const ours = Object.entries(refusals).map(([code, { status, title }]) => [code, String(status), title]);
  assert.deepEqual(table("<!-- table: refusals -->"), ours);
  assert.deepEqual(
    table("<!-- table: limits -->"),
    Object.entries(limits).map(([name, value]) => [name, String(value)]),
  );
  const shown = routes.map(({ method, path, scope }) => [method, templateOf(path), scope ? "yes" : "no"]);
  assert.deepEqual(
    table("## Routes").map((row) => row.slice(0, 3)),
    shown,
  );
});

test("openapi.json lists every route with its method and whether it needs a key", () => {
  assert.equal(document.openapi, "3.1.0");
  assert.equal(document.info.version, version);
  const described = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { security }]) => [method.toUpperCase(), path, security === undefined]),
  );
  assert.deepEqual(
    described,
    routes.map(({ method, path, scope }) => [method, templateOf(path), scope !== undefined]),
  );
});

const typeOf = (value: unknown): string => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);

/** Returns the errors of a value with their paths. It knows the keywords of `Schema` and no others. */
function mismatches(value: any, schema: Schema, at = "$"): string[] {
  if (schema.$ref !== undefined) {
    const target = document.components.schemas[schema.$ref.replace("#/components/schemas/", "")];
    return target === undefined ? [`${at}: ${schema.$ref} is not there`] : mismatches(value, target, at);
  }
  if (schema.oneOf !== undefined) {
    const fitting = schema.oneOf.filter((each) => mismatches(value, each, at).length === 0).length;
    return fitting === 1 ? [] : [`${at}: fits ${fitting} of the shapes`];
  }
  const type = typeOf(value);
  const types = [schema.type ?? []].flat();
  if (!types.includes(type) && !(types.includes("integer") && Number.isInteger(value))) return [`${at}: is ${type}`];
  const faults: string[] = [];
  if (schema.const !== undefined && value !== schema.const) faults.push(`${at}: not ${String(schema.const)}`);
  if (schema.enum?.includes(value) === false) faults.push(`${at}: ${String(value)} is none of them`);
  if (type === "string" && !new RegExp(schema.pattern ?? "").test(value)) faults.push(`${at}: not ${schema.pattern}`);
  if (type === "number" && !(value >= (schema.minimum ?? -Infinity) && value <= (schema.maximum ?? Infinity)))
    faults.push(`${at}: out of range`);
  if (type === "array") {
    if (value.length < (schema.minItems ?? 0) || value.length > (schema.maxItems ?? Infinity))
      faults.push(`${at}: length`);
    for (const [index, item] of value.entries())
      faults.push(...mismatches(item, schema.items ?? {}, `${at}[${index}]`));
  }
  if (type === "object" && schema.properties !== undefined) {
    for (const name of schema.required ?? []) if (!Object.hasOwn(value, name)) faults.push(`${at}.${name}: missing`);
    for (const [name, member] of Object.entries(value)) {
      const inner = schema.properties[name];
      if (inner !== undefined) faults.push(...mismatches(member, inner, `${at}.${name}`));
      else if (schema.additionalProperties === false) faults.push(`${at}.${name}: unknown`);
    }
  }
  return faults;
}

/** Compares an answer with the document's schema for its path, method, status and media type. */
function undescribed(path: string, method: string, { status, headers, json, text }: Answer): string[] {
  const response = document.paths[path]?.[method]?.responses[String(status)];
  if (response === undefined) return [`${method} ${path}: status ${status} is not described`];
  if (response.content === undefined) return text === "" ? [] : [`${path}: a body that is not described`];
  const type = headers.get("content-type")?.replace(/^(application\/.*json); charset=utf-8$/, "$1") ?? "";
  const content = response.content[type];
  if (content === undefined) return [`${method} ${path}: ${type} is not described`];
  return mismatches(type.includes("json") ? json : text, content.schema, `${method} ${path}`);
}

test("openapi.json describes the answers that the gate gives", async (t) => {
  const gate = await startGate(t);
  const call = { tool_name: "note.add", tool_input: { a: [1] }, session_id: "s", platform_state: { b: 2 } };
  const exchanges: (readonly [path: string, method: string, answer: Answer])[] = [];
  const add: Add = (path, method, answer) => exchanges.push([path, method, answer]);
  add("/check", "post", await check(gate, call));
  add("/check", "post", await check(gate, { tool_name: "lost", tool_input: {} }));
  add("/check", "post", await check(gate, "{"));
  add("/check", "post", await check(gate, call, { authorization: "" }));
  add("/check", "post", await check(gate, call, { "content-type": "text/plain" }));
  add("/check", "post", await check(gate, " ".repeat(limits.bodyBytesMax + 1)));
  const hooked = { hook_event_name: "PreToolUse", session_id: "s", tool_name: "note.add", tool_input: {} };
  const others = [
    { ...hooked, hook_event_name: "AfterTool" },
    { sessionId: "s", toolName: "note.add", toolArgs: {}, toolResult: {} },
  ];
  for (const body of [hooked, {}, { ...hooked, hook_event_name: "PostToolUse" }, ...others]) {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    for (const path of ["/hooks/claude-code", "/hooks/codex", "/hooks/gemini-cli", "/hooks/copilot-cli"])
      add(path, "post", await ask(gate, path, init));
  }
  add("/health", "get", await ask(gate, "/health"));
  const rules = await ask(gate, "/rules");
  add("/rules", "get", rules);
  add("/rules", "get", await ask(gate, "/rules", { headers: { "if-none-match": rules.headers.get("etag") ?? "" } }));
  add("/rules", "get", await ask(gate, "/rules", { headers: { authorization: "" } }));
  add("/rules", "get", await ask(gate, "/rules?contract=sha256:1"));
  add("/rules", "get", await ask(gate, `/rules?contract=sha256:${"0".repeat(64)}`));
  for (const query of ["", "?tool=note.add", "?tool=lost", "?tools=note.add"])
    add("/rules/example", "get", await ask(gate, `/rules/example${query}`));
  for (const query of ["", "?limit=1", "?limit=0", "?verdict=BLOCK"])
    add("/receipts", "get", await ask(gate, `/receipts${query}`));
  for (const seq of [1, 2, 3]) add("/receipts/{seq}", "get", await ask(gate, `/receipts/${seq}`));
  add("/ledger/verify", "get", await ask(gate, "/ledger/verify"));
  for (const query of ["", "?cosigned=1", "?cosigned=2"])
    add("/checkpoint", "get", await ask(gate, `/checkpoint${query}`));
  for (const tile of ["0/000.p/1", "entries/000.p/2", "1/000"])
    add("/tile/{path}", "get", await ask(gate, `/tile/${tile}`));
  await envoyQuestionsOf(gate, add);
  await evaluationsOf(gate, add);
  await explanationsOf(gate, add);
  for (const query of ["", "?last=2", "?last=0"]) add("/report", "get", await ask(gate, `/report${query}`));
  await actsOf(gate, add);
  await stopsOf(gate, add);
  const database = new DatabaseSync(join(gate.folder, "data", "ledger.db"));
  database.exec("UPDATE receipts SET tool = 'other' WHERE seq = 1");
  database.close();
  add("/ledger/verify", "get", await ask(gate, "/ledger/verify"));
  t.mock.method(gate.ledger, "hasRoom", async () => false);
  add("/health", "get", await ask(gate, "/health"));
  for (const [path, method, answer] of exchanges) assert.deepEqual(undescribed(path, method, answer), [], answer.text);
  const statuses = exchanges.map(([path, , { status }]) => `${path} ${status}`);
  for (const status of [
    "/check 200",
    "/check 413",
    "/hooks/envoy/{server} 200",
    "/hooks/envoy/{server} 403",
    "/hooks/envoy/{server} 404",
    "/access/v1/evaluation 200",
    "/access/v1/evaluation 400",
    "/access/v1/evaluations 200",
    "/rules 304",
    "/rules/example 200",
    "/rules/example 400",
    "/rules/example 404",
    "/receipts/{seq} 404",
    "/explain 200",
    "/explain 404",
    "/explain 422",
    "/report 200",
    "/report 400",
    "/health 503",
    "/admin/keys 201",
    "/admin/keys 403",
    "/admin/keys 409",
    "/admin/reload 422",
    "/stop 200",
    "/admin/stop 400",
    "/admin/stop 403",
    "/admin/stop/lift 409",
  ]) {
    assert.ok(statuses.includes(status), `${status} was not seen`);
  }
});

type Add = (path: string, method: string, answer: Answer) => number;

async function envoyQuestionsOf(gate: Running, add: Add): Promise<void> {
  const headers = { "content-type": "application/json", "x-envoy-auth-partial-body": "false" };
  for (const [path, body] of [
    ["/hooks/envoy/bank", '{"jsonrpc":"2.0","id":1,"method":"ping"}'],
    ["/hooks/envoy/bank", '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}'],
    ["/hooks/envoy/bank", "{"],
    ["/hooks/envoy/a.b", "{}"],
  ] as const)
    add("/hooks/envoy/{server}", "post", await ask(gate, path, { method: "POST", headers, body }));
}

function operatorOf(gate: Running): Record<string, string> {
  const door = JSON.parse(readFileSync(join(gate.folder, "data", "operator.json"), "utf8")) as { readonly key: string };
  return { authorization: `Bearer ${door.key}`, "content-type": "application/json" };
}

/** Explains calls and receipts in each form. */
async function explanationsOf(gate: Running, add: Add): Promise<void> {
  const call = { tool_name: "visit", tool_input: {}, session_id: "s" };
  const typed = { tool_name: "divided", tool_input: { amount: 0 } };
  for (const body of [
    { call, counters: { visits: 10 } },
    { call: typed },
    { call: { ...typed, tool_input: { amount: "a" } } },
    { receipt: 1 },
    { receipt: 1, under: "recorded" },
    { receipt: 9 },
    { call, contract: "contract: x\n" },
    { call: {} },
  ]) {
    const headers = { "content-type": "application/json" };
    add("/explain", "post", await ask(gate, "/explain", { method: "POST", headers, body: JSON.stringify(body) }));
  }
}

/** Asks by AuthZEN, in each form. */
async function evaluationsOf(gate: Running, add: Add): Promise<void> {
  const entity = { type: "a", id: "1" };
  const [evaluation, evaluations] = ["/access/v1/evaluation", "/access/v1/evaluations"] as const;
  const one = { subject: entity, action: { name: "note.add" }, resource: entity };
  const post = async (path: string, body: object, type = "application/json"): Promise<void> => {
    const init = { method: "POST", headers: { "content-type": type }, body: JSON.stringify(body) };
    add(path, "post", await ask(gate, path, init));
  };
  for (const body of [one, { ...one, action: { name: "mail.send" } }, {}]) await post(evaluation, body);
  await post(evaluation, one, "text/plain");
  for (const items of [undefined, [], [{}, 1], {}]) await post(evaluations, { ...one, evaluations: items });
  const path = "/.well-known/authzen-configuration";
  add(path, "get", await ask(gate, path));
  add(`${path}/t/{tenant}`, "get", await ask(gate, `${path}/t/acme`));
}

/** Sets and lifts a stop of each scope. */
async function stopsOf(gate: Running, add: Add): Promise<void> {
  const headers = operatorOf(gate);
  const post = async (path: string, body: object, more: Record<string, string> = {}): Promise<void> => {
    const init = { method: "POST", headers: { ...headers, ...more }, body: JSON.stringify(body) };
    add(path, "post", await ask(gate, path, init));
  };
  const scopes = ["all", { tools: ["note.add"] }, { key: "a" }, { session: { key: "a", id: "s" } }];
  for (const scope of scopes) await post("/admin/stop", { scope, why: "w", approvals: "keep" });
  const { text, json } = await ask(gate, "/stop");
  assert.equal(json.stops.length, scopes.length, text);
  for (const query of ["", "?all=1"]) add("/stop", "get", await ask(gate, `/stop${query}`));
  add("/health", "get", await ask(gate, "/health"));
  for (const scope of [...scopes, "all"]) await post("/admin/stop/lift", { scope });
  add("/stop", "get", await ask(gate, "/stop"));
  await post("/admin/stop", { scope: "all" });
  await post("/admin/stop", { scope: "all", why: "w" }, { authorization: `Bearer ${key}` });
}

/** Asks as the gate's operator. */
async function actsOf(gate: Running, add: Add): Promise<void> {
  const headers = operatorOf(gate);
  const act = (path: string, body: object): Promise<Answer> =>
    ask(gate, path, { method: "POST", headers, body: JSON.stringify(body) });
  const bodies = [
    { name: "a" },
    { name: "b", owner: "o", scopes: ["check"], expires: "3d", tools: ["a*"], rate: { per_second: 1 } },
    { name: "a" },
    { name: "A" },
  ];
  for (const body of bodies) add("/admin/keys", "post", await act("/admin/keys", body));
  add(
    "/admin/keys",
    "post",
    await ask(gate, "/admin/keys", { method: "POST", headers: { ...headers, authorization: `Bearer ${key}` } }),
  );
  for (const name of ["a", "c"]) {
    add("/admin/keys/{name}/rotate", "post", await act(`/admin/keys/${name}/rotate`, {}));
    add("/admin/keys/{name}/revoke", "post", await act(`/admin/keys/${name}/revoke`, {}));
  }
  add("/admin/keys", "get", await ask(gate, "/admin/keys", { headers }));
  add("/admin/keys", "get", await ask(gate, "/admin/keys"));
  add("/admin/reload", "post", await act("/admin/reload", {}));
  add("/admin/reload", "post", await act("/admin/reload", { mode: "assist" }));
  const erase = { rows: [[1, 1]], parts: ["input"], reason: "asked for" };
  for (const body of [erase, erase, { ...erase, rows: [[1, 9999]] }, { ...erase, parts: ["effects"] }])
    add("/admin/erase", "post", await act("/admin/erase", body));
  writeFileSync(join(gate.folder, "mandate.yaml"), "mandate: test\n");
  add("/admin/reload", "post", await act("/admin/reload", {}));
  add("/receipts", "get", await ask(gate, "/receipts"));
}

test("GET /receipts accepts the parameters in openapi.json", async (t) => {
  const gate = await startGate(t);
  for (const { name, schema } of document.paths["/receipts"]?.["get"]?.parameters ?? []) {
    const value =
      schema.enum?.[0] ?? schema.examples?.[0] ?? (schema.type === "integer" ? (schema.maximum ?? 5) : "text");
    assert.equal((await ask(gate, `/receipts?${name}=${String(value)}`)).status, 200, name);
    if (schema.maximum !== undefined) {
      assert.equal((await ask(gate, `/receipts?${name}=${schema.maximum + 1}`)).status, 400, name);
    }
  }
});

control("positive control: a wrong answer is noticed", () => {
  const headers = new Headers({ "content-type": "application/json" });
  const receipt = { seq: 1, hash: "0".repeat(64), request: "0".repeat(64) };
  const good = { verdict: "ALLOW", reason: "Svc: a", mode: "observe", receipt };
  const faults = (json: object, status = 200): number =>
    undescribed("/check", "post", { status, headers, json, text: "x" }).length;
  assert.equal(faults(good), 0);
  const doctored = [
    { ...good, verdict: "allow" },
    { ...good, reason: "a" },
    { ...good, unreached: false },
    { ...good, mode: undefined },
    { ...good, receipt: { ...receipt, seq: 0 } },
    { ...good, receipt: { ...receipt, hash: "0" } },
  ];
  for (const json of doctored) assert.equal(faults(json), 1, JSON.stringify(json));
  assert.equal(faults(good, 201), 1);
});

/**
 * Goal: the gate accepts a request at each limit of the wire and refuses one past it. Method: a table keyed by the
 * entries of `limits`, so that an entry without a case does not compile and is reported.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { compileContracts } from "../../packages/readers/src/contract.ts";
import type { Places } from "../../packages/gate/src/server/admission/places.ts";
import { explainRates, streamPlaces, waitPlaces } from "../../packages/gate/src/server/admission/open-requests.ts";
import { ReadAdmission, type ReadKind } from "../../packages/gate/src/server/admission/reads.ts";
import { limits, parseCheckRequest, quote } from "../../packages/core/src/wire/mod.ts";
import { startClockedGate } from "../support/clocked-gate.ts";
import { sendAsPage, signIn, trySignIn } from "../support/console.ts";
import {
  lateBody,
  leftBySlowBatch,
  pipelined,
  queuedWhileStuck,
  slowReader,
  valveBurst,
  valveFull,
  valveWait,
} from "../support/limits-of-load.ts";
import {
  ask,
  check,
  desk,
  pauseLedger,
  post,
  requestText,
  send,
  startGate,
  submit,
  type Answer,
  type Refused,
  type Running,
} from "../support/gate.ts";

const json = "Content-Type: application/json";
const call = '{"tool_name":"note.add","tool_input":{}}';

const deep = (levels: number): string => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
const many = (objects: number): string => `[${Array.from({ length: objects }, () => "{}").join(",")}]`;
const inputOf = (value: string): string => `{"tool_name":"note.add","tool_input":{"a":${value}}}`;
const named = (member: string, bytes: number): string =>
  JSON.stringify({ tool_name: "note.add", tool_input: {}, [member]: "é".repeat(bytes / 2) + "x".repeat(bytes % 2) });
const padded = (bytes: number): string => call + " ".repeat(bytes - call.length);

/** Sends a request at the limit and one past it; each returns the refusal's code, or undefined. */
const atLimit: Readonly<Record<keyof typeof limits, (gate: Running, over: 0 | 1, t: TestContext) => Promise<unknown>>> =
  {
    bodyBytesMax: (gate, over) => code(check(gate, padded(limits.bodyBytesMax + over))),
    // Two levels are the body's own object and `tool_input`.
    jsonDepthMax: (gate, over) => code(check(gate, inputOf(deep(limits.jsonDepthMax - 2 + over)))),
    // Three are the body's own object, `tool_input` and the array.
    jsonContainersMax: (gate, over) => code(check(gate, inputOf(many(limits.jsonContainersMax - 3 + over)))),
    numberDigitsMax: (gate, over) => code(check(gate, inputOf("1".repeat(limits.numberDigitsMax + over)))),
    numberExponentMax: (gate, over) => code(check(gate, inputOf(`1e-${limits.numberExponentMax + over}`))),
    toolNameBytesMax: (gate, over) => code(check(gate, named("tool_name", limits.toolNameBytesMax + over))),
    toolAliasesMax: async (_gate, over) => compiledAliases(limits.toolAliasesMax + over),
    sessionIdBytesMax: (gate, over) => code(check(gate, named("session_id", limits.sessionIdBytesMax + over))),
    quotedCharactersMax: async (_gate, over) =>
      quote("x".repeat(limits.quotedCharactersMax + over)).includes("…") || undefined,
    receiptsLimitDefault: async (gate, over) => {
      for (let n = 0; n < limits.receiptsLimitDefault + over; n += 1) await check(gate, call);
      const { json: page } = await ask(gate, "/receipts");
      assert.equal(page.receipts.length, limits.receiptsLimitDefault);
      return page.next ?? undefined;
    },
    receiptsLimitMax: (gate, over) => code(ask(gate, `/receipts?limit=${limits.receiptsLimitMax + over}`)),
    bodyTimeoutMs: async (gate, over) => {
      // A sender that stays within the time is served; the gate's own clock cuts off one that never ends.
      if (over === 0) return code(check(gate, call));
      return (await send(gate, requestText("POST /check HTTP/1.1", [json, "Transfer-Encoding: chunked"], "1\r\n{\r\n")))
        .status;
    },
    pipelinedMax: (gate, over) => pipelined(gate, limits.pipelinedMax + over),
    lingerMs: (gate, over) => lateBody(gate, over === 0),
    headerBytesMax: async (gate, over) => {
      const [head = ""] = post(call, "X-Long: ").split(call);
      // The space before each value does not count.
      const room = limits.headerBytesMax - head.replaceAll(": ", ":").length + over;
      return code(jsonOf(send(gate, post(call, `X-Long: ${"x".repeat(room)}`))));
    },
    answerTimeoutMs: (gate, over) => slowReader(gate, over === 0 ? 1000 : limits.answerTimeoutMs + 3000),
    queueCallsMin: async (_gate, over) => queuedWhileStuck(limits.queueCallsMin + over),
    refusalsPerSecond: async (_gate, over) => valveBurst(over),
    refusalWaitMs: async (_gate, over) => valveWait(over),
    refusalsWaitingMax: async (_gate, over) => valveFull(over),
    repeatWithinMs: async (_gate, over, t) => {
      const gate = await startClockedGate(t, desk);
      const identified = { tool_name: "note.add", tool_input: {}, call_id: "0".repeat(32) };
      await gate.asks(identified);
      gate.pass(limits.repeatWithinMs - 1 + over);
      return (await gate.asks(identified)).repeated === true ? undefined : "decided again";
    },
    evaluationsMax: (gate, over) => code(evaluated(gate, limits.evaluationsMax + over)),
    waitSecondsMax: async (gate, over) => {
      const id = await park(gate);
      // A decided approval is answered at once.
      await send(gate, post('{"session_id":"waits"}').replace("/check", `/approvals/${id}/cancel`));
      return code(ask(gate, `/approvals/${id}?wait=${limits.waitSecondsMax + over}`));
    },
    waitersOfKeyMax: async (_gate, over) => entered(waitPlaces(5000), limits.waitersOfKeyMax + over, () => "one key"),
    streamsOfKeyMax: async (_gate, over) => entered(streamPlaces(5000), limits.streamsOfKeyMax + over, () => "one key"),
    signInBodyBytesMax: async (gate, over) => {
      const body = JSON.stringify({ key: await approverKey(gate) });
      return (await sendAsPage(gate, "/session", { body: body.padEnd(limits.signInBodyBytesMax + over) })).json.code;
    },
    signInsOfKeyMax: async (gate, over) => {
      const own = await approverKey(gate);
      for (let n = 1; n < limits.signInsOfKeyMax + over; n += 1) await signIn(gate, own);
      return (await trySignIn(gate, own)).json.code;
    },
    explainsBurst: async (_gate, over) => explained(limits.explainsBurst + over, 0),
    // A second after the whole burst, as many tokens are back.
    explainsPerSecond: async (_gate, over) => explained(limits.explainsPerSecond + over, limits.explainsBurst),
    explainsMax: (_gate, over) => read("explanation", limits.explainsMax + over, (at) => `t${at}/k`),
    readsOfKeyMax: (_gate, over) => read("short", limits.readsOfKeyMax + over, () => "t/k"),
    readsOfTenantMax: (_gate, over) => read("short", limits.readsOfTenantMax + over, (at) => `t/k${at}`),
    longReadsOfKeyMax: (_gate, over) => read("long", limits.longReadsOfKeyMax + over, () => "t/k"),
    longReadsOfTenantMax: (_gate, over) => read("long", limits.longReadsOfTenantMax + over, (at) => `t/k${at}`),
    readsWaitingOfKeyMax: async (_gate, over) => {
      const waiting = limits.readsOfKeyMax + limits.readsWaitingOfKeyMax;
      return notWaiting(await read("short", waiting + over, () => "t/k"));
    },
    // Four reads have places. Then each of 16 keys has less than its own most.
    readsWaitingMax: async (_gate, over) => {
      const waiting = limits.readsOfTenantMax + limits.readsWaitingMax;
      return notWaiting(await read("short", waiting + over, (at) => `t/k${at % 16}`));
    },
    reportRowsMax: (gate, over) => code(ask(gate, `/report?last=${limits.reportRowsMax + over}`)),
    queueCallsMax: (gate, over, t) => queued(gate, t, { calls: limits.queueCallsMax - 1 + over, bytes: 0 }),
    queueBytesMax: (gate, over, t) => queued(gate, t, { calls: 1, bytes: limits.queueBytesMax + over }),
    quickBatchCallsMax: async (gate, over, t) => {
      const begin = t.mock.method(gate.ledger, "begin");
      await Promise.all(Array.from({ length: limits.quickBatchCallsMax + over }, () => submit(gate, 0)));
      return begin.mock.callCount() === 1 ? undefined : begin.mock.callCount();
    },
    batchCallsMax: async (_gate, over) => leftBySlowBatch(limits.batchCallsMax + over),
    batchBytesMax: async (gate, over, t) => {
      const begin = t.mock.method(gate.ledger, "begin");
      const half = limits.batchBytesMax / 2;
      await Promise.all([submit(gate, half), submit(gate, half + over)]);
      return begin.mock.callCount() === 1 ? undefined : begin.mock.callCount();
    },
    batchEventsMax: async (_gate, over, t) => {
      const gate = await startGate(t, { contracts: { "bag.yaml": bag } });
      const begin = t.mock.method(gate.ledger, "begin");
      const items = Array.from({ length: 256 }, (_, at) => `item-${at}`);
      // Each call asks for 256 values and remembers 256.
      const full = JSON.stringify({ tool_name: "bag", tool_input: { items }, session_id: "s" });
      const calls = Array.from({ length: limits.batchEventsMax / 512 + over }, () => full);
      await Promise.all(calls.map((body) => submitBody(gate, body)));
      return begin.mock.callCount() === 1 ? undefined : begin.mock.callCount();
    },
  };

/** Asks for so many evaluations in one request. */
function evaluated(gate: Running, evaluations: number): Promise<Answer> {
  const entity = { type: "a", id: "a" };
  const one = { subject: entity, action: { name: "note.add" }, resource: entity };
  const body = JSON.stringify({ ...one, evaluations: Array.from({ length: evaluations }, () => ({})) });
  const headers = { "content-type": "application/json" };
  return ask(gate, "/access/v1/evaluations", { method: "POST", headers, body });
}

/** Takes so many places; returns the refusal of the last. */
function entered(places: Places, count: number, keyOf: (at: number) => string): string | undefined {
  const last = Array.from({ length: count }, (_, at) => places.enter({ id: keyOf(at), tenant: null })).at(-1);
  return last?.ok === false ? last.problem.code : undefined;
}

/** Asks for so many places of reads. Returns what became of the last: it waits, or the code of its refusal. */
async function read(kind: ReadKind, count: number, keyOf: (at: number) => string): Promise<string | undefined> {
  const reads = new ReadAdmission(() => false, 64);
  let last: string | undefined = "waits";
  for (let at = 0; at < count; at += 1) {
    const [tenant = "", id = ""] = keyOf(at).split("/");
    const admitted = reads.enter(kind, { tenant, id }, new AbortController());
    if (at === count - 1) void admitted.then((result) => (last = result.ok ? undefined : result.problem.code));
  }
  await nextTurn();
  return last;
}

function notWaiting(found: string | undefined): string | undefined {
  return found === "waits" ? undefined : found;
}

/** Makes a key that decides calls, so that a sign-in to the console needs no code. */
async function approverKey(gate: Running): Promise<string> {
  const operator = JSON.parse(readFileSync(join(gate.folder, "data", "operator.json"), "utf8")).key as string;
  const operate = (path: string, body: object): Promise<Answer> =>
    ask(gate, path, {
      method: "POST",
      headers: { authorization: `Bearer ${operator}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  await operate("/admin/persons", { name: "anna" });
  const made = await operate("/admin/keys", {
    name: `laptop-${gate.ledger.head.seq}`,
    scopes: ["approve"],
    person: "anna",
  });
  return made.json.key as string;
}

/** Charges explanations of one gate, a second after earlier ones; returns the refusal of the last. */
function explained(count: number, before: number): string | undefined {
  let now = 0;
  const rates = explainRates(() => now);
  const charge = (): boolean => rates.charge({ id: "", tenant: null, rate: null })?.ok === true;
  for (let at = 0; at < before; at += 1) charge();
  now = before === 0 ? 0 : 1000;
  return Array.from({ length: count }, charge).at(-1) === true ? undefined : "rate-limited";
}

/** Parks a call. @returns the approval's id */
async function park(gate: Running): Promise<string> {
  const { json: parked } = await check(gate, '{"tool_name":"mail.send","tool_input":{},"session_id":"waits"}');
  return parked.approval.id as string;
}

async function submitBody(gate: Running, body: string): Promise<void> {
  const parsed = parseCheckRequest(body);
  assert.ok(parsed.ok);
  await gate.gate.check(parsed.value, { keyName: "default", digest: "0".repeat(64), bytes: body.length });
}

/** Compiles a tool with so many aliases; returns the code of the first problem. */
function compiledAliases(count: number): string | undefined {
  const aliases = Array.from({ length: count }, (_, at) => `name${at}`).join(", ");
  const tool = `{ aliases: [${aliases}], input: { type: object, additionalProperties: true }, otherwise: ALLOW }`;
  const compiled = compileContracts([{ name: "c.yaml", text: `contract: c\ntools:\n  t: ${tool}\n` }]);
  return compiled.ok ? undefined : compiled.problem[0]?.code;
}

const bag = `contract: bag
tools:
  bag:
    input:
      type: object
      additionalProperties: false
      required: [items]
      properties: { items: { type: array, items: { type: string, maxLength: 20 }, maxItems: 256 } }
    otherwise: ALLOW
counters:
  seen: { of: bag, per: session, remembers: input.items }
rules:
  - { rule: seen, on: bag, when: "input.items.exists(item, item in counters.seen)", verdict: ESCALATE, reason: seen }
`;

async function jsonOf(
  answer: Promise<Refused>,
): Promise<{ readonly status: number; readonly json: { code?: string } }> {
  const { status, body } = await answer;
  return { status, json: JSON.parse(body) as { code?: string } };
}

async function code(
  answer: Promise<{ readonly status: number; readonly json: { code?: string } }>,
): Promise<string | undefined> {
  const { status, json: body } = await answer;
  return status === 200 ? undefined : body.code;
}

/** Fills the queue behind a call that waits for the paused ledger; returns undefined if the queue took all. */
async function queued(
  gate: Running,
  t: TestContext,
  { calls, bytes }: { readonly calls: number; readonly bytes: number },
): Promise<number | undefined> {
  const release = pauseLedger(gate, t);
  const first = submit(gate, 0);
  await release.started;
  const results = Array.from({ length: calls }, () => submit(gate, bytes));
  release.go();
  await first;
  const refused = (await Promise.all(results)).filter(({ ok }) => !ok).length;
  return refused === 0 ? undefined : refused;
}

test(
  "the gate serves a request at each limit and refuses one past it",
  { tags: ["limit.receipts-max", "limit.request-size"], concurrency: 2 },
  async (t) => {
    assert.deepEqual(Object.keys(atLimit).toSorted(), Object.keys(limits).toSorted(), "a limit without a case");
    const shared = await startGate(t);
    const slow = ["bodyTimeoutMs", "answerTimeoutMs"];
    // Count the calls in the queue, because a gate that knows its pace also bounds the queue in time.
    const alone = [
      ...slow,
      "receiptsLimitDefault",
      "queueCallsMax",
      "queueBytesMax",
      "quickBatchCallsMax",
      "batchBytesMax",
    ];
    const waiting: Promise<void>[] = [];
    const names = Object.keys(limits) as (keyof typeof limits)[];
    for (const name of names.toSorted((a) => (slow.includes(a) ? -1 : 0))) {
      for (const over of [0, 1] as const) {
        const run = t.test(
          `${name} ${over === 0 ? "allows a value at the limit" : "refuses a value one past the limit"}`,
          async (inner) => {
            const gate = alone.includes(name) ? await startGate(inner) : shared;
            const refused = await atLimit[name](gate, over, inner);
            if (over === 0) assert.equal(refused, undefined);
            else assert.notEqual(refused, undefined);
          },
        );
        if (slow.includes(name)) waiting.push(run);
        else await run;
      }
    }
    await Promise.all(waiting);
  },
);

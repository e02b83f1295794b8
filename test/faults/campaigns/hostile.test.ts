/**
 * Goal: whatever an agent sends, the gate stays up, answers no 5xx, and allows only calls that the contract allows.
 * Method: HOSTILE_RUNS requests from a grammar with mutations, from a printed seed (HOSTILE_SEED). An oracle that
 * shares nothing with the gate judges each ALLOW again: JSON.parse with the source of each number, and BigInt. Positive
 * control: the same oracle catches a contract that allows everything.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { Dice } from "../../support/campaign/random.ts";
import { control } from "../../support/controls/control.ts";
import { ask, key, spawnGate, temporaryFolder, writeContracts, type Spawned } from "../../support/gate.ts";
import { printSeed, seedOf } from "../../support/random-test.ts";

const runs = Number(process.env["HOSTILE_RUNS"] ?? 3000);
const seed = seedOf("HOSTILE_SEED");

const contract = `contract: purse
platform:
  type: object
  required: [spend, payees]
  properties: { spend: { type: number, minimum: 0 }, payees: { type: array, items: { type: string } } }
tools:
  pay:
    input:
      type: object
      additionalProperties: true
      required: [amount, payee]
      properties: { amount: { type: number, exclusiveMinimum: 0 }, payee: { type: string } }
    requires: [{ when: platform.present, reason: no facts came }]
    otherwise: ALLOW
counters:
  asked: { of: [pay], per: session }
rules:
  - { rule: large, on: [pay], when: input.amount > 50, verdict: BLOCK, reason: "{input.amount} is too much" }
  - { rule: budget, on: [pay], when: platform.spend + input.amount > 200, verdict: BLOCK, reason: too much in all }
  - { rule: payee, on: [pay], when: "!(input.payee in platform.payees)", verdict: BLOCK, reason: "{input.payee} is not known" }
  - { rule: asked, on: [pay], when: counters.asked < 0, verdict: BLOCK, reason: never }
`;

function chance(from: number): {
  readonly number: (below: number) => number;
  readonly pick: <T>(items: readonly T[]) => T;
} {
  const dice = new Dice(from);
  return { number: (below) => Math.floor(dice.between(0, below)), pick: (items) => dice.oneOf(items) };
}
type Chance = ReturnType<typeof chance>;

const goodAmounts = ["1", "10", "49.99", "50", "5e1", "5.0E+1", "0.50", "1e-400", `50.${"0".repeat(38)}`, "1E0"];
const badAmounts = [
  ...`"10" -1 0 -0 0.0 0e5 50.000000000000000000001 9007199254740993 1e400 null true [10] {} 1e401 NaN Infinity`.split(
    " ",
  ),
  ...`-Infinity 010 +1 .5 1. 0x10 1e --1 1_000 10n 5٠`.split(" "),
  "1".repeat(41),
  "",
];
const goodPayees = ['"acct-1"', '"acct\\u002d1"', '"\\u0061cct-1"'];
const badPayees = [
  '"acct-2"',
  '"Acct-1"',
  '"acct-1 "',
  '"acct-1\\u0000"',
  '"\u0430cct-1"',
  '"acct-1\u200b"',
  '"acct-1\\n"',
  '"acct\u20101"',
  '""',
  '["acct-1"]',
  "null",
  "1",
  '"\\ud800"',
  '"acct-1',
  "'acct-1'",
  '"acct\\x2d1"',
  '"acct\t1"',
  '"__proto__"',
  '"constructor"',
];
const spends = [
  "0",
  "149.99",
  "150",
  "150.00000000000000000001",
  "199.5",
  "200",
  "1e2",
  "-5",
  '"0"',
  "null",
  "1e399",
  "0.1",
];
const tools = [
  '"p\\u0061y"',
  '"Pay"',
  '"PAY"',
  '"pay "',
  '"pa\u200by"',
  '"p\u0430y"',
  '"pay\\u0000"',
  '""',
  "null",
  "1",
  '"__proto__"',
  '"toString"',
  '"pay.send"',
  `"${"x".repeat(300)}"`,
];
const extras = [
  '"platform":{"spend":0,"payees":["acct-2"]}',
  '"__proto__":{"amount":1}',
  '"constructor":{"prototype":{}}',
  '"limits":{"large":1e9}',
  '"session":"other"',
  '"toJSON":1',
  '"a b":"\\u2028"',
  '"note":"Svc: ALLOW"',
  '"amount ":1',
  '"Amount":1',
];
const spaces = ["", "", "", " ", "\n", "\t\r\n  "];
const mutations = [
  "none",
  "twice",
  "twice-deep",
  "case",
  "unknown",
  "lost",
  "misspelt",
  "null-state",
  "bom",
  "tail",
  "comment",
  "cut",
  "flip",
  "byte",
  "deep",
  "long",
  "comma",
  "array",
  "surrogate",
  "nul-name",
] as const;
type Mutation = (typeof mutations)[number];

/** Mutations after which the gate must refuse the request unread. */
const refused: ReadonlySet<Mutation> = new Set([
  "twice",
  "twice-deep",
  "case",
  "unknown",
  "lost",
  "misspelt",
  "bom",
  "tail",
  "comment",
  "cut",
  "byte",
  "long",
  "comma",
  "array",
  "surrogate",
  "nul-name",
]);

interface Hostile {
  readonly body: Buffer;
  readonly mutation: Mutation;
  readonly headers: Readonly<Record<string, string>>;
  /** Requests that the gate must refuse by their headers alone. */
  readonly status: number | undefined;
}

function generate(random: Chance): Hostile {
  const { number, pick } = random;
  const space = (): string => pick(spaces);
  const amount = number(4) === 0 ? pick(badAmounts) : pick(goodAmounts);
  const payee = number(5) === 0 ? pick(badPayees) : pick(goodPayees);
  const extra = number(3) === 0 ? `,${pick(extras)}` : "";
  const mutation = number(3) === 0 ? pick(mutations) : "none";
  const deep = mutation === "deep" ? `,"x":${"[".repeat(60 + number(8))}` : "";
  const closing = "]".repeat(Math.max(0, deep.length - 5));
  const twice = mutation === "twice-deep" ? ',"amount":1' : mutation === "nul-name" ? ',"a\\u0000":1' : "";
  const lone = mutation === "surrogate" ? ',"y":"\\udc00"' : "";
  const input = `{"amount":${space()}${amount},${space()}"payee":${payee}${extra}${twice}${lone}${deep}${closing}}`;
  const state = mutation === "null-state" ? "null" : `{"spend":${pick(spends)},"payees":["acct-1","acct-3"]}`;
  const members = [
    `"tool_name":${space()}${number(5) === 0 ? pick(tools) : '"pay"'}`,
    `${mutation === "case" ? '"Tool_Input"' : '"tool_input"'}:${input}`,
    `${mutation === "misspelt" ? '"platformState"' : '"platform_state"'}:${state}`,
    ...(number(2) === 0 ? [`"session_id":${pick(['"s"', '"t"', '"__proto__"', '"\\u00e9"'])}`] : []),
    ...(mutation === "twice" ? ['"tool_name":"pay"'] : []),
    ...(mutation === "unknown" ? [pick(['"mode":"observe"', '"verdict":"ALLOW"', '"__proto__":{}', '"":1'])] : []),
  ].filter((_, at) => mutation !== "lost" || at > 0);
  for (let at = members.length - 1; at > 0; at -= 1) {
    const other = number(at + 1);
    [members[at], members[other]] = [members[other] as string, members[at] as string];
  }
  const text = `${space()}{${members.join(`${space()},`)}}${space()}`;
  return { body: mutate(text, mutation, random), mutation, ...hostileHeaders(random) };
}

function mutate(text: string, mutation: Mutation, { number, pick }: Chance): Buffer {
  const body = Buffer.from(text, "utf8");
  switch (mutation) {
    case "bom":
      return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), body]);
    case "tail":
      return Buffer.from(text + pick(["{}", "x", "\0", ",", "]", "\u00a0"]), "utf8");
    case "comment":
      return Buffer.from(text.replace("{", pick(["{/**/", "{//\n", "{#\n"])), "utf8");
    case "cut":
      return body.subarray(0, number(text.trimEnd().length - 1));
    case "flip":
      body[number(body.length)] = 0x20 + number(0x5f);
      return body;
    case "byte":
      return Buffer.concat([
        Buffer.from(text.replace(/\}\s*$/, ""), "utf8"),
        Buffer.from([pick([0x80, 0xc0, 0xff, 0xed])]),
      ]);
    case "long":
      return Buffer.from(text + " ".repeat(262_145), "utf8");
    case "comma":
      return Buffer.from(text.replace(/\}(\s*)$/, ",}$1"), "utf8");
    case "array":
      return Buffer.from(`[${text}]`, "utf8");
    default:
      return body;
  }
}

function hostileHeaders({ number, pick }: Chance): Pick<Hostile, "headers" | "status"> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  if (number(12) !== 0) return { headers, status: undefined };
  return pick<Pick<Hostile, "headers" | "status">>([
    { headers: { ...headers, authorization: `Bearer ${key} x` }, status: 401 },
    { headers: { ...headers, authorization: "Bearer" }, status: 401 },
    { headers: { ...headers, "content-type": "text/plain" }, status: 415 },
    { headers: { ...headers, "content-type": "application/json; charset=utf-16" }, status: 415 },
    { headers: { ...headers, "content-encoding": "gzip" }, status: 415 },
    { headers: { ...headers, "x-http-method-override": "GET", "x-forwarded-for": "127.0.0.1" }, status: undefined },
    { headers: { ...headers, "svc-mode": "observe", "accept-version": "2" }, status: undefined },
  ]);
}

/** Returns a decimal as a multiple of 10^-500. */
function scaled(source: string): bigint {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source) ?? [];
  const value = BigInt(whole + fraction) * 10n ** BigInt(500 + Number(exponent) - fraction.length);
  return sign === "-" ? -value : value;
}

/** Returns whether this body may pass, by the contract's own rules over the platform's JSON reader. */
function mayPass(body: Buffer): boolean {
  let call: any;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
    const sources = (_name: string, value: unknown, context: { source?: string }): unknown =>
      typeof value === "number" ? { source: context.source } : value;
    call = (JSON.parse as (text: string, reviver: typeof sources) => unknown)(text, sources);
  } catch {
    return false;
  }
  const { amount, payee } = call?.tool_input ?? {};
  const { spend, payees } = call?.platform_state ?? {};
  if (call?.tool_name !== "pay" || amount?.source === undefined || spend?.source === undefined) return false;
  if (!Array.isArray(payees) || typeof payee !== "string") return false;
  const [wanted, spent] = [scaled(amount.source), scaled(spend.source)];
  const one = 10n ** 500n;
  return wanted > 0n && wanted <= 50n * one && spent >= 0n && spent + wanted <= 200n * one && payees.includes(payee);
}

interface Outcome {
  readonly status: number;
  readonly text: string;
}

function send(agent: Agent, { port }: Spawned, { body, headers }: Hostile): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const all = { ...headers, "content-length": body.length };
    const outgoing = request(
      { port, host: "127.0.0.1", path: "/check", method: "POST", headers: all, agent },
      (response) => {
        let text = "";
        response.on("data", (piece) => (text += String(piece)));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** Returns the fault of an answer; undefined if there is none. */
function fault({ body, mutation, status: expected }: Hostile, { status, text }: Outcome): string | undefined {
  if (status >= 500 || status < 200) return `status ${status}`;
  if (expected !== undefined) return status === expected ? undefined : `status ${status}, not ${expected}`;
  if (refused.has(mutation) && status === 200) return `judged though its mutation is ${mutation}`;
  if (status !== 200) return status === 400 || status === 413 ? undefined : `status ${status}`;
  const { verdict, reason } = JSON.parse(text);
  if (!/^Svc: [^\n]+$/.test(reason)) return `the reason ${JSON.stringify(reason)}`;
  const may = mayPass(body);
  if (verdict === "ALLOW" && !may) return "ALLOW against the oracle";
  return may && verdict !== "ALLOW" ? `${verdict} against the oracle` : undefined;
}

interface Tally {
  readonly statuses: Map<number, number>;
  allowed: number;
  readonly faults: string[];
}

async function attack(
  gate: Spawned,
  from: number,
  count: number,
  watch: (done: number) => void = () => undefined,
): Promise<Tally> {
  const random = chance(from);
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const tally: Tally = { statuses: new Map(), allowed: 0, faults: [] };
  for (let done = 0; done < count; done += 100) {
    const requests = Array.from({ length: Math.min(100, count - done) }, () => generate(random));
    const outcomes = await Promise.all(requests.map((each) => send(agent, gate, each)));
    for (const [at, each] of requests.entries()) {
      const outcome = outcomes[at] as Outcome;
      tally.statuses.set(outcome.status, (tally.statuses.get(outcome.status) ?? 0) + 1);
      if (outcome.text.startsWith('{"verdict":"ALLOW"')) tally.allowed += 1;
      const found = fault(each, outcome);
      if (found !== undefined)
        tally.faults.push(`${found}: ${each.body.toString("utf8").slice(0, 600)} -> ${outcome.text.slice(0, 300)}`);
    }
    if (done % 10_000 === 0) watch(done);
  }
  agent.destroy();
  return tally;
}

/** Returns the resident memory of a process in MiB; undefined if the system does not provide it. */
function residentMib(pid: number): number | undefined {
  const file = `/proc/${pid}/status`;
  const kib = existsSync(file) ? /^VmRSS:\s+(\d+)/m.exec(readFileSync(file, "utf8"))?.[1] : undefined;
  return kib === undefined ? undefined : Math.round(Number(kib) / 1024);
}

test(
  `${runs} hostile requests get no 5xx and no ALLOW that an independent reader does not give`,
  { tags: ["platform.from-platform-only", "platform.not-verified"] },
  async (t) => {
    printSeed(t, { cases: runs, seed, variable: "HOSTILE_SEED" });
    const folder = temporaryFolder(t);
    writeContracts(folder, { contracts: { "purse.yaml": contract } });
    const gate = await spawnGate(t, ["--mode", "enforce", "--log", "silent"], {
      cwd: folder,
      env: { SVC_API_KEY: key },
    });
    const memory: string[] = [];
    const tally = await attack(gate, seed, runs, (done) => memory.push(`${done}: ${residentMib(gate.pid) ?? "?"}`));
    memory.push(`${runs}: ${residentMib(gate.pid) ?? "?"}`);
    t.diagnostic(`resident MiB after requests: ${memory.join(", ")}`);
    t.diagnostic(`${tally.allowed} ALLOW; statuses ${JSON.stringify(Object.fromEntries(tally.statuses))}`);
    assert.deepEqual(tally.faults.slice(0, 5), [], `${tally.faults.length} faults`);
    const health = await ask(gate, "/health");
    assert.equal(health.status, 200);
    const walk = (await ask(gate, "/ledger/verify")).json;
    assert.deepEqual([walk.ok, walk.rows], [true, tally.statuses.get(200)]);
    assert.ok(existsSync(join(folder, "data", "ledger.db")));
  },
);

test("more than one in fifty of the requests may pass", () => {
  const random = chance(1);
  const requests = Array.from({ length: 1000 }, () => generate(random));
  const passing = requests.filter(({ body, status }) => status === undefined && mayPass(body)).length;
  assert.ok(passing > 20, `${passing} of 1000 requests find the good path`);
});

control("positive control: a contract that allows everything is noticed", async (t) => {
  const folder = temporaryFolder(t);
  const lax = contract
    .slice(0, contract.indexOf("rules:"))
    .replace(/requires: .*\n {4}/, "")
    .replace(/properties: \{ amount.*\n/, "properties: { amount: {}, payee: {} }\n");
  writeContracts(folder, { contracts: { "purse.yaml": lax } });
  const gate = await spawnGate(t, ["--mode", "enforce", "--log", "silent"], { cwd: folder, env: { SVC_API_KEY: key } });
  const { faults } = await attack(gate, 1, 300);
  assert.ok(faults.filter((each) => each.startsWith("ALLOW against the oracle")).length > 10, faults.join("\n"));
});

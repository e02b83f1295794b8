/**
 * Goal: an answered check survives the sudden end of the gate, and its counters with it. Method: the real gate under
 * load is killed (SIGKILL) at random moments and started again at once; each answer that a client received is looked
 * for in the file, the chain is walked, and the counters are added up again by code that shares nothing with the gate.
 * A gate that answers before it commits must be caught. KILL_RUNS and KILL_SEED set the number of kills and the seed.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { temporaryFolder } from "./ledger-fixture.ts";
import { apiKey, root, startGate, type GateProcess } from "./gate-process.ts";

const runs = Number(process.env["KILL_RUNS"] ?? 8);
const seed = Number(process.env["KILL_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
const clients = 4;
const sessionLimit = 40;

const contract = `contract: load
summary: Every call is counted, by number and by sum.
tools:
  payment.send:
    input:
      type: object
      additionalProperties: false
      required: [amount]
      properties:
        amount: { type: number, minimum: 0 }
    otherwise: ALLOW
counters:
  calls: { of: [payment.send], per: session, within: 24h }
  spent: { of: [payment.send], per: gate, sum: input.amount, counting: released }
rules:
  - rule: too-many
    on: [payment.send]
    when: counters.calls >= ${sessionLimit}
    verdict: BLOCK
    reason: this session has made {counters.calls} calls
  - rule: too-much
    on: [payment.send]
    when: counters.spent + input.amount > 100000000
    verdict: ESCALATE
    reason: "{counters.spent} is spent"
`;

/** What a client was told. */
interface Answered {
  readonly seq: number;
  readonly hash: string;
  readonly verdict: string;
}

interface Load {
  readonly answers: Answered[];
  sessions: number;
}

/** Numbers from a seed (mulberry32), so that a run can be repeated. */
function seeded(from: number): () => number {
  let state = from;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function ask(url: string, agent: Agent, body: string): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${apiKey}`,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    };
    const asking = request(`${url}/check`, { method: "POST", agent, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        if (response.statusCode !== 200) return reject(new Error(`refused with ${response.statusCode}`));
        const { verdict, receipt } = JSON.parse(Buffer.concat(chunks).toString());
        resolve({ seq: receipt.seq, hash: receipt.hash, verdict });
      });
    });
    asking.on("error", reject);
    asking.end(body);
  });
}

/** Asks until the gate is gone. Amounts are in hundredths, so that the sum has fractions. */
async function client(url: string, load: Load): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let session = 0;
  try {
    for (let call = 0; ; call += 1) {
      if (call % 50 === 0) session = load.sessions += 1;
      const body = JSON.stringify({
        tool_name: "payment.send",
        tool_input: { amount: (call % 700) / 100 },
        session_id: `s-${session}`,
      });
      load.answers.push(await ask(url, agent, body));
    }
  } catch {
    agent.destroy();
  }
}

/** The ledger read from its file and added up again: nothing of the gate's own code. */
class Reckoning {
  #seq = 0;
  #hash = "0".repeat(64);
  readonly #calls = new Map<string, number>();
  #spent = 0;
  readonly #totals = new Map<string, number>();
  readonly hashes = new Map<number, { readonly hash: string; readonly verdict: string }>();

  /** Takes up the rows that have come since, and checks each against all before it. */
  follow(file: string): void {
    const database = new DatabaseSync(file, { readOnly: true });
    const events = Map.groupBy(
      database.prepare("SELECT counter, hex(key) AS key, seq, total FROM effects WHERE seq > ?").all(this.#seq),
      ({ seq }) => Number(seq),
    );
    for (const { seq, leaf, evidence } of database
      .prepare("SELECT seq, leaf, evidence FROM receipts WHERE seq > ? ORDER BY seq")
      .iterate(this.#seq)) {
      this.#row({
        seq: Number(seq),
        leaf: String(leaf),
        evidence: String(evidence),
        events: events.get(Number(seq)) ?? [],
      });
    }
    database.close();
  }

  #row({
    seq,
    leaf,
    evidence,
    events,
  }: {
    seq: number;
    leaf: string;
    evidence: string;
    events: readonly Record<string, unknown>[];
  }): void {
    const { prev, answered, seq: named } = JSON.parse(leaf);
    assert.equal(seq, this.#seq + 1, "rows without a gap");
    assert.equal(named, seq);
    assert.equal(prev, this.#hash, `row ${seq} follows the row before`);
    const parts = new Map(
      evidence
        .split("~")
        .map((part) => JSON.parse(Buffer.from(part, "base64url").toString()).slice(1) as [string, never]),
    );
    const { session_id: session } = parts.get("call") ?? assert.fail();
    const { amount } = parts.get("input") ?? assert.fail();
    const { counters } = parts.get("outcome") ?? assert.fail();
    const calls = this.#calls.get(session) ?? 0;
    assert.deepEqual(
      counters,
      { "load.calls": String(calls), "load.spent": String(this.#spent / 100) },
      `row ${seq} read its counters`,
    );
    const moves = answered === "ALLOW" ? [100, Math.round(amount * 100)] : [100];
    const moved = events.map(({ counter, key, total }) => {
      const id = `${String(counter)} ${String(key)}`;
      const before = this.#totals.get(id) ?? 0;
      this.#totals.set(id, Math.round(Number(total) * 100));
      return Math.round(Number(total) * 100) - before;
    });
    assert.deepEqual(
      moved.toSorted((a, b) => a - b),
      moves.toSorted((a, b) => a - b),
      `row ${seq} moved its counters`,
    );
    this.#calls.set(session, calls + 1);
    if (answered === "ALLOW") this.#spent += Math.round(amount * 100);
    this.#seq = seq;
    this.#hash = createHash("sha256").update("\0").update(leaf).digest("hex");
    this.hashes.set(seq, { hash: this.#hash, verdict: answered });
  }

  get rows(): number {
    return this.#seq;
  }
}

interface Outcome {
  readonly answered: number;
  readonly rows: number;
  readonly lost: readonly Answered[];
  readonly twice: number;
}

/** Start, load, kill, again; after each start everything is looked at. */
async function killLoop(folder: string, count: number, sources?: string): Promise<Outcome> {
  const random = seeded(seed);
  const data = join(folder, "data");
  const mandate = join(folder, "load.yaml");
  writeFileSync(mandate, contract);
  const settings = { SVC_MODE: "enforce", SVC_DATA_DIR: data, SVC_MANDATE: mandate, SVC_PIN: join(folder, "pin") };
  const load: Load = { answers: [], sessions: 0 };
  const reckoning = new Reckoning();
  const lost: Answered[] = [];
  let looked = 0;
  for (let run = 0; run <= count; run += 1) {
    const gate = await startGate({ settings, ...(sources === undefined ? {} : { sources }) });
    try {
      reckoning.follow(join(data, "ledger.db"));
      const isKept = ({ seq, hash, verdict }: Answered): boolean => {
        const row = reckoning.hashes.get(seq);
        return row?.hash === hash && row.verdict === verdict;
      };
      lost.push(...load.answers.slice(looked).filter((answer) => !isKept(answer)));
      looked = load.answers.length;
      if (run % 10 === 0 || run === count) await verifies(gate, reckoning.rows);
      if (run < count) await loadAndKill(gate, load, 20 + random() * 400);
    } finally {
      await gate.kill();
    }
  }
  const distinct = new Set(load.answers.map(({ seq }) => seq));
  return { answered: load.answers.length, rows: reckoning.rows, lost, twice: load.answers.length - distinct.size };
}

async function loadAndKill(gate: GateProcess, load: Load, afterMs: number): Promise<void> {
  const working = Array.from({ length: clients }, () => client(gate.url, load));
  await wait(afterMs);
  await gate.kill();
  await Promise.all(working);
}

async function verifies(gate: GateProcess, rows: number): Promise<void> {
  const response = await fetch(`${gate.url}/ledger/verify`, {
    headers: { authorization: `Bearer ${apiKey}`, connection: "close" },
  });
  const { ok, rows: verified } = (await response.json()) as { ok: boolean; rows: number };
  assert.deepEqual({ ok, verified }, { ok: true, verified: rows });
}

test(`${runs} kills under load lose no answered check [service.every-check-receipt, receipt.one-row, receipt.chain-hashes]`, async (t) => {
  const { answered, rows, lost, twice } = await killLoop(temporaryFolder(t), runs);
  console.log(
    `  seed ${seed}: ${runs} kills, ${answered} answered, ${rows} rows, ${lost.length} lost, ${twice} answered twice`,
  );
  assert.deepEqual(lost, []);
  assert.equal(twice, 0);
  assert.ok(answered > runs * 5, `the load was a load: ${answered} answers`);
  assert.ok(rows >= answered);
});

test("positive control: a gate that answers before it commits is caught", async (t) => {
  const sources = temporaryFolder(t);
  mkdirSync(join(sources, "src"), { recursive: true });
  for (const path of ["src", "package.json"]) cpSync(join(root, path), join(sources, path), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(sources, "node_modules"));
  const store = join(sources, "src", "ledger", "stores", "sqlite.ts");
  const commit = 'await this.#writer.call("commit", rows, effects, counters);';
  const text = readFileSync(store, "utf8");
  assert.ok(text.includes(commit));
  writeFileSync(
    store,
    text.replace(commit, 'setTimeout(() => void this.#writer.call("commit", rows, effects, counters), 30);'),
  );
  const caught = await killLoop(temporaryFolder(t), 5, sources).then(
    ({ lost }) => lost.length > 0,
    (error: Error) => /rows are missing|not the one|read its counters|without a gap/.test(error.message),
  );
  assert.ok(caught, "the loss was seen");
});

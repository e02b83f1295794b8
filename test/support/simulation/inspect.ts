import { createHash } from "node:crypto";
import { compareWithItself, standsOnErased } from "../../../packages/records/src/replay/replay.ts";
import { deciders, decisionProblem, stateProblem } from "./approvers.ts";
import { ask, type Serving } from "./clients.ts";
import { contracts } from "./contracts.ts";
import type { Disk } from "./disk.ts";
import { erasureProblem, forgotten, remainsProblem } from "./erasure.ts";
import { headOf, headProblem, signerProblem } from "./heads.ts";
import { Process, type Machine } from "./machine.ts";
import { Outside } from "./outside.ts";
import { folder, type Life } from "./plan.ts";
import { repeatProblem } from "./repeats.ts";
import { evidenceOf, hashOf, leafOf, part, type Row } from "./rows.ts";
import type { Sources } from "./sources.ts";
import { closeAll, DatabaseSync } from "./sqlite.ts";

interface Inspected {
  readonly machine: Machine;
  /** A copy, so that the inspection's changes are discarded. */
  readonly disk: Disk;
  readonly outside: Outside;
  /** The life before. */
  readonly life: Pick<Life, "repeats" | "seed">;
  readonly pinFile: string;
  /** The pin has each row that was known by then; undefined if it need not. */
  readonly pinnedFrom: number | undefined;
}

/**
 * Starts a gate on the state after a crash, on a disk that does not fail, and checks every promise with independent
 * code and by a replay.
 *
 * @returns the broken promises
 */
export async function inspect(sources: Sources, inspected: Inspected): Promise<string | undefined> {
  const { machine, disk, life } = inspected;
  const process = new Process(disk, []);
  let found: string | undefined;
  machine.reseed(life.seed + 1);
  const { now } = machine;
  const hasEnded = await machine.run(process, async () => {
    try {
      found = await promises(sources, inspected);
    } catch (error) {
      found = `after the crash: ${String(error)}`;
    }
  });
  machine.process = process;
  process.end("kill");
  closeAll(process);
  machine.now = now;
  return hasEnded ? found : "the gate that starts after the crash waits for what will never come";
}

async function promises(sources: Sources, inspected: Inspected): Promise<string | undefined> {
  const { machine, disk, outside, pinFile } = inspected;
  const { openLedger, openGate, Clock } = sources;
  const [left, kept] = [disk.copy(), textOf(disk, `${folder}/checkpoint`)];
  const ledger = await openLedger({ folder, pinFile, engine: "svc-gate/1.0.0" });
  const before = await rowsOf(ledger);
  const here = [...(kept === undefined ? [] : [kept]), await ledger.checkpoint()].map(headOf);
  const problem =
    chainProblem(before) ??
    rowProblem(before, outside) ??
    totalsProblem(before) ??
    pinProblem(before, { ...inspected, disk: left }) ??
    erasureProblem(before, outside) ??
    decisionProblem(before, outside) ??
    remainsProblem(left, forgotten(before, outside, outside.cleared), "after it was said to be nowhere") ??
    remainsProblem(disk, forgotten(before, outside, outside.texts.keys()), "after the next start") ??
    headProblem(before, [...outside.heads.values(), ...here]) ??
    signerProblem(
      before,
      [...outside.newHeads(), ...here],
      ledger.verifiers.map(({ text }) => text),
    );
  if (problem !== undefined) return problem;
  outside.rows = before.length;
  outside.rotations = before.filter((row) => leafOf(row).act === "signer.rotate").length;
  const clock = new Clock({ wall: () => machine.now, monotonic: () => machine.now });
  const opened = await openGate({
    ledger,
    clock,
    ...policyAfter(before, inspected),
    deciders,
    onDefect: ({ defect }) => Promise.reject(defect),
  });
  if (!opened.ok) return `the gate does not serve: ${opened.problem.detail}`;
  const { gate } = opened.value;
  const changed = await stateProblem({ gate, ledger, machine }, before);
  if (changed !== undefined) return changed;
  const repeated = await repeatProblem({ gate, ledger, machine }, outside, () => rowsOf(ledger));
  if (repeated !== undefined) return repeated;
  // The next decision shows the counters' values.
  await Promise.race([ask({ gate, ledger, machine }, new Outside(), { life: -1, calls: 3 }), gate.failed]);
  const { broken, rows } = await ledger.verify();
  if (broken !== undefined) return `the ledger finds itself broken: ${JSON.stringify(broken)}`;
  if (rows < before.length + 3) return `${rows} rows are there after ${before.length} and 3 more`;
  const replayed = await replayProblem(ledger, before);
  await gate.drain();
  await ledger.close();
  return replayed;
}

/** The policy of the start. Half of the starts after repeats change nothing, because a reload ends each recorded ALLOW. */
function policyAfter(rows: readonly Row[], { machine, life }: Inspected): Pick<Start, "mode" | "policySet"> {
  const [first] = contracts;
  if (first === undefined) throw new Error("the gate has no contract");
  const last = rows.at(-1);
  const keeps = (life.repeats ?? 0) > 0 && last !== undefined && machine.chance.often(0.5);
  if (!keeps) return { policySet: first, mode: "enforce" };
  const { contract } = leafOf(last);
  const inForce = contracts.find(
    ({ text }) => contract === `sha256:${createHash("sha256").update(text).digest("hex")}`,
  );
  return { policySet: inForce ?? first, mode: undefined };
}

type Start = Parameters<Sources["openGate"]>[0];

async function rowsOf(ledger: Serving["ledger"]): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for await (const slice of ledger.rows.scan(1)) rows.push(...slice);
  return rows;
}

/** Recomputes the chain row by row: each names the hash of the previous row and the digests of its evidence. */
export function chainProblem(rows: readonly Row[]): string | undefined {
  let prev = "0".repeat(64);
  let last = 0;
  for (const [index, row] of rows.entries()) {
    const leaf = leafOf(row);
    if (row.seq !== index + 1 || leaf.seq !== row.seq) return `row ${row.seq} is in place ${index + 1}`;
    if (leaf.prev !== prev) return `row ${row.seq} does not follow the row before it`;
    if (leaf.at < last) return `row ${row.seq} is earlier than the row before it`;
    if (leaf.evidence !== evidenceOf(row)) return `row ${row.seq} has other evidence than it names`;
    prev = hashOf(row);
    last = leaf.at;
  }
  return undefined;
}

/** Checks that an answered call is durable, that a refused call left nothing, and that a call has one row. */
function rowProblem(rows: readonly Row[], { told, refused }: Outside): string | undefined {
  for (const [seq, hash] of told) {
    const row = rows[seq - 1];
    if (row === undefined) return `LOST: row ${seq} was answered, and the ledger ends at row ${rows.length}`;
    if (hashOf(row) !== hash) return `LOST: row ${seq} is not the one that was answered`;
  }
  for (const row of rows) {
    const { call } = (part(row, "input") ?? {}) as { readonly call?: string };
    if (call !== undefined && refused.has(call)) return `row ${row.seq} is of the call ${call}, which was refused`;
  }
  return undefined;
}

interface Effect {
  readonly amount: string;
  readonly counter: string;
  readonly key: string;
  readonly held?: true;
}

/** Checks that a counter's value is the sum over the receipts; a replay checks the folded ones. */
function totalsProblem(rows: readonly Row[]): string | undefined {
  const sums = new Map<string, number>();
  for (const row of rows) {
    for (const { amount, counter, key, held } of part(row, "effects") as readonly Effect[])
      if (held !== true) sums.set(`${counter} ${key}`, (sums.get(`${counter} ${key}`) ?? 0) + Number(amount));
  }
  const database = new DatabaseSync(`${folder}/ledger.db`, { readOnly: true });
  const stored = database
    .prepare(
      "SELECT digest, key, seq, total, counters.folded FROM effects JOIN counters ON id = counter ORDER BY at, seq",
    )
    .all() as readonly StoredEvent[];
  database.close();
  const standing = new Map(stored.map((event) => [`${event.digest} ${Buffer.from(event.key).toString("hex")}`, event]));
  for (const [id, { total, folded, seq }] of standing) {
    const sum = sums.get(id) ?? 0;
    if (folded === 0 && Number(total) !== sum)
      return `the counter ${id} stands at ${total} in row ${seq}, and its receipts come to ${sum}`;
  }
  const missing = [...sums.keys()].find((id) => !standing.has(id));
  return missing && `the counter ${missing} does not stand where its receipts put it`;
}

interface StoredEvent {
  readonly digest: string;
  readonly key: Uint8Array;
  readonly seq: number;
  readonly total: string;
  /** The events that were folded into its counter. */
  readonly folded: number;
}

/** Decides every row again; an erased row is reported as such. */
async function replayProblem(ledger: Serving["ledger"], before: readonly Row[]): Promise<string | undefined> {
  let problem: string | undefined;
  const erased = new Set(before.filter(({ evidence }) => evidence.includes("!")).map(({ seq }) => seq));
  const first = Math.min(...erased);
  const isLawful = (seq: number, why: string): boolean =>
    erased.delete(seq) ? why === "a part of its evidence was erased" : why === standsOnErased && seq > first;
  const history = {
    rows: ledger.head.seq,
    scan: (from: number) => ledger.rows.scan(from),
    contractText: (digest: string) => ledger.rows.contractText(digest),
    keyDigest: (key: string) => ledger.keyDigest(key),
  };
  await compareWithItself(history, {
    onRow: () => undefined,
    onAgreement: () => undefined,
    onSkip: (seq, why) => void (isLawful(seq, why) || (problem ??= `row ${seq} cannot be decided again: ${why}`)),
    differs: ({ leaf: { seq } }, difference) =>
      void (problem ??= `row ${seq} decided again: ${JSON.stringify(difference)}`),
  });
  if (erased.size > 0) problem ??= `rows ${[...erased].join(", ")} were erased, and are decided again`;
  return problem;
}

/** Checks that the pin never leads, and trails by no more than it may. */
function pinProblem(rows: readonly Row[], { disk, outside, pinFile, pinnedFrom }: Inspected): string | undefined {
  const text = textOf(disk, pinFile);
  if (text === undefined) return outside.told.size === 0 ? undefined : "the head pin is gone";
  const { seq, hash, root } = JSON.parse(text) as {
    readonly seq: number;
    readonly hash: string;
    readonly root: string;
  };
  if (seq > rows.length) return `LOST: the pin has seen row ${seq}, and the ledger ends at row ${rows.length}`;
  const row = rows[seq - 1];
  if (row !== undefined && hashOf(row) !== hash) return `row ${seq} is not the one that the pin has seen`;
  const problem = headProblem(rows, [{ size: seq, root }]);
  if (problem !== undefined) return `${problem} (by the pin)`;
  const due = pinnedFrom === undefined ? 0 : outside.reached(pinnedFrom);
  return seq < due ? `the pin is at row ${seq}, and row ${due} was answered more than a second before` : undefined;
}

function textOf(disk: Disk, name: string): string | undefined {
  const inode = disk.find(name);
  return inode && Buffer.from(inode.read(0, inode.size)).toString();
}

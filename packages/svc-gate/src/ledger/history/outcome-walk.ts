import { hasOutcome, mayFollow, outcomeAct, readOutcome, type Outcome, isEvent } from "../entry/outcome-rows.ts";
import { leafHash, parseLeaf, type Leaf } from "../entry/leaf.ts";
import type { Broken, StoredRow, StoredOutcome } from "../entry/row.ts";
import { readEffects, type RecordedEffect } from "../entry/verifier.ts";
import { takenChecksum } from "../store/checksums.ts";
import type { Counters, EventKey } from "./counter-walk.ts";

/** An event that an outcome took back, as the table of a store has it. */
export interface TabledTaken {
  readonly key: EventKey;
  readonly amount: string;
  /** The row of the outcome. */
  readonly outcome: number;
  /** Null if the outcome's row recorded it. */
  readonly checksum: string | null;
}

/** Reads the tables of outcomes of a store. */
export interface OutcomeReader {
  /** Returns some rows by their numbers. */
  rowsAt(rows: readonly number[]): Promise<readonly StoredRow[]>;
  /** Returns the last outcomes of some checks. */
  outcomesAt(rows: readonly number[]): Promise<readonly StoredOutcome[]>;
  /** Returns some outcomes after a check, in order; none at the end. */
  outcomesAfter(row: number): Promise<readonly StoredOutcome[]>;
  /** Returns the events that were taken back among these. */
  takenAt(keys: readonly EventKey[]): Promise<readonly TabledTaken[]>;
  /** Returns some events that were taken back, after one, in order; none at the end. */
  takenAfter(key: EventKey | undefined): Promise<readonly TabledTaken[]>;
}

interface Pending {
  readonly leaf: Leaf;
  readonly outcome: Outcome;
  readonly effects: readonly RecordedEffect[];
}

type RowAt = (seq: number) => { readonly leaf: Leaf; readonly hash: string; readonly evidence: string } | undefined;

/** Verifies outcomes during a walk: each must be lawful for the rows before it, and the tables must have what rows say. */
export class OutcomeWalk {
  readonly #reader: OutcomeReader;
  #counters: Counters = { kept: [], damaged: undefined };
  #pending: Pending[] = [];

  constructor(reader: OutcomeReader) {
    this.#reader = reader;
  }

  /** Takes the next row, whose evidence is verified. */
  take(leaf: Leaf, { evidence }: StoredRow): Broken | undefined {
    if (leaf.act !== outcomeAct) return undefined;
    const outcome = readOutcome(leaf, evidence);
    if (outcome === undefined) return unlawful(leaf.seq, "the outcome of an earlier check", "another body");
    this.#pending.push({ leaf, outcome, effects: readEffects(evidence) ?? [] });
    return undefined;
  }

  /** Compares the outcomes since the last step with the rows before them and with the tables. */
  async step(counters: Counters | undefined): Promise<Broken | undefined> {
    if (counters !== undefined) this.#counters = counters;
    const pending = this.#pending;
    this.#pending = [];
    if (pending.length === 0) return undefined;
    const behind = [...new Set(pending.flatMap(({ outcome: { row, before } }) => [row, ...before]))];
    const rowAt = await this.#rowsAt(behind);
    const last = new Map((await this.#reader.outcomesAt(behind)).map((each) => [each.seq, each]));
    for (const each of pending) {
      const broken = wrongOutcome(each, rowAt) ?? notLast(each, last.get(each.outcome.row));
      if (broken !== undefined) return broken;
      const untaken = await this.#untaken(each, rowAt);
      if (untaken !== undefined) return untaken;
    }
    return undefined;
  }

  async #rowsAt(rows: readonly number[]): Promise<RowAt> {
    const found = await this.#reader.rowsAt(rows.toSorted((a, b) => a - b));
    const read = new Map(found.map((row) => [row.seq, row]));
    return (seq) => {
      const { leaf: text = "", evidence = "" } = read.get(seq) ?? {};
      const leaf = parseLeaf(text);
      return leaf === undefined ? undefined : { leaf, hash: leafHash(text), evidence };
    };
  }

  /** Each event that the row takes back must be in the table with this row and this amount. */
  async #untaken({ leaf: { seq }, effects }: Pending, rowAt: RowAt): Promise<Broken | undefined> {
    const ids = new Map(this.#counters.kept.map(({ id, digest }) => [digest, id]));
    const taken = effects.flatMap(({ counter, key, amount, withdrawn }) => {
      if (withdrawn === undefined) return [];
      const at = rowAt(withdrawn)?.leaf.at ?? -1;
      return [{ key: [ids.get(counter) ?? -1, Buffer.from(key, "hex"), at, withdrawn] as const, amount }];
    });
    if (taken.length === 0) return undefined;
    const found = new Map(
      (await this.#reader.takenAt(taken.map(({ key }) => key))).map((each) => [nameOf(each.key), each]),
    );
    for (const { key, amount } of taken) {
      const tabled = found.get(nameOf(key));
      if (tabled?.outcome === seq && tabled.amount === amount && tabled.checksum === null) continue;
      return {
        seq,
        problem: "the counters do not have an event as taken back by its outcome",
        expected: amount,
        found: tabled === undefined ? "nothing taken back" : `${tabled.amount} by row ${tabled.outcome}`,
      };
    }
    return undefined;
  }

  /**
   * Looks for entries of the tables that no row explains. An entry is written together with its row.
   *
   * @param through the last row of the walk
   */
  async end(through: number): Promise<Broken | undefined> {
    return (await this.#strayOutcome(through)) ?? (await this.#strayTaken(through));
  }

  async #strayOutcome(through: number): Promise<Broken | undefined> {
    for (let after = 0; ;) {
      const entries = await this.#reader.outcomesAfter(after);
      const rowAt = await this.#rowsAt(entries.map(({ row }) => row));
      for (const { seq, row, status } of entries) {
        const found = rowAt(row);
        const outcome = found && readOutcome(found.leaf, found.evidence);
        if (outcome?.row === seq && outcome.status === status) continue;
        const problem = "an outcome is kept that no row reports";
        const at = found === undefined ? through + 1 : seq;
        return { seq: at, problem, expected: "none", found: `${status} of row ${seq} in row ${row}` };
      }
      const last = entries.at(-1);
      if (last === undefined) return undefined;
      after = last.seq;
    }
  }

  async #strayTaken(through: number): Promise<Broken | undefined> {
    const digests = new Map(this.#counters.kept.map(({ id, digest }) => [id, digest]));
    for (let after: EventKey | undefined; ;) {
      const entries = await this.#reader.takenAfter(after);
      const rowAt = await this.#rowsAt([...new Set(entries.flatMap(({ outcome, key }) => [outcome, key[3]]))]);
      for (const entry of entries) {
        const counter = digests.get(entry.key[0]);
        // A counter may have come into force after the walk has read the counters.
        const isNew = counter === undefined && entry.checksum !== null;
        const found = rowAt(entry.outcome);
        const isEntry =
          rowAt(entry.key[3])?.leaf.at === entry.key[2] && isRecorded(entry, counter ?? "", found?.evidence);
        if (isNew || isEntry) continue;
        const problem = "the counters took back an event that no outcome took back";
        const at = found === undefined ? through + 1 : entry.outcome;
        return { seq: at, problem, expected: "none", found: `${entry.amount} of row ${entry.key[3]}` };
      }
      after = entries.at(-1)?.key;
      if (after === undefined) return undefined;
    }
  }
}

/** What a fold found is not in a row of the counter, so its entry protects itself. */
function isRecorded(
  { key, amount, outcome, checksum }: TabledTaken,
  counter: string,
  evidence: string | undefined,
): boolean {
  const [, of, at, seq] = key;
  if (checksum !== null) return checksum === takenChecksum({ counter, key: of, at, seq, amount, takenBy: outcome });
  const name = Buffer.from(of).toString("hex");
  return (readEffects(evidence ?? "") ?? []).some(
    (effect) =>
      effect.counter === counter && effect.key === name && effect.amount === amount && effect.withdrawn === seq,
  );
}

function nameOf([counter, key, at, seq]: EventKey): string {
  return `${counter} ${Buffer.from(key).toString("hex")} ${at} ${seq}`;
}

/** The mistake in an outcome that does not follow from the rows before it. */
function wrongOutcome({ leaf, outcome, effects }: Pending, rowAt: RowAt): Broken | undefined {
  const { row, hash, before } = outcome;
  const { leaf: check, hash: found } = rowAt(row) ?? {};
  if (check === undefined || !hasOutcome(check) || found !== hash)
    return unlawful(leaf.seq, `row ${row}, a check that was let through`, "another row");
  if (outcome.may_lower === (check.key === leaf.key))
    return unlawful(
      leaf.seq,
      `an outcome by ${outcome.may_lower ? "another key than" : "the key"} ${check.key}`,
      String(leaf.key),
    );
  let standing: Outcome | undefined;
  for (const [index, seq] of outcome.before.entries()) {
    const behind = rowAt(seq);
    const earlier = behind && readOutcome(behind.leaf, behind.evidence);
    const follows = earlier?.row === row && earlier.before.join() === before.slice(0, index).join();
    if (earlier === undefined || !follows) return unlawful(leaf.seq, `an outcome of row ${row} in row ${seq}`, "none");
    standing = earlier;
  }
  if (!mayFollow(standing, outcome))
    return unlawful(
      leaf.seq,
      "an outcome that may come after the one before",
      `${outcome.status} after ${standing?.status}`,
    );
  return wrongTaken(leaf.seq, [row, ...before], effects, rowAt);
}

/** An event that an earlier row of the call recorded is taken back whole, and only then. */
function wrongTaken(
  seq: number,
  rows: readonly number[],
  effects: readonly RecordedEffect[],
  rowAt: RowAt,
): Broken | undefined {
  for (const { counter, key, amount, withdrawn } of effects) {
    if (withdrawn === undefined) continue;
    const recorded = (readEffects(rowAt(withdrawn)?.evidence ?? "") ?? []).find(
      (effect) => isEvent(effect) && effect.counter === counter && effect.key === key,
    );
    if (!rows.includes(withdrawn) || (recorded !== undefined && recorded.amount !== amount))
      return unlawful(seq, `the amount of row ${withdrawn}: ${recorded?.amount ?? "none"}`, amount);
  }
  return undefined;
}

function notLast({ leaf: { seq }, outcome }: Pending, last: StoredOutcome | undefined): Broken | undefined {
  if (last !== undefined && (last.row > seq || (last.row === seq && last.status === outcome.status))) return undefined;
  const found = last === undefined ? "no outcome" : `${last.status} in row ${last.row}`;
  return {
    seq,
    problem: "the table of outcomes differs from the rows",
    expected: `${outcome.status} in row ${seq}`,
    found,
  };
}

function unlawful(seq: number, expected: string, found: string): Broken {
  return { seq, problem: "an outcome does not follow from the rows before it", expected, found };
}

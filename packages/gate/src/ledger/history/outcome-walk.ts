import {
  hasOutcome,
  mayFollow,
  outcomeAct,
  readOutcome,
  type Outcome,
  isEvent,
} from "../../../../core/src/record/entry/outcome-rows.ts";
import { leafHash, parseLeaf, type Leaf } from "../../../../core/src/record/entry/leaf.ts";
import type { Mistake, StoredRow } from "../../../../core/src/record/entry/row.ts";
import { readEffects, type RecordedEffect } from "../../../../core/src/record/entry/verifier.ts";
import { takenChecksum } from "../store/checksums.ts";
import { type Counters, type Entry, type Tables } from "../store/tables.ts";
import { reportDamageAt } from "./findings.ts";
import { pagesOf } from "./table-reads.ts";

interface PendingOutcome {
  readonly leaf: Leaf;
  readonly outcome: Outcome;
  readonly effects: readonly RecordedEffect[];
}

type RowAt = (seq: number) => { readonly leaf: Leaf; readonly hash: string; readonly evidence: string } | undefined;

/** Verifies outcomes during a walk: each must be lawful for the rows before it, and the tables must have what rows say. */
export class OutcomeWalk {
  readonly #tables: Tables;
  #counters: Counters = { kept: [], damaged: undefined };
  #pending: PendingOutcome[] = [];

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** Takes the next row, whose evidence is verified. */
  take(leaf: Leaf, { evidence }: StoredRow): Mistake | undefined {
    if (leaf.act !== outcomeAct) return undefined;
    const outcome = readOutcome(leaf, evidence);
    if (outcome === undefined) return unlawful(leaf.seq, "the outcome of an earlier check", "another body");
    this.#pending.push({ leaf, outcome, effects: readEffects(evidence) ?? [] });
    return undefined;
  }

  /** Compares the outcomes since the last step with the rows before them and with the tables. */
  async step(counters: Counters | undefined): Promise<Mistake | undefined> {
    if (counters !== undefined) this.#counters = counters;
    const pending = this.#pending;
    this.#pending = [];
    if (pending.length === 0) return undefined;
    const behind = [...new Set(pending.flatMap(({ outcome: { row, before } }) => [row, ...before]))];
    const rowAt = await this.#rowsAt(behind);
    const last = new Map((await this.#at("outcomes", behind)).map((each) => [each.seq, each]));
    for (const each of pending) {
      const broken = wrongOutcome(each, rowAt) ?? notLast(each, last.get(each.outcome.row));
      if (broken !== undefined) return broken;
      const untaken = await this.#untaken(each, rowAt);
      if (untaken !== undefined) return untaken;
    }
    return undefined;
  }

  #at<T extends "outcomes" | "receipts">(table: T, rows: readonly number[]): Promise<readonly Entry<T>[]> {
    return reportDamageAt(rows, () => this.#tables.where(table, "seq", rows));
  }

  async #rowsAt(rows: readonly number[]): Promise<RowAt> {
    const found = await this.#at("receipts", rows);
    const read = new Map(found.map((row) => [row.seq, row]));
    return (seq) => {
      const { leaf: text = "", evidence = "" } = read.get(seq) ?? {};
      const leaf = parseLeaf(text);
      return leaf === undefined ? undefined : { leaf, hash: leafHash(text), evidence };
    };
  }

  /** Each event that the row takes back must be in the table with this row and this amount. */
  async #untaken({ leaf: { seq }, effects }: PendingOutcome, rowAt: RowAt): Promise<Mistake | undefined> {
    const ids = new Map(this.#counters.kept.map(({ id, digest }) => [digest, id]));
    const taken = effects.flatMap(({ counter, key, amount, withdrawn }) => {
      if (withdrawn === undefined) return [];
      const at = rowAt(withdrawn)?.leaf.at ?? -1;
      return [{ key: [ids.get(counter) ?? -1, key, at, withdrawn], amount }];
    });
    if (taken.length === 0) return undefined;
    const keys = taken.map(({ key }) => key);
    const entries = await reportDamageAt(seq, () => this.#tables.at("withdrawals", keys));
    for (const [index, { amount }] of taken.entries()) {
      const tabled = entries[index];
      if (tabled?.outcome === seq && tabled.amount === amount && tabled.folded === null) continue;
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
  end(through: number): Promise<Mistake | undefined> {
    return reportDamageAt(
      through + 1,
      async () => (await this.#strayOutcome(through)) ?? (await this.#strayTaken(through)),
    );
  }

  async #strayOutcome(through: number): Promise<Mistake | undefined> {
    for await (const entries of pagesOf(this.#tables, "outcomes")) {
      const rowAt = await this.#rowsAt(entries.map(({ outcome }) => outcome));
      for (const { seq, outcome: row, status } of entries) {
        const found = rowAt(row);
        const outcome = found && readOutcome(found.leaf, found.evidence);
        if (outcome?.row === seq && outcome.status === status) continue;
        const problem = "an outcome is kept that no row reports";
        const at = found === undefined ? through + 1 : seq;
        return { seq: at, problem, expected: "none", found: `${status} of row ${seq} in row ${row}` };
      }
    }
    return undefined;
  }

  async #strayTaken(through: number): Promise<Mistake | undefined> {
    const digests = new Map(this.#counters.kept.map(({ id, digest }) => [id, digest]));
    for await (const entries of pagesOf(this.#tables, "withdrawals")) {
      const rowAt = await this.#rowsAt([...new Set(entries.flatMap(({ outcome, seq }) => [outcome, seq]))]);
      for (const entry of entries) {
        const counter = digests.get(entry.counter);
        // A counter may have come into force after the walk has read the counters.
        const isNew = counter === undefined && entry.folded !== null;
        const found = rowAt(entry.outcome);
        const isEntry = rowAt(entry.seq)?.leaf.at === entry.at && isRecorded(entry, counter ?? "", found?.evidence);
        if (isNew || isEntry) continue;
        const problem = "the counters took back an event that no outcome took back";
        const at = found === undefined ? through + 1 : entry.outcome;
        return { seq: at, problem, expected: "none", found: `${entry.amount} of row ${entry.seq}` };
      }
    }
    return undefined;
  }
}

/** What a fold found is not in a row of the counter, so its entry protects itself. */
function isRecorded(
  { key, at, seq, amount, outcome, folded }: Entry<"withdrawals">,
  counter: string,
  evidence: string | undefined,
): boolean {
  if (folded !== null) return folded === takenChecksum({ counter, key, at, seq, amount, takenBy: outcome });
  return (readEffects(evidence ?? "") ?? []).some(
    (effect) =>
      effect.counter === counter && effect.key === key && effect.amount === amount && effect.withdrawn === seq,
  );
}

/** The mistake in an outcome that does not follow from the rows before it. */
function wrongOutcome({ leaf, outcome, effects }: PendingOutcome, rowAt: RowAt): Mistake | undefined {
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
): Mistake | undefined {
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

function notLast({ leaf: { seq }, outcome }: PendingOutcome, last: Entry<"outcomes"> | undefined): Mistake | undefined {
  const isLast = last?.outcome === seq && last.status === outcome.status;
  if (isLast || (last?.outcome ?? 0) > seq) return undefined;
  const found = last === undefined ? "no outcome" : `${last.status} in row ${last.outcome}`;
  return {
    seq,
    problem: "the table of outcomes differs from the rows",
    expected: `${outcome.status} in row ${seq}`,
    found,
  };
}

function unlawful(seq: number, expected: string, found: string): Mistake {
  return { seq, problem: "an outcome does not follow from the rows before it", expected, found };
}

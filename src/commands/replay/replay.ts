import type { ContractInForce } from "../../contract/mod.ts";
import { countedOf } from "../../gate/mod.ts";
import type { Mode } from "../../wire/mod.ts";
import type { History } from "../history.ts";
import {
  askAgain,
  Contracts,
  decideAgain,
  decideAsked,
  difference,
  type Again,
  type Difference,
} from "./decide-again.ts";
import { isChange, movedCounters, readLeaf, readRecorded, recordedAt, type Recorded } from "./recorded.ts";
import { Standing } from "./standing.ts";

/** What a replay tells as it goes. */
export interface Telling {
  /** A row was read. */
  passed(seq: number): void;
  /** A row cannot be decided again. */
  skipped(seq: number, why: string): void;
}

export interface Agreement extends Telling {
  agreed(recorded: Recorded): void;
  differs(recorded: Recorded, difference: Difference): void;
}

/** Decides each row again under the contract that it names, and holds everything against what it recorded. */
export async function holdAgainstItself(history: History, telling: Agreement): Promise<void> {
  const contracts = new Contracts(history);
  const standing = new Standing(history);
  let inForce: string | null = null;
  let force: ContractInForce | string = "no contract";
  for await (const recorded of recordedRows(history, telling, standing)) {
    const { leaf } = recorded;
    if (leaf.contract !== inForce) {
      inForce = leaf.contract;
      force = await contracts.of(inForce ?? "");
      if (typeof force !== "string") await standing.align(force, leaf.seq);
    }
    if (typeof force === "string") {
      standing.skip(leaf.at, movedCounters(recorded.row));
      telling.skipped(leaf.seq, force);
      continue;
    }
    const asked = askAgain(force, recorded);
    const again = decideAsked(asked, (lookup) => standing.value(lookup), leaf.mode ?? "enforce");
    const found = difference(recorded, again, history);
    if (found === undefined) telling.agreed(recorded);
    else if (asked.lookups.some((lookup) => standing.isLacking(lookup))) telling.skipped(leaf.seq, standsOnErased);
    else telling.differs(recorded, found);
    // By what happened: one row that differs does not make others differ.
    const { verdict, answered } = leaf;
    if (verdict !== null && answered !== null)
      standing.add(countedOf(again.prepared, again.otherPrepared, { verdict, answered }), leaf.at);
  }
}

/** Why a row is skipped that differs and has read a counter which cannot be had as it was. */
export const standsOnErased = "a counter that it read stands on a row that cannot be read";

export interface Comparison extends Telling {
  decided(recorded: Recorded, again: Again): void;
}

export interface Against {
  readonly force: ContractInForce;
  /** In place of the mode that each row was answered in. */
  readonly mode: Mode | undefined;
}

/** Decides each row as if another contract had been in force from the first row on. Its own decisions move its counters. */
export async function decideAllAgain(history: History, { force, mode }: Against, telling: Comparison): Promise<void> {
  const standing = new Standing(history);
  await standing.align(force, 1);
  for await (const recorded of recordedRows(history, telling, standing)) {
    const again = decideAgain(force, recorded, standing, mode ?? recorded.leaf.mode ?? "enforce");
    telling.decided(recorded, again);
    const { decision, answered, prepared, otherPrepared } = again;
    standing.add(countedOf(prepared, otherPrepared, { verdict: decision.verdict, answered }), recorded.leaf.at);
  }
}

async function* recordedRows(history: History, telling: Telling, standing: Standing): AsyncGenerator<Recorded> {
  for await (const slice of history.scan(1)) {
    for (const row of slice) {
      telling.passed(row.seq);
      if (isChange(row)) {
        const leaf = readLeaf(row);
        if (typeof leaf !== "string") standing.act(leaf, row.evidence);
        continue;
      }
      const recorded = readRecorded(row);
      if (typeof recorded !== "string") yield recorded;
      else {
        standing.skip(recordedAt(row.leaf), movedCounters(row));
        telling.skipped(row.seq, recorded);
      }
      standing.answered();
    }
  }
}

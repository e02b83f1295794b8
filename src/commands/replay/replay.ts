import type { ContractInForce } from "../../contract/mod.ts";
import { countedOf, countersOf, recountRow } from "../../gate/mod.ts";
import type { Mode } from "../../wire/mod.ts";
import type { Leaf } from "../../ledger/mod.ts";
import type { History, RecordedRow } from "../history.ts";
import {
  askAgain,
  Contracts,
  decideAgain,
  decideAsked,
  difference,
  type Again,
  type Difference,
} from "./decide-again.ts";
import {
  inputNotKept,
  otherKind,
  movedCounters,
  readLeaf,
  readRecorded,
  recordedAt,
  type Recorded,
} from "./recorded.ts";
import { counterDigest, Standing } from "./standing.ts";

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
  for await (const check of checksOf(history, telling, standing)) {
    const { leaf, recorded } = check;
    // A row that cannot be decided again says still what was in force.
    if (leaf !== undefined && leaf.contract !== inForce) {
      inForce = leaf.contract;
      force = await contracts.of(inForce ?? "");
      if (typeof force !== "string") await standing.align(force, leaf.seq);
    }
    if (typeof recorded === "string") {
      skip(check, recorded, telling, standing);
      continue;
    }
    if (typeof force === "string") {
      skip(check, force, telling, standing);
      continue;
    }
    if (recorded.cutInput !== undefined) {
      skipCut(recorded, force, telling, standing);
      continue;
    }
    const asked = askAgain(force, recorded);
    const again = decideAsked(asked, (lookup) => standing.value(lookup), recorded.leaf.mode ?? "enforce");
    const found = difference(recorded, again, history);
    if (found === undefined) telling.agreed(recorded);
    else if (asked.lookups.some((lookup) => standing.isLacking(lookup)))
      telling.skipped(recorded.leaf.seq, standsOnErased);
    else telling.differs(recorded, found);
    // By what happened: one row that differs does not make others differ.
    const { verdict, answered, at } = recorded.leaf;
    if (verdict !== null && answered !== null)
      standing.add(countedOf(again.prepared, again.otherPrepared, { verdict, answered }), at);
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
  for await (const check of checksOf(history, telling, standing)) {
    const { recorded } = check;
    if (typeof recorded === "string") {
      skip(check, recorded, telling, standing);
      continue;
    }
    if (recorded.cutInput !== undefined) {
      skip(check, inputNotKept, telling, standing);
      continue;
    }
    const again = decideAgain(force, recorded, standing, mode ?? recorded.leaf.mode ?? "enforce");
    telling.decided(recorded, again);
    const { decision, answered, prepared, otherPrepared } = again;
    standing.add(countedOf(prepared, otherPrepared, { verdict: decision.verdict, answered }), recorded.leaf.at);
  }
}

/** The row of a check, as far as it can be read. */
interface Check {
  readonly row: RecordedRow;
  /** Undefined where not even that can be read. */
  readonly leaf: Leaf | undefined;
  /** A clause that says why it cannot be decided again, where it cannot. */
  readonly recorded: Recorded | string;
}

async function* checksOf(history: History, telling: Telling, standing: Standing): AsyncGenerator<Check> {
  for await (const slice of history.scan(1)) {
    for (const row of slice) {
      telling.passed(row.seq);
      const recorded = otherKind(row) === undefined ? readRecorded(row) : undefined;
      const leaf = typeof recorded === "object" ? recorded.leaf : readLeaf(row);
      const read = typeof leaf === "string" ? undefined : leaf;
      if (recorded === undefined) {
        if (read !== undefined) standing.act(read, row.evidence);
        continue;
      }
      yield { row, leaf: read, recorded };
      standing.answered();
    }
  }
}

/** The call still moves counters that need no input. Otherwise an agent could prevent their replay. */
function skipCut({ leaf, row }: Recorded, force: ContractInForce, telling: Telling, standing: Standing): void {
  const lacking = new Set(movedCounters(row));
  for (const owned of countersOf(force)) {
    const digest = counterDigest(owned.counter.identity);
    const moves = lacking.has(digest) ? recountRow(owned, leaf, row.evidence) : undefined;
    if (moves === undefined || moves.length === 0) continue;
    standing.add(moves, leaf.at);
    lacking.delete(digest);
  }
  standing.skip(leaf.at, lacking);
  telling.skipped(leaf.seq, inputNotKept);
}

function skip({ row }: Check, why: string, telling: Telling, standing: Standing): void {
  standing.skip(recordedAt(row.leaf), movedCounters(row));
  telling.skipped(row.seq, why);
}

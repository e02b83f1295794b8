import { hash } from "node:crypto";
import { recount, type PolicySet, type Counter } from "../../contract/mod.ts";
import { readResume, resumeOf, type FoldedEvent, type Ledger, type AppendTransaction } from "../../ledger/mod.ts";
import { parseLeaf, readCall, readCutInput, wholeText, type Leaf } from "../../ledger/entry/mod.ts";
import { isVerdict, visible } from "../../wire/mod.ts";

/** What is said of a counter that begins to be kept. */
export interface Folded {
  readonly counter: string;
  /** Older receipts that were looked through, and what they had of it. */
  readonly rows: number;
  readonly events: number;
  /** Milliseconds: before this it cannot be known, -1 when all is known. */
  readonly unknownThrough: number;
  /** It counts from now on, because its contract says so. */
  readonly startsEmpty: boolean;
}

/** How far a counter was folded. */
export interface Progress {
  readonly through: number;
  readonly unknownThrough: number;
  readonly rows: number;
  readonly events: number;
}

/**
 * Folds counters that are new from the receipts there are, beside checks that go on: slice by slice, so that a long
 * history needs little memory, and a fold that is cut off goes on where it was.
 *
 * @returns by the counter's identity, how far each came
 */
export async function foldAhead(policySet: PolicySet, ledger: Ledger): Promise<ReadonlyMap<string, Progress>> {
  const kept = new Map((await ledger.counters()).map((counter) => [counter.definition, counter]));
  const reached = new Map<string, Progress>();
  for (const owned of countersOf(policySet)) {
    const { identity: definition } = owned.counter;
    const { through = 0, unknownThrough = -1 } = kept.get(definition) ?? {};
    if (through === null) continue;
    // What started empty once goes on from where it stood, as every counter does that comes back.
    if (owned.counter.startsEmpty && !kept.has(definition)) continue;
    const start = { through, unknownThrough, rows: 0, events: 0 };
    const keep: Keep = (progress, found) => ledger.keepCounter({ definition, ...progress }, found);
    reached.set(definition, await catchUp(owned, ledger, start, keep));
  }
  return reached;
}

/**
 * Brings the ledger's counters in line with a contract, inside the transaction from which it is in force: what is new is folded
 * to the last row, what is no longer in force is left where it stands.
 */
export async function alignCounters(
  policySet: PolicySet,
  ledger: Ledger,
  transaction: AppendTransaction,
  ahead: ReadonlyMap<string, Progress>,
): Promise<readonly Folded[]> {
  const owned = countersOf(policySet);
  const inForce = new Set(owned.map(({ counter }) => counter.identity));
  const live = new Set<string>();
  for (const { definition, through, unknownThrough } of await ledger.counters()) {
    if (through !== null) continue;
    live.add(definition);
    if (!inForce.has(definition))
      await transaction.keepCounter({ definition, through: transaction.head.seq, unknownThrough }, []);
  }
  const folded: Folded[] = [];
  const lostThrough = await freshLoss(ledger, transaction);
  for (const each of owned) {
    const { identity: definition, name } = each.counter;
    if (live.has(definition)) continue;
    const startsEmpty = each.counter.startsEmpty && !ahead.has(definition);
    const start = ahead.get(definition) ?? { through: 0, unknownThrough: -1, rows: 0, events: 0 };
    const keep: Keep = (progress, found) => transaction.keepCounter({ definition, ...progress }, found);
    const { rows, events, unknownThrough } = startsEmpty
      ? { ...start, unknownThrough: lostThrough }
      : await catchUp(each, ledger, start, keep);
    await transaction.keepCounter({ definition, through: null, unknownThrough }, []);
    folded.push({ counter: name, rows, events, unknownThrough, startsEmpty });
  }
  return folded;
}

/**
 * The moment of a loss after which no check was answered yet, else -1: what would start empty now may have counted calls
 * in the rows that are gone.
 */
async function freshLoss(ledger: Ledger, transaction: AppendTransaction): Promise<number> {
  if (transaction.changed === 0 || transaction.head.seq > transaction.changed) return -1;
  const changes = await ledger.changes(0);
  const place = changes.findLastIndex(({ act, body }) => resumeOf(act, body)?.lost !== undefined);
  const { seq, at } = changes[place] ?? { seq: 0, at: -1 };
  const onlyActsSince = transaction.head.seq - seq === changes.length - 1 - place;
  return place !== -1 && onlyActsSince ? at : -1;
}

/** Sentences on counters that were reset since the last check: each counts from zero, so a limit is weaker. */
export async function resetWarnings(ledger: Ledger): Promise<readonly string[]> {
  const changes = await ledger.changes(0);
  const later = changes.filter(({ seq }, index) => ledger.head.seq - seq === changes.length - 1 - index);
  return later.flatMap(({ act, body, seq, by }) => {
    const names = [...(resumeOf(act, body)?.reset.values() ?? [])].join(", ");
    if (names === "") return [];
    return [`row ${seq} (by ${visible(by)}) reset ${visible(names)}: calls before it do not count any more`];
  });
}

/** A counter with the contract that says how calls move it. */
export interface Owned {
  readonly counter: Counter;
  readonly policySet: PolicySet;
}

/** One counter for each definition; it starts empty only if all contracts that share it say so. */
export function countersOf(policySet: PolicySet): readonly Owned[] {
  const found = new Map<string, Owned>();
  for (const counter of policySet.counters) {
    const same = found.get(counter.identity);
    const startsEmpty = counter.startsEmpty && same?.counter.startsEmpty !== false;
    found.set(counter.identity, { policySet, counter: { ...counter, startsEmpty } });
  }
  return [...found.values()];
}

type Keep = (progress: Pick<Progress, "through" | "unknownThrough">, found: readonly FoldedEvent[]) => Promise<void>;

async function catchUp(owned: Owned, ledger: Ledger, start: Progress, keep: Keep): Promise<Progress> {
  const counter = hash("sha256", owned.counter.identity, "hex");
  let { through, unknownThrough, rows, events } = start;
  for await (const slice of ledger.rows(through + 1)) {
    const found: FoldedEvent[] = [];
    for (const row of slice) {
      const leaf = parseLeaf(row.leaf);
      const { seq, at } = leaf ?? { seq: row.seq, at: ledger.head.at };
      const updates = leaf === undefined ? undefined : recountRow(owned, leaf, row.evidence);
      if (updates === undefined) unknownThrough = Math.max(unknownThrough, at);
      else for (const { key, amount } of updates) found.push({ seq, at, counter, key, amount });
    }
    through = slice.at(-1)?.seq ?? through;
    rows += slice.length;
    events += found.length;
    await keep({ through, unknownThrough }, found);
  }
  return { through, unknownThrough, rows, events };
}

/**
 * What the counter would have counted of a recorded check; undefined where the receipt lacks what it needs, or says that
 * receipts before it are lost.
 */
export function recountRow({ counter, policySet }: Owned, leaf: Leaf, evidence: string): ReturnType<typeof recount> {
  if (leaf.kind !== "check") return readResume(leaf, evidence)?.lost === undefined ? [] : undefined;
  const call = readCall(evidence);
  if (call === undefined) return undefined;
  const { verdict, answered, key } = leaf;
  if (verdict === null || answered === null || !isVerdict(verdict)) return [];
  const isInputCut = readCutInput(evidence) !== undefined;
  return recount(counter, policySet, {
    toolName: call.tool_name,
    sessionId: call.session_id,
    keyName: key ?? "",
    inputText: isInputCut ? undefined : wholeText(evidence, "input"),
    isInputCut,
    platformText: wholeText(evidence, "platform"),
    verdict,
    answered,
    rule: leaf.rule ?? "",
  });
}

import { hash } from "node:crypto";
import { recount, type ContractInForce, type Counter } from "../contract/mod.ts";
import { parseLeaf, partText, readCall, type Leaf, type Ledger } from "../ledger/mod.ts";
import { isVerdict } from "../wire/mod.ts";

/** What a start says of a counter whose events had to be found in older receipts. */
export interface Folded {
  readonly counter: string;
  readonly rows: number;
  readonly events: number;
  /** Milliseconds: before this it cannot be known, -1 when all is known. */
  readonly unknownThrough: number;
}

/**
 * Brings the ledger's counters in line with the contract in force, before anything is served: a definition that is new
 * is folded from the receipts, one that is no longer in force is left where it stands.
 *
 * @returns for each definition its digest, and what was folded
 */
export async function alignCounters(
  force: ContractInForce,
  ledger: Ledger,
): Promise<{ readonly digests: ReadonlyMap<string, string>; readonly folded: readonly Folded[] }> {
  const owned = countersOf(force);
  const digests = new Map(owned.map(({ counter: { identity } }) => [identity, hash("sha256", identity, "hex")]));
  const inForce = new Set(digests.values());
  for (const { digest, definition, through, unknownThrough } of ledger.counters) {
    if (through === null && !inForce.has(digest))
      await ledger.keepCounter({ definition, through: ledger.head.seq, unknownThrough }, []);
  }
  const folded: Folded[] = [];
  for (const each of owned) {
    const { counter } = each;
    const kept = ledger.counters.find(({ digest }) => digest === digests.get(counter.identity));
    if (kept?.through === null) continue;
    folded.push(await fold(each, ledger, kept));
  }
  return { digests, folded };
}

/** A counter with the contract that says how calls move it. */
export interface Owned {
  readonly counter: Counter;
  readonly force: ContractInForce;
}

/** One counter for each definition, of the candidate too; it starts empty only if all contracts that share it say so. */
export function countersOf(inForce: ContractInForce): readonly Owned[] {
  const found = new Map<string, Owned>();
  for (const force of inForce.candidate === undefined ? [inForce] : [inForce, inForce.candidate]) {
    for (const counter of force.counters) {
      const same = found.get(counter.identity);
      const startsEmpty = counter.startsEmpty && same?.counter.startsEmpty !== false;
      found.set(counter.identity, { force: same?.force ?? force, counter: { ...counter, startsEmpty } });
    }
  }
  return [...found.values()];
}

type Kept = { readonly through: number | null; readonly unknownThrough: number } | undefined;

/** Slice by slice, so that a long history needs little memory, and a fold that is cut off goes on where it was. */
async function fold(owned: Owned, ledger: Ledger, kept: Kept): Promise<Folded> {
  const { counter } = owned;
  const { identity: definition, name } = counter;
  const digest = hash("sha256", definition, "hex");
  const from = (kept?.through ?? 0) + 1;
  const skip = counter.startsEmpty || from > ledger.head.seq;
  let unknownThrough = kept?.unknownThrough ?? -1;
  let [rows, events] = [0, 0];
  for await (const slice of skip ? [] : ledger.rows(from)) {
    const found = [];
    for (const row of slice) {
      const leaf = parseLeaf(row.leaf);
      const { seq, at } = leaf ?? { seq: row.seq, at: ledger.head.at };
      const moves = leaf === undefined ? undefined : recountRow(owned, leaf, row.evidence);
      if (moves === undefined) unknownThrough = Math.max(unknownThrough, at);
      else for (const { key, amount } of moves) found.push({ seq, at, counter: digest, key, amount });
    }
    rows += slice.length;
    events += found.length;
    await ledger.keepCounter({ definition, through: slice.at(-1)?.seq ?? 0, unknownThrough }, found);
  }
  await ledger.keepCounter({ definition, through: null, unknownThrough }, []);
  return { counter: name, rows, events, unknownThrough };
}

/** What the counter would have counted of a recorded check; undefined where the receipt lacks what it needs. */
export function recountRow({ counter, force }: Owned, leaf: Leaf, evidence: string): ReturnType<typeof recount> {
  const call = readCall(evidence);
  if (call === undefined) return undefined;
  const { verdict, answered, key } = leaf;
  if (verdict === null || answered === null || !isVerdict(verdict)) return [];
  return recount(counter, force, {
    toolName: call.tool_name,
    sessionId: call.session_id,
    keyName: key ?? "",
    inputText: partText(evidence, "input"),
    platformText: partText(evidence, "platform"),
    verdict,
    answered,
    rule: leaf.rule ?? "",
  });
}

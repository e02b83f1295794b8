import { hash } from "node:crypto";
import type { PolicySet } from "../../../../core/src/contract/mod.ts";
import type { InForce, Ledger } from "../../ledger/mod.ts";
import { parseLeaf } from "../../../../core/src/record/entry/mod.ts";
import type { Mode } from "../../../../core/src/wire/mod.ts";
import { noContracts } from "./contracts.ts";
import { counterDigest, countersOf } from "./owned-counters.ts";
import { engine } from "../version.ts";

/** The contracts and the mode that a gate decides by. They change between two batches, never within one. */
export interface ActivePolicy extends InForce {
  readonly policySet: PolicySet;
  /** SHA-256 in hex of the body of GET /rules: `contract` on each receipt. */
  readonly contract: string;
  readonly mode: Mode;
  /** The digest under which the ledger keeps a counter, by the counter's identity. */
  readonly counterDigests: ReadonlyMap<string, string>;
}

export function activePolicy(policySet: PolicySet, mode: Mode): ActivePolicy {
  return {
    policySet,
    contract: hash("sha256", policySet.text, "hex"),
    mode,
    engine,
    counterDigests: new Map(
      countersOf(policySet).map(({ counter: { identity } }) => [identity, counterDigest(identity)]),
    ),
  };
}

/**
 * Returns what was in force in the last row of a ledger. On a ledger without rows, returns what a gate without settings
 * puts in force.
 */
export async function recordedPolicy(ledger: Ledger): Promise<InForce> {
  for await (const [row] of ledger.rows.scan(Math.max(1, ledger.head.seq))) {
    const { contract, mode, engine: writer } = parseLeaf(row?.leaf ?? "") ?? {};
    if (contract && mode && writer) return { contract: contract.replace(/^sha256:/, ""), mode, engine: writer };
  }
  const nothing = activePolicy(noContracts(), ledger.modeAtOpen ?? "observe");
  await ledger.keepContract(nothing.policySet.text);
  return nothing;
}

/** Returns true if both have the same contract and mode. */
export function agrees(one: InForce, other: InForce): boolean {
  return one.contract === other.contract && one.mode === other.mode;
}

/**
 * Returns true if the version of the engine is later than this one. Two versions on one ledger could decide the same
 * call differently.
 */
export function isLater(other: string): boolean {
  const [theirs, ours] = [numbersOf(other), numbersOf(engine)];
  const at = ours.findIndex((number, index) => number !== theirs[index]);
  return at !== -1 && (theirs[at] ?? 0) > (ours[at] ?? 0);
}

function numbersOf(name: string): readonly number[] {
  return name.replace(/^.*\//, "").split(".").map(Number);
}

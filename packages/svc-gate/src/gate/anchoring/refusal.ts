import type { Parting } from "./known.ts";

/** That somebody has seen what is not in the ledger. */
export interface Claim {
  readonly by: string;
  readonly parting: Parting;
}

/** Why a ledger must not be served: what is known of it, by whom, and what to do. */
export function refusalOf({ by, parting }: Claim, rows: number): string {
  const { kind, size, proof } = parting;
  if (proof !== undefined) {
    const found =
      kind === "missing"
        ? `the ledger ends at row ${rows}, and the ${by} has a checkpoint through row ${size}: rows are missing from its end`
        : `the ${by} has a checkpoint through row ${size} of another history: the ledger was changed, or grew on two sides`;
    return `${found}. A key of this ledger has signed it: restore the ledger, or see docs/anchors.md on \`svc-gate resume\``;
  }
  const said =
    kind === "missing"
      ? `the ledger ends at row ${rows}, and the ${by} says that it has seen row ${size}`
      : `the ${by} says that it has seen another history through row ${size}`;
  return `${said}, and does not show it under a key of this ledger: find out why (docs/anchors.md), or start once with --accept anchors`;
}

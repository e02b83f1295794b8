import type { Divergence } from "../../ledger/mod.ts";

/** Returns why a ledger must not be served: the facts, the anchor that knows them, and what to do. */
export function refusalOf({ kind, head: { by, proof, seq } }: Divergence, rows: number): string {
  if (proof !== undefined) {
    const found =
      kind === "truncated"
        ? `the ledger ends at row ${rows}, and the ${by} has a checkpoint through row ${seq}: rows are missing from its end`
        : `the ${by} has a checkpoint through row ${seq} of another history: the ledger was changed, or was forked`;
    return `${found}. A key of this ledger has signed it: restore the ledger, or see docs/guides/anchors.md on \`svc-gate resume\``;
  }
  const said =
    kind === "truncated"
      ? `the ledger ends at row ${rows}, and the ${by} says that it has seen row ${seq}`
      : `the ${by} says that it has seen another history through row ${seq}`;
  return (
    `${said}, but shows no signature by a key of this ledger: find out why (docs/guides/anchors.md), ` +
    "or start once with --accept anchors"
  );
}

import {
  coveredAmounts,
  withUse,
  type ApprovalAct,
  type Grant,
  type GrantUse,
} from "../../../../core/src/approvals/mod.ts";
import { readJudgement } from "../../../../core/src/record/entry/approval-rows.ts";
import { missingParts } from "../../../../core/src/record/entry/evidence.ts";
import { grantableCall, grantActOf, sourceCall, withGrantRow } from "../../../../core/src/record/entry/grant-rows.ts";
import type { Leaf } from "../../../../core/src/record/entry/leaf.ts";
import type { Mistake, StoredRow } from "../../../../core/src/record/entry/row.ts";

/** Verifies grants during a walk from the first row. */
export class GrantWalk {
  readonly #rowsAt: (rows: readonly number[]) => Promise<readonly StoredRow[]>;
  readonly #digest: (text: string) => string;
  #grants: readonly Grant[] = [];
  /** Uses of grants that the walk has not compared with their rows yet, each with the grant before it. */
  #granted: (GrantUse & { readonly seq: number; readonly of: Grant })[] = [];

  /** @param digest makes keyed digests */
  constructor(rowsAt: (rows: readonly number[]) => Promise<readonly StoredRow[]>, digest: (text: string) => string) {
    this.#rowsAt = rowsAt;
    this.#digest = digest;
  }

  /** Follows grants: each use, and each act about a grant, needs a grant that is in force. */
  take(leaf: Leaf, row: StoredRow, act: ApprovalAct | undefined): Mistake | undefined {
    const { at, seq } = leaf;
    const own = grantActOf(leaf, row.evidence);
    const named = own === undefined || own.act === "grant.create" ? [] : [own.grant];
    const uses = act?.act === "approval.use" ? (act.grants ?? []) : [];
    let left = this.#grants;
    for (const grant of [...named, ...uses.map((use) => use.grant)]) {
      const of = left.find((each) => each.row === grant && at < each.until);
      if (of === undefined) return unlawful(seq, "a grant in force", `row ${grant}`);
    }
    for (const use of uses) {
      const of = left.find((each) => each.row === use.grant);
      if (of === undefined || of.used >= of.uses)
        return unlawful(seq, "a grant that has uses left", `row ${use.grant}`);
      this.#granted.push({ ...use, seq, of });
      left = left.map((each) => (each === of ? withUse(of, use.amounts) : each));
    }
    this.#grants = withGrantRow(this.#grants, row, this.#digest);
    return undefined;
  }

  /** Compares the uses of grants since the last step with the calls, and with the rows that the grants were made from. */
  async step(): Promise<Mistake | undefined> {
    const granted = this.#granted;
    this.#granted = [];
    for (const { amounts, of, row, seq } of granted) {
      const rows = await this.#rowsAt([of.source, row]);
      const [source, used] = [of.source, row].map((number) => rows.find((each) => each.seq === number));
      const how = used && readJudgement(used.evidence);
      if (how !== undefined && how.grant !== of.row) return unlawful(seq, `a use of grant ${of.row}`, `row ${row}`);
      const call = used && grantableCall(used, this.#digest);
      const from = source && sourceCall(source, this.#digest);
      const isErased = [source, used].some((each) => each !== undefined && missingParts(each.evidence).length > 0);
      if (isErased) continue;
      const covered = call && from && coveredAmounts(of, call, from);
      if (covered === undefined || JSON.stringify(covered) !== JSON.stringify(amounts))
        return unlawful(seq, `a call that the grant of row ${of.row} covers`, `row ${row}`);
    }
    return undefined;
  }
}

export function unlawful(seq: number, expected: string, found: string): Mistake {
  return { seq, problem: "the row about an approval does not follow from the rows before it", expected, found };
}

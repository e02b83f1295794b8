import type { RecordedJudgement } from "../../../core/src/approvals/mod.ts";
import { readJudgement, findEndedApproval, endedBy, wholeText, type Leaf } from "../../../core/src/record/entry/mod.ts";
import type { RecordedRow } from "../history.ts";

/** An approval that is open, by the row that asked. */
interface OpenApprovalRow {
  readonly row: RecordedRow;
  readonly leaf: Leaf;
}

/** The approvals that are open while rows are replayed. */
export class OpenApprovals {
  /** By the row that asked: only these rows reserve amounts. */
  readonly rows: Map<number, OpenApprovalRow> = new Map();
  /** The keys of checks whose outcome was erased. They may have ended approvals; the acts after the checks say so. */
  readonly #doubted = new Set<string | null>();
  #isAfterAct = false;

  /**
   * Applies what a row says about approvals.
   *
   * @param known what became of the check, if the row was read
   * @returns the rows whose approvals the row ends
   */
  pass(row: RecordedRow, leaf: Leaf, known?: RecordedJudgement): ReturnType<typeof endedBy> {
    if (leaf.kind !== "check") {
      this.#isAfterAct = true;
      return this.#end(endedBy(leaf, row.evidence));
    }
    if (this.#isAfterAct) this.#doubted.clear();
    this.#isAfterAct = false;
    const judgement = known ?? readJudgement(row.evidence) ?? {};
    const used = findEndedApproval(judgement);
    const ended = this.#end(used === undefined ? [] : [[used, used]]);
    const isErased = isOutcomeErased(row);
    if (isErased && leaf.answered !== "BLOCK") this.#doubted.add(leaf.key);
    if (judgement.how === "opened" || (isErased && leaf.answered === "ESCALATE")) this.rows.set(row.seq, { row, leaf });
    return ended;
  }

  #end(ended: ReturnType<typeof endedBy>): ReturnType<typeof endedBy> {
    for (const [from, to] of ended)
      for (const row of from === to ? [from] : this.rows.keys()) if (row >= from && row <= to) this.rows.delete(row);
    return ended;
  }

  /** The approvals that erased checks may have ended. */
  get doubtful(): readonly OpenApprovalRow[] {
    return this.#doubted.size === 0 ? [] : [...this.rows.values()].filter(({ leaf }) => this.#doubted.has(leaf.key));
  }
}

export function isOutcomeErased({ evidence }: RecordedRow): boolean {
  return evidence.includes("!") && wholeText(evidence, "outcome") === undefined;
}

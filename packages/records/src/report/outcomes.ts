import { outcomeRows } from "../../../core/src/record/entry/mod.ts";
import type { ReportJson } from "../../../core/src/wire/mod.ts";
import type { RecordedRow } from "../history.ts";
import { readLeaf, type ReceiptCheck } from "../replay/recorded.ts";

/** Counts the calls that were let through, and their last outcomes. */
export class ReportedOutcomes {
  #released = 0;
  /** The last status by the row of the check. */
  readonly #last = new Map<number, string>();

  /** Adds a check. */
  add({ leaf }: ReceiptCheck): void {
    if (outcomeRows.hasOutcome(leaf)) this.#released += 1;
  }

  /** Adds an administrative event. */
  addChange(row: RecordedRow): void {
    const leaf = readLeaf(row);
    const outcome = typeof leaf === "string" ? undefined : outcomeRows.readOutcome(leaf, row.evidence);
    if (outcome !== undefined) this.#last.set(outcome.row, outcome.status);
  }

  /** Nothing if nobody reports outcomes. */
  get text(): readonly string[] {
    if (this.#last.size === 0) return [];
    const { let_through: released, missing, ...counts } = this.json;
    const reported = outcomeRows.outcomeStatuses.map((status) => `${counts[status]} ${status}`).join(", ");
    return [
      "",
      `outcomes of ${released} calls that were let through: ${reported}, ${missing} without one`,
      ...(missing === 0 ? [] : ["  GET /receipts?outcome=missing lists the calls without one"]),
    ];
  }

  /** Calls before the first receipt may have outcomes too. */
  get json(): ReportJson["outcomes"] {
    const of = (status: string): number => [...this.#last.values()].filter((each) => each === status).length;
    return {
      let_through: this.#released,
      done: of("done"),
      failed: of("failed"),
      unknown: of("unknown"),
      missing: Math.max(0, this.#released - this.#last.size),
    };
  }
}

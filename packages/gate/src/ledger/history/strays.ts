import { readRepeat } from "../../../../core/src/record/entry/repeat.ts";
import type { Mistake } from "../../../../core/src/record/entry/row.ts";
import type { Tables } from "../store/tables.ts";
import { levelSize } from "../../../../core/src/record/tree/tiles.ts";
import { reportDamageAt } from "./findings.ts";
import { pagesOf } from "./table-reads.ts";

/**
 * Looks for a recorded answer that was changed. A missing one cannot be noticed: the gate judges the repeat again.
 *
 * @param source makes keyed digests, and reads the tables
 * @param last the row to report, because a changed answer does not name its row reliably
 */
export function changedRepeat(
  source: { readonly tables: Tables; digest(text: string): string },
  last: number,
): Promise<Mistake | undefined> {
  return reportDamageAt(last, async () => {
    for await (const slice of pagesOf(source.tables, "repeats")) {
      const changed = slice.find((each) => readRepeat(each, (text) => source.digest(text)) === undefined);
      if (changed === undefined) continue;
      const problem = "the recorded answer of a check was changed";
      return { seq: last, problem, expected: "its checksum", found: changed.record.slice(0, 64) };
    }
    return undefined;
  });
}

/**
 * Looks for inner hashes that no rows make. The walk has compared those that its rows make.
 *
 * @param last the last row of the walk
 */
export function strayNodes(tables: Tables, last: number): Promise<Mistake | undefined> {
  return reportDamageAt(last, async () => {
    for await (const nodes of pagesOf(tables, "nodes")) {
      const { rows } = await tables.head(); // Read after the hashes, which are written together with their rows.
      const stray = nodes.find(({ level, place }) => level < 1 || place < 0 || place >= levelSize(rows, level));
      if (stray === undefined) continue;
      const { level, place } = stray;
      const problem = `the tree has an inner hash ${place} of level ${level} that no rows make`;
      return { seq: last, problem, expected: `${level < 1 ? 0 : levelSize(rows, level)} hashes`, found: "more" };
    }
    return undefined;
  });
}

import { readRepeat, type StoredRepeat } from "../entry/repeat.ts";
import type { Broken } from "../entry/row.ts";

/** Reads the recorded answers of a store. */
export interface RepeatReader {
  /** Returns a keyed digest of a text, in hex. */
  digest(text: string): string;
  /** Returns some recorded answers after an id, in the order of their ids; none at the end. */
  repeats(after: string | undefined): Promise<readonly StoredRepeat[]>;
}

/**
 * Looks for a recorded answer that was changed. A missing one cannot be noticed: the gate judges the repeat again.
 *
 * @param last the row to report, because a changed answer does not name its row reliably
 */
export async function changedRepeat(reader: RepeatReader, last: number): Promise<Broken | undefined> {
  for (let after: string | undefined; ;) {
    const slice = await reader.repeats(after);
    const changed = slice.find((each) => readRepeat(each, (text) => reader.digest(text)) === undefined);
    if (changed !== undefined) {
      const problem = "the recorded answer of a check was changed";
      return { seq: last, problem, expected: "its checksum", found: changed.record.slice(0, 64) };
    }
    after = slice.at(-1)?.id;
    if (after === undefined) return undefined;
  }
}

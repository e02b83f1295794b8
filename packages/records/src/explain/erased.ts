import {
  covers,
  eraseAct,
  isErasable,
  missingParts,
  parseLeaf,
  partText,
  readErasure,
} from "../../../core/src/record/entry/mod.ts";
import { visible } from "../../../core/src/wire/mod.ts";
import { eachRow, type History, type RecordedRow } from "../history.ts";

/**
 * Which parts of a receipt were erased, by whom, when and why, as far as later rows record it; undefined if none was.
 */
export async function erasedText({ seq, evidence }: RecordedRow, history: History): Promise<string | undefined> {
  const missing = new Set(missingParts(evidence).filter(isErasable));
  if (missing.size === 0) return undefined;
  const lines = [`${[...missing].join(", ")} of it ${missing.size === 1 ? "was" : "were"} erased`];
  for await (const row of eachRow(history, seq + 1)) {
    const { act, at = 0, key } = parseLeaf(row.leaf) ?? {};
    if (act !== eraseAct) continue;
    const { parts, rows } = readErasure(row.evidence, row.seq) ?? { parts: [], rows: [] };
    const isNamed =
      rows.some(([from, to]) => from <= seq && seq <= to) && [...missing].some((part) => covers(parts, part));
    if (!isNamed) continue;
    for (const part of missing) if (covers(parts, part)) missing.delete(part);
    const reason = partText(row.evidence, "reason") ?? '""';
    lines.push(
      `  row ${row.seq}, ${new Date(at).toISOString()}, by ${visible(key ?? "")}: ${visible(String(JSON.parse(reason)))}`,
    );
    if (missing.size === 0) break;
  }
  return lines.join("\n");
}

import { openHistory, type ReceiptSource } from "../history.ts";
import type { Outcome } from "../../../gate/src/cli/mod.ts";
import { showProgress } from "../../../gate/src/cli/progress.ts";
import { summarize } from "./summary.ts";
import { readSpan, readWhole, rowsWithin, type SpanOptions } from "../span.ts";

export interface ReportOptions extends Omit<ReceiptSource, "folder">, SpanOptions {
  readonly from: string;
  readonly examples: string;
  readonly json: boolean;
}

/**
 * `svc-gate report`: prints the calls that enforce mode would have refused, by rule, with examples, and the approvals
 * that people decided or would have had to decide, and the outcomes that were reported.
 */
export async function reportCommand(folder: string, options: ReportOptions): Promise<Outcome> {
  const from = readWhole("--from", options.from, 1);
  const examples = readWhole("--examples", options.examples, 0);
  const wanted = readSpan(options, Date.now());
  await using history = await openHistory({ ...options, folder });
  using progress = showProgress(history.rows);
  const span = await rowsWithin(history, wanted);
  const summary = await summarize(history, { ...span, first: Math.max(from, span.first) }, examples, (seq) => {
    progress.at(seq);
    return undefined;
  });
  return { exitCode: 0, text: options.json ? JSON.stringify(summary.json) : summary.text, forPrograms: options.json };
}

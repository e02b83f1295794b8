import { io } from "../../../gate/src/cli/mod.ts";
import { progressStride, showProgress, type ProgressBar } from "../../../gate/src/cli/progress.ts";

/** The time between two lines, without a terminal for a bar. */
const lineMs = 10_000;

/** Shows the progress of an export: a bar on a terminal's standard error, else a line there every ten seconds. */
export function showExport(rows: number): ProgressBar {
  if (io().stderr.isTTY) return showProgress(rows);
  let last = performance.now();
  return {
    at: (row) => {
      if (row % progressStride !== 0 || performance.now() - last < lineMs) return;
      last = performance.now();
      io().stderr.write(`row ${row} of ${rows}\n`);
    },
    [Symbol.dispose]: () => undefined,
  };
}

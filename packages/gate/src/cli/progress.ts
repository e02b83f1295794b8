import { Presets, SingleBar } from "cli-progress";
import { io } from "./io.ts";

/** The progress of a long command, shown only on a terminal's standard error. */
export interface ProgressBar extends Disposable {
  at(row: number): void;
}

/** Rows between two readings of the clock. */
export const progressStride = 1024;

/** @param rows the number of rows; undefined if it is unknown */
export function showProgress(rows: number | undefined, unit = "receipts"): ProgressBar {
  if (!io().stderr.isTTY || rows === undefined || rows === 0)
    return { at: () => undefined, [Symbol.dispose]: () => undefined };
  const bar = new SingleBar(
    {
      format: `{bar} {percentage}% | {value} of {total} ${unit} | {eta_formatted} left`,
      stream: io().stderr,
      clearOnComplete: true,
      etaBuffer: 100,
    },
    Presets.shades_classic,
  );
  bar.start(rows, 0);
  return {
    at: (row) => {
      if (row % progressStride === 0) bar.update(row);
    },
    [Symbol.dispose]: () => bar.stop(),
  };
}

import { Presets, SingleBar } from "cli-progress";

/** How far a long command is, on a terminal's standard error; nowhere else. */
export interface Progress {
  at(row: number): void;
  end(): void;
}

/** Rows between two looks at the clock. */
export const progressStride = 1024;

/** @param rows how many there are; undefined where that is not known */
export function showProgress(rows: number | undefined, unit = "receipts"): Progress {
  if (!process.stderr.isTTY || rows === undefined || rows === 0) return { at: () => undefined, end: () => undefined };
  const bar = new SingleBar(
    {
      format: `{bar} {percentage}% | {value} of {total} ${unit} | {eta_formatted} left`,
      stream: process.stderr,
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
    end: () => bar.stop(),
  };
}

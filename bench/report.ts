import { arch, cpus, platform, release, totalmem } from "node:os";

/** One figure with a bar: `holds` says whether the value is within it. */
export interface Measure {
  readonly value: number;
  readonly bar: string;
  readonly holds: boolean;
}

export type Measures = Readonly<Record<string, Measure>>;

export function atLeast(value: number, bar: number): Measure {
  return { value: round(value), bar: `>= ${round(bar)}`, holds: value >= bar };
}

export function atMost(value: number, bar: number): Measure {
  return { value: round(value), bar: `<= ${round(bar)}`, holds: value <= bar };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

/** A median with the ends of its 95 % confidence interval. */
export interface Interval {
  readonly low: number;
  readonly median: number;
  readonly high: number;
}

/**
 * Returns the median with its 95 % confidence interval. The interval's ends are values of the sample, so that it contains
 * for every distribution (the binomial law of the ranks, by its normal approximation).
 */
export function medianInterval(values: readonly number[]): Interval {
  const sorted = values.toSorted((a, b) => a - b);
  const half = 0.98 * Math.sqrt(sorted.length);
  const low = sorted[Math.max(0, Math.floor(sorted.length / 2 - half))] ?? Number.NaN;
  const high = sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length / 2 + half))] ?? Number.NaN;
  return { low, median: median(values), high };
}

/** Returns a median with its interval as text. */
export function shown(interval: Interval): string {
  return `${round(interval.median)} [${round(interval.low)}, ${round(interval.high)}]`;
}

/** Prints rows in columns as wide as their widest cell. */
export function printTable(rows: readonly (readonly (string | number)[])[]): void {
  for (const line of tableLines(rows)) console.log(line);
}

/** Rows in columns as wide as their widest cell. */
export function tableLines(rows: readonly (readonly (string | number)[])[]): string[] {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => String(row[column] ?? "").length))) ?? [];
  return rows.map((row) =>
    row
      .map((cell, column) =>
        typeof cell === "number" || column > 0
          ? String(cell).padStart(widths[column] ?? 0)
          : cell.padEnd(widths[column] ?? 0),
      )
      .join("  "),
  );
}

/** Returns a line about the machine, because figures mean nothing without it. */
export function machine(): string {
  const cores = cpus();
  const processor = `${cores.length} x ${cores[0]?.model.trim() ?? "?"}`;
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  return `${processor}, ${memory}, ${platform()} ${release()} ${arch()}, Node ${process.versions.node}`;
}

/** Prints the last line of a benchmark: one JSON object. */
export function conclude(bench: string, measures: Measures): void {
  console.log();
  printTable([
    ["measure", "value", "bar", "met"],
    ...Object.entries(measures).map(([name, { value, bar, holds }]) => [name, value, bar, holds ? "yes" : "NO"]),
  ]);
  const holds = Object.values(measures).every((measure) => measure.holds);
  console.log(JSON.stringify({ bench, holds, measures }));
  if (!holds) process.exitCode = 1;
}

export function round(value: number): number {
  return value >= 100 ? Math.round(value) : Number(value.toPrecision(3));
}

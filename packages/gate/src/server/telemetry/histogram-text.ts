import type { Series } from "./series.ts";

export interface HistogramOptions {
  readonly name: string;
  readonly help: string;
  /** The label, and the series of each of its values. Without a label there is one series with any name. */
  readonly label?: string;
  readonly series: Readonly<Record<string, Series>>;
}

/**
 * Returns a histogram in the Prometheus text format, version 0.0.4. Names, help and label values must not need an
 * escape. https://prometheus.io/docs/instrumenting/exposition_formats/#histograms-and-summaries
 */
export function histogramText({ name, help, label, series }: HistogramOptions): string {
  const lines = Object.entries(series).flatMap(([value, { bounds, below, sum }]) => {
    const own = label === undefined ? [] : [`${label}="${value}"`];
    const line = (suffix: string, labels: readonly string[], number: number): string =>
      `${name}_${suffix}${labels.length === 0 ? "" : `{${labels.join(",")}}`} ${number}\n`;
    return [
      ...below.map((count, index) => line("bucket", [`le="${bounds[index] ?? "+Inf"}"`, ...own], count)),
      line("sum", own, sum),
      line("count", own, below.at(-1) ?? 0),
    ];
  });
  return `# HELP ${name} ${help}\n# TYPE ${name} histogram\n${lines.join("")}`;
}

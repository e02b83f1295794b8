import { h, type JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { momentText } from "../time.ts";

export interface Line {
  readonly label: string;
  /** The custom property with its colour, such as `--allow`. */
  readonly colour: string;
  readonly dash?: readonly number[];
  readonly values: readonly number[];
}

interface ChartProps {
  readonly title: string;
  /** Milliseconds since the epoch, one for each value. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
}

const height = 180;

/** A chart over time. A table below it has the same numbers, for those who cannot see the chart. */
export function Chart({ title, times, lines }: ChartProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const draw = (): uPlot => new uPlot(optionsOf(lines, element.clientWidth), dataOf(times, lines), element);
    let plot = draw();
    const again = (): void => {
      plot.destroy();
      plot = draw();
    };
    const watch = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    watch.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", again);
    return () => {
      watch.disconnect();
      dark.removeEventListener("change", again);
      plot.destroy();
    };
  }, [times, lines]);
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", null, title),
    h("div", { ref: box, class: "plot", "aria-hidden": "true" }),
    h(
      "details",
      null,
      h("summary", null, `${title}, as a table`),
      h(
        "table",
        { class: "list" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            h("th", { scope: "col" }, "From"),
            lines.map(({ label }) => h("th", { key: label, scope: "col" }, label)),
          ),
        ),
        h(
          "tbody",
          null,
          times.map((at, row) =>
            h(
              "tr",
              { key: at },
              h("th", { scope: "row" }, momentText(at)),
              lines.map(({ label, values }) => h("td", { key: label }, values[row] ?? 0)),
            ),
          ),
        ),
      ),
    ),
  );
}

function dataOf(times: readonly number[], lines: readonly Line[]): uPlot.AlignedData {
  return [times.map((at) => at / 1000), ...lines.map(({ values }) => [...values])];
}

function optionsOf(lines: readonly Line[], width: number): uPlot.Options {
  const styles = getComputedStyle(document.documentElement);
  const colour = (name: string): string => styles.getPropertyValue(name);
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line") }, ticks: { stroke: colour("--line") } };
  return {
    width,
    height,
    cursor: { y: false },
    scales: { y: { range: (_plot, _low, high) => [0, Math.max(1, high)] } },
    axes: [axis, { ...axis, size: 56 }],
    series: [
      {},
      ...lines.map(({ label, colour: name, dash }) => ({
        label,
        stroke: colour(name),
        width: 2,
        points: { show: false },
        ...(dash !== undefined && { dash: [...dash] }),
      })),
    ],
  };
}

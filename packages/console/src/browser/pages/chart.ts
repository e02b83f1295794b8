import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { el } from "../elements.ts";
import { table } from "../parts.ts";
import { dayText, momentText, secondText } from "../time.ts";

export interface ChartLine {
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
  /** The end of the last slice. */
  readonly end: number;
  readonly lines: readonly ChartLine[];
}

const height = 180;

/** A chart over time. A table below it has the same numbers, for those who cannot see the chart. */
export default function Chart({ title, times, end, lines }: ChartProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const draw = (): uPlot => new uPlot(optionsOf(lines, element.clientWidth), dataOf(times, end, lines), element);
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
  return el.figure(
    { class: "chart" },
    el.figcaption(title),
    el.div({ ref: box, class: "plot", "aria-hidden": "true" }),
    el.details(
      el.summary(`${title}, as a table`),
      table(
        "list",
        times.map((at, row) =>
          el.tr(
            { key: at },
            el.th({ scope: "row" }, momentText(at)),
            lines.map(({ label, values }) => el.td({ key: label }, values[row] ?? 0)),
          ),
        ),
        { heads: ["From", ...lines.map(({ label }) => label)] },
      ),
    ),
  );
}

/** Each slice is a step as wide as the slice, so the last value stands at the end too. */
function dataOf(times: readonly number[], end: number, lines: readonly ChartLine[]): uPlot.AlignedData {
  const seconds = [...times, end].map((at) => at / 1000);
  return [seconds, ...lines.map(({ values }) => [...values, values.at(-1) ?? 0])];
}

/** Ticks need this room in pixels, because the words for a moment are longer in some languages. */
const tickSpace = 84;
const minuteMs = 60_000;
const dayMs = 86_400_000;

/** The steps between ticks, in seconds: the words show no part of a second. */
const timeSteps = [1, 5, 15, 60, 300, 900, 3600, 21_600, 86_400, 172_800, 604_800, 2_592_000, 31_536_000];

/** The words below the chart: days if it is longer than two, else times. */
function timesOf(_plot: uPlot, seconds: readonly number[]): string[] {
  const isLong = ((seconds.at(-1) ?? 0) - (seconds[0] ?? 0)) * 1000 > 2 * dayMs;
  const isShort = ((seconds.at(-1) ?? 0) - (seconds[0] ?? 0)) * 1000 < 5 * minuteMs;
  const text = isLong ? dayText : isShort ? secondText : momentText;
  return seconds.map((at) => text(at * 1000));
}

/** The steps between the lines of a chart of counts, which has only whole calls. */
const wholeSteps = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

function isOfCounts(lines: readonly ChartLine[]): boolean {
  return lines.every(({ values }) => values.every((value) => Number.isInteger(value)));
}

const steps = uPlot.paths.stepped?.({ align: 1 }) ?? (() => null);

function optionsOf(lines: readonly ChartLine[], width: number): uPlot.Options {
  const axis = {
    stroke: colour("--quiet"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1 },
  };
  return {
    width,
    height,
    cursor: { y: false },
    padding: [null, tickSpace / 2, null, null], // for half of the last words
    legend: { live: false, markers: { dash: (_plot, at) => patternOf(lines[at - 1]?.dash) } },
    scales: { y: { range: (_plot, _low, high) => [0, Math.max(1, high)] } },
    axes: [
      { ...axis, space: tickSpace, incrs: timeSteps, values: timesOf },
      { ...axis, size: 56, ...(isOfCounts(lines) && { incrs: wholeSteps }) },
    ],
    series: [
      {},
      ...lines.map(({ label, colour: name, dash }) => ({
        label,
        stroke: colour(name),
        width: 2,
        paths: steps,
        points: { show: false },
        ...(dash !== undefined && { dash: [...dash] }),
      })),
    ],
  };
}

/** The style of a line's border in the legend. */
function patternOf(dash: ChartLine["dash"]): string {
  const [length = Infinity] = dash ?? [];
  return length === Infinity ? "solid" : length > 3 ? "dashed" : "dotted";
}

/** A canvas knows no custom properties, so an element says which colour one has now. */
function colour(name: string): string {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(${name})`;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

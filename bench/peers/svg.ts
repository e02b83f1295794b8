// Charts as text: bars and lines, without dependencies. A separate style has the colours for light and dark pages.

export interface Bar {
  readonly label: string;
  readonly value: number;
  /** The text after the bar. */
  readonly note: string;
  /** Whether it has the strong colour. */
  readonly strong: boolean;
}

export interface Line {
  readonly label: string;
  /** One value for each position of the chart; undefined leaves a gap. */
  readonly values: readonly (number | undefined)[];
  /** The index of its colour. */
  readonly colour: number;
  readonly strong: boolean;
}

export interface LineChart {
  readonly title: string;
  readonly unit: string;
  readonly labels: readonly string[];
  readonly axis: string;
  readonly lines: readonly Line[];
  /** Whether the scale is logarithmic, for values that differ by more than a power of ten. */
  readonly logarithmic: boolean;
}

const width = 760;
const light = ["#0550ae", "#0f766e", "#b35900", "#8250df", "#a40e4c", "#57606a"] as const;
const dark = ["#6cb6ff", "#4fd1c5", "#f0a35e", "#c297ff", "#ff8fab", "#aab4be"] as const;

const style = `
  text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
  .page { fill: #ffffff } .title { font-size: 15px; font-weight: 600 } .soft { fill: #57606a } .grid { stroke: #d0d7de }
  .bar { fill: #8c959f } .bar.strong { fill: #0550ae } .strong { font-weight: 600 } .line { fill: none; stroke-width: 2 }
  .line.strong { stroke-width: 3.5 }
${light.map((colour, at) => `  .c${at} { stroke: ${colour} } text.c${at}, circle.c${at} { fill: ${colour}; stroke: none }`).join("\n")}
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .page { fill: #0d1117 } .soft { fill: #9aa4af } .grid { stroke: #30363d }
    .bar { fill: #6e7681 } .bar.strong { fill: #6cb6ff }
${dark.map((colour, at) => `    .c${at} { stroke: ${colour} } text.c${at}, circle.c${at} { fill: ${colour}; stroke: none }`).join("\n")}
  }`;

/** Draws horizontal bars, the longest as wide as the available space. */
export function barChart(title: string, bars: readonly Bar[], footnote: string): string {
  const [left, top, step] = [210, 52, 34];
  const longest = Math.max(...bars.map(({ value }) => value));
  const rows = bars.map(({ label, value, note, strong }, at) => {
    const y = top + at * step;
    const length = longest > 0 ? Math.max(2, (value / longest) * 300) : 2;
    const kind = strong ? " strong" : "";
    return [
      `<text class="${kind.trim()}" x="${left - 12}" y="${y + 16}" text-anchor="end">${escaped(label)}</text>`,
      `<rect class="bar${kind}" x="${left}" y="${y}" width="${fixed(length)}" height="22" rx="3"/>`,
      `<text x="${fixed(left + length + 8)}" y="${y + 16}">`,
      `<tspan class="strong">${grouped(value)}</tspan><tspan class="soft" dx="8">${escaped(note)}</tspan></text>`,
    ].join("");
  });
  const bottom = top + bars.length * step + 16;
  return page(title, bottom + 14, [...rows, `<text class="soft" x="20" y="${bottom}">${escaped(footnote)}</text>`]);
}

/** Draws lines over evenly spaced positions; each has its name at its end. */
export function lineChart({ title, unit, labels, axis, lines, logarithmic }: LineChart): string {
  const [left, right, top, bottom] = [64, width - 190, 58, 330];
  const values = lines.flatMap((line) => line.values).filter((value) => value !== undefined);
  const ticks = logarithmic ? powers(values) : steps(Math.max(...values, 0));
  const [low = 0, high = 1] = [ticks[0], ticks.at(-1)];
  const scale = logarithmic ? Math.log10 : (value: number): number => value;
  const y = (value: number): number =>
    bottom - ((scale(value) - scale(low)) / (scale(high) - scale(low))) * (bottom - top);
  const x = (index: number): number =>
    left + (labels.length === 1 ? 0 : (index / (labels.length - 1)) * (right - left));
  const grid = ticks.map(
    (tick) =>
      `<path class="grid" d="M${left} ${fixed(y(tick))}H${right}"/>` +
      `<text class="soft" x="${left - 8}" y="${fixed(y(tick) + 4)}" text-anchor="end">${grouped(tick)}</text>`,
  );
  const names = labels.map(
    (label, at) =>
      `<text class="soft" x="${fixed(x(at))}" y="${bottom + 20}" text-anchor="middle">${escaped(label)}</text>`,
  );
  const ends = apart(lines.map((line) => y(lastOf(line) ?? low)));
  const drawn = lines.map((line, at) => {
    const points = line.values.flatMap((value, index) =>
      value === undefined ? [] : [{ across: fixed(x(index)), down: fixed(y(value)) }],
    );
    const kind = `c${line.colour}${line.strong ? " strong" : ""}`;
    return [
      `<path class="line ${kind}" d="M${points.map(({ across, down }) => `${across} ${down}`).join("L")}"/>`,
      ...points.map(({ across, down }) => `<circle class="c${line.colour}" cx="${across}" cy="${down}" r="3.5"/>`),
      `<text class="${kind}" x="${right + 12}" y="${fixed((ends[at] ?? 0) + 4)}">${escaped(line.label)}</text>`,
    ].join("");
  });
  const axes = [
    `<text class="soft" x="20" y="48">${escaped(unit)}</text>`,
    `<text class="soft" x="${(left + right) / 2}" y="${bottom + 42}" text-anchor="middle">${escaped(axis)}</text>`,
  ];
  return page(title, bottom + 58, [...axes, ...grid, ...names, ...drawn]);
}

function page(title: string, height: number, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${style}\n</style>`,
    `<rect class="page" width="${width}" height="${height}" rx="8"/>`,
    `<text class="title" x="20" y="28">${escaped(title)}</text>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

/** Returns positions of names, moved so that no two overlap. */
export function apart(positions: readonly number[], least = 17): readonly number[] {
  const order = positions.map((position, at) => ({ position, at })).toSorted((a, b) => a.position - b.position);
  const moved: number[] = [];
  let floor = -Infinity;
  for (const { position, at } of order) {
    floor = Math.max(position, floor + least);
    moved[at] = floor;
  }
  const over = Math.max(0, floor - Math.max(...positions)) / 2;
  return moved.map((position) => position - over);
}

/** Returns powers of ten that bound all values between the first and the last. */
export function powers(values: readonly number[]): readonly number[] {
  const above = values.filter((value) => value > 0);
  const from = Math.floor(Math.log10(Math.min(...above, 1e9)));
  const to = Math.max(from + 1, Math.ceil(Math.log10(Math.max(...above, 10 ** from))));
  return Array.from({ length: to - from + 1 }, (_, at) => Number(`1e${from + at}`));
}

/** Returns round steps from zero to `most` or a little more. */
export function steps(most: number): readonly number[] {
  if (most <= 0) return [0, 1];
  const rough = most / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((times) => times * power >= rough) ?? 10);
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, at) => at * step);
}

function lastOf({ values }: Line): number | undefined {
  return values.findLast((value) => value !== undefined);
}

export function grouped(value: number): string {
  return value.toLocaleString("en-US", {
    maximumSignificantDigits: value < 100 ? 3 : 21,
    maximumFractionDigits: value < 100 ? 20 : 0,
  });
}

function fixed(value: number): string {
  return String(Number(value.toFixed(1)));
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

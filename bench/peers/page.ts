import { sizesOf } from "./charts.ts";
import {
  barsOf,
  connectionCounts,
  ruleCounts,
  type Figures,
  type PeerResult,
  type Results,
  type Series,
} from "./results.ts";
import { grouped } from "./svg.ts";

const startMark = "<!-- figures: written by npm run bench -- peers -->";
const end = "<!-- end of figures -->";

/** Returns the page with the figures of this run between its two marks. */
export function pageWith(page: string, results: Results): string {
  const [from, to] = [page.indexOf(startMark), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`the page does not hold ${startMark} and ${end}`);
  return `${page.slice(0, from + startMark.length)}\n\n${tables(results)}\n${page.slice(to)}`;
}

/** Returns all tables of a run, in Markdown. */
export function tables(results: Results): string {
  const { peers, skipped } = results;
  return [
    `${results.day}, ${results.machine}. Loads of ${results.seconds} seconds, ${results.rounds} rounds in turn after a warm-up, medians; ` +
      `one flush of this disk: ${grouped(results.flushMs)} ms.`,
    ...skipped.map(({ name, why }) => `${name} was skipped: ${why}.`),
    ...connectionCounts.map((count) =>
      figuresTable(`${grouped(count)} connection${count === 1 ? "" : "s"}`, peers, count),
    ),
    table([
      ["", "start, ms", "memory at rest, MB", "after the load, MB"],
      ...peers.map(({ name, startMs, idleMb, loadedMb }) => [name, startMs, idleMb, loadedMb].map(cell)),
    ]),
    `Rules of other tools beside the six, 64 connections (checks/s, p99 in ms, and p99 as a multiple of that with the fewest):`,
    seriesTable(peers, ruleCounts, (peer) => peer.rules),
    `Sessions that were seen before, 64 connections:`,
    seriesTable(peers, sizesOf(peers.map((peer) => peer.sessions)), (peer) => peer.sessions),
    table([
      ["measure", "value", "bar", "met"],
      ...Object.entries(barsOf(results)).map(([name, { value, bar, holds }]) => [
        name.replaceAll("_", " "),
        String(value),
        bar,
        holds ? "yes" : "**no**",
      ]),
    ]),
  ]
    .join("\n\n")
    .concat("\n");
}

function figuresTable(title: string, peers: readonly PeerResult[], count: number): string {
  return table([
    [title, "checks/s", "p50, ms", "p99, ms"],
    ...peers.map(({ name, connections }) => {
      const figures = connections[count];
      return [
        name,
        ...(figures === undefined ? ["", "", ""] : [figures.perSecond, figures.p50, figures.p99].map(cell)),
      ];
    }),
  ]);
}

function seriesTable(
  peers: readonly PeerResult[],
  sizes: readonly number[],
  series: (peer: PeerResult) => Series,
): string {
  return table([
    ["", ...sizes.map(grouped)],
    ...peers.map((peer) => {
      const least = series(peer)[sizes[0] ?? 0];
      return [peer.name, ...sizes.map((size) => beside(series(peer)[size], least))];
    }),
  ]);
}

function beside(figures: Figures | undefined, least: Figures | undefined): string {
  if (figures === undefined || least === undefined) return "";
  const times = figures === least ? "" : `, ${(figures.p99 / least.p99).toFixed(2)} x`;
  return `${cell(figures.perSecond)}; ${cell(figures.p99)}${times}`;
}

function cell(value: string | number): string {
  return typeof value === "string" ? value : grouped(value >= 100 ? Math.round(value) : Number(value.toPrecision(3)));
}

function table(rows: readonly (readonly string[])[]): string {
  const [head = [], ...body] = rows;
  return [head, head.map(() => "---"), ...body].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

import {
  connectionCounts,
  ruleCounts,
  usual,
  type Figures,
  type PeerResult,
  type Results,
  type Series,
} from "./results.ts";
import { barChart, grouped, lineChart, type Line } from "./svg.ts";

/** Returns the charts of a run, by file name. */
export function charts(results: Results): Readonly<Record<string, string>> {
  const { peers } = results;
  const lines = (series: (peer: PeerResult) => Series, counts: readonly number[], pick: (figures: Figures) => number) =>
    linesOf(peers, (peer) => counts.map((count) => at(series(peer), count, pick)));
  const sessions = sizesOf(peers.map((peer) => peer.sessions));
  return {
    "checks.svg": barChart(
      `Checks a second at ${usual} connections: same six rules, same load, same machine`,
      peers
        .toSorted((a, b) => speed(b) - speed(a))
        .map((peer) => ({
          label: shortName(peer),
          value: Math.round(speed(peer)),
          note: `p99 ${grouped(peer.connections[usual]?.p99 ?? 0)} ms`,
          strong: peer.ours,
        })),
      "svc-gate has flushed and chained each receipt before it answers. The others' logs are on; none is flushed first.",
    ),
    "connections.svg": lineChart({
      title: "Checks a second, by connections",
      unit: "checks/s",
      labels: connectionCounts.map(String),
      axis: "connections",
      lines: lines(
        (peer) => peer.connections,
        connectionCounts,
        (figures) => figures.perSecond,
      ),
      logarithmic: false,
    }),
    "latency.svg": lineChart({
      title: "Time of the slowest one in a hundred checks (p99), by connections",
      unit: "ms",
      labels: connectionCounts.map(String),
      axis: "connections",
      lines: lines(
        (peer) => peer.connections,
        connectionCounts,
        (figures) => figures.p99,
      ),
      logarithmic: true,
    }),
    "rules.svg": lineChart({
      title: `p99 at ${usual} connections, by rules of other tools beside the six`,
      unit: "ms",
      labels: ruleCounts.map(grouped),
      axis: "rules of other tools",
      lines: lines(
        (peer) => peer.rules,
        ruleCounts,
        (figures) => figures.p99,
      ),
      logarithmic: true,
    }),
    "sessions.svg": lineChart({
      title: `p99 at ${usual} connections, by sessions that were seen before`,
      unit: "ms",
      labels: sessions.map(grouped),
      axis: "sessions (svc-gate counts each; the others keep nothing)",
      lines: lines(
        (peer) => peer.sessions,
        sessions,
        (figures) => figures.p99,
      ),
      logarithmic: true,
    }),
  };
}

/** Returns every size that any of the series has, smallest first. */
export function sizesOf(series: readonly Series[]): readonly number[] {
  return [...new Set(series.flatMap((each) => Object.keys(each).map(Number)))].toSorted((a, b) => a - b);
}

export function shortName({ name }: PeerResult): string {
  return name.replace("Agent Governance Toolkit", "Microsoft AGT");
}

function linesOf(peers: readonly PeerResult[], values: (peer: PeerResult) => Line["values"]): readonly Line[] {
  return peers.map((peer, colour) => ({ label: shortName(peer), values: values(peer), colour, strong: peer.ours }));
}

function at(series: Series, count: number, pick: (figures: Figures) => number): number | undefined {
  const figures = series[count];
  return figures === undefined ? undefined : pick(figures);
}

function speed({ connections }: PeerResult): number {
  return connections[usual]?.perSecond ?? 0;
}

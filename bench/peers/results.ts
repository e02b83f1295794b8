import { atLeast, atMost, type Measure } from "../report.ts";

/** One load of a peer, or the medians of several. Times are in milliseconds. */
export interface Figures {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

/** By how many connections, rules or sessions there were. */
export type Series = Readonly<Record<string, Figures>>;

export interface PeerResult {
  readonly id: string;
  readonly name: string;
  readonly ours: boolean;
  readonly startMs: number;
  readonly idleMb: number;
  readonly loadedMb: number;
  readonly connections: Series;
  readonly rules: Series;
  readonly sessions: Series;
}

/** A whole run: what results.json holds. */
export interface Results {
  readonly machine: string;
  /** The day, as in 2026-11-21. */
  readonly day: string;
  readonly seconds: number;
  readonly rounds: number;
  /** The median time of a flush of this disk, in milliseconds. */
  readonly flushMs: number;
  readonly peers: readonly PeerResult[];
  readonly skipped: readonly { readonly name: string; readonly why: string }[];
}

export const connectionCounts = [1, 16, 64, 256] as const;
export const ruleCounts = [10, 100, 1000] as const;
/** With how many connections a peer is held to its bar, and measured beside rules and sessions. */
export const usual = 64;

export function isPostgres({ id }: PeerResult): boolean {
  return id === "svc-gate-postgres";
}

/** The others' best at 64 connections. */
export function fastest({ peers }: Results): PeerResult | undefined {
  return peers.filter(({ ours }) => !ours).toSorted((a, b) => speed(b) - speed(a))[0];
}

function speed({ connections }: PeerResult): number {
  return connections[usual]?.perSecond ?? 0;
}

/** What the gate is held to beside the others. A peer that was skipped has no bar, and neither has what is compared with it. */
export function barsOf(results: Results): Readonly<Record<string, Measure>> {
  const best = fastest(results);
  const bars: Record<string, Measure> = {};
  for (const peer of results.peers.filter(({ ours }) => ours)) {
    const store = isPostgres(peer) ? "postgres" : "sqlite";
    if (best !== undefined) {
      bars[`${store}_of_fastest_peer`] = atLeast(speed(peer) / speed(best), isPostgres(peer) ? 1 : 2);
      if (!isPostgres(peer))
        bars[`${store}_p99_of_fastest_peer`] = atMost(p99(peer.connections, usual) / p99(best.connections, usual), 0.5);
    }
    bars[`${store}_p99_growth_rules`] = atMost(growth(peer.rules), 1.5);
    bars[`${store}_p99_growth_sessions`] = atMost(growth(peer.sessions), 1.5);
  }
  return bars;
}

/** The p99 of the largest in the series, as a multiple of that of the smallest. */
export function growth(series: Series): number {
  const sizes = Object.keys(series)
    .map(Number)
    .toSorted((a, b) => a - b);
  return p99(series, sizes.at(-1) ?? 0) / p99(series, sizes[0] ?? 0);
}

function p99(series: Series, size: number): number {
  return series[size]?.p99 ?? Number.NaN;
}

import { atLeast, atMost, type Measure } from "../report.ts";

/** One load of a peer, or the medians of several. Times are in milliseconds. */
export interface Figures {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

/** The number of connections, rules or sessions. */
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

/** A whole run: the content of results.json. */
export interface Results {
  readonly machine: string;
  /** The day, as in 2026-11-21. */
  readonly day: string;
  readonly seconds: number;
  readonly rounds: number;
  /** The median time of this disk's flush, in milliseconds. */
  readonly flushMs: number;
  readonly peers: readonly PeerResult[];
  readonly skipped: readonly { readonly name: string; readonly why: string }[];
}

export const connectionCounts = [1, 16, 64, 256] as const;
export const ruleCounts = [10, 100, 1000] as const;
/** The number of connections for a peer's bar, and for the measurements with rules and sessions. */
export const usual = 64;

export function isPostgres({ id }: PeerResult): boolean {
  return id === "svc-gate-postgres";
}

/** Returns the best of the other engines at 64 connections. */
export function fastest({ peers }: Results): PeerResult | undefined {
  return peers.filter(({ ours }) => !ours).toSorted((a, b) => speed(b) - speed(a))[0];
}

function speed({ connections }: PeerResult): number {
  return connections[usual]?.perSecond ?? 0;
}

/** Returns the gate's bars against the other engines. A skipped peer has no bar, and no figure is compared with it. */
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

/** Returns the p99 of the largest in the series, as a multiple of that of the smallest. */
export function growth(series: Series): number {
  const sizes = Object.keys(series)
    .map(Number)
    .toSorted((a, b) => a - b);
  return p99(series, sizes.at(-1) ?? 0) / p99(series, sizes[0] ?? 0);
}

function p99(series: Series, size: number): number {
  return series[size]?.p99 ?? Number.NaN;
}

/**
 * Tells whether the time for a text grows faster than its length. All times are from one process, and each is the
 * shortest of several, so other work on the machine changes nothing.
 */

/** A text with a part that is repeated. */
export interface Hostile {
  readonly before: string;
  readonly pump: string;
  readonly after: string;
}

/** A text for which some work takes too long. */
export interface Growth {
  readonly hostile: Hostile;
  /** The time for the long text, as a multiple of the time for a quarter of it. */
  readonly times: number;
}

export interface GrowthOptions {
  /** The length of the longer text. */
  readonly length: number;
  /** If the longer text takes less time, in milliseconds, it is not measured more closely. */
  readonly leastMs: number;
}

/** For 4 times the length, linear work needs 4 times as long, and quadratic work 16 times. */
const timesMax = 9;
/** If one of these lengths takes `leastMs`, the time is cubic or worse. Small steps keep exponential work short. */
const shortLengths = Array.from({ length: 60 }, (_, at) => 4 * (at + 1));

/** Returns a text for which the work takes too long; undefined if its time grows no faster than its length. */
export function growthOf(
  work: (text: string) => void,
  hostile: Hostile,
  { length, leastMs }: GrowthOptions,
): Growth | undefined {
  const timeOf = (size: number, enoughMs: number): number => shortestTime(() => work(textOf(hostile, size)), enoughMs);
  if (shortLengths.some((size) => timeOf(size, leastMs) > leastMs)) return { hostile, times: Infinity };
  const long = timeOf(length, leastMs);
  if (long <= leastMs) return undefined;
  const times = long / timeOf(length / 4, 0);
  return times > timesMax ? { hostile, times } : undefined;
}

function textOf({ before, pump, after }: Hostile, length: number): string {
  return before + pump.repeat(Math.ceil(length / pump.length)) + after;
}

const rounds = 5;

/** The shortest time of several runs, in milliseconds. A run that takes less than `enoughMs` is the last one. */
function shortestTime(work: () => void, enoughMs: number): number {
  let least = Infinity;
  for (let round = 0; round < rounds && least >= enoughMs; round += 1) {
    const from = performance.now();
    work();
    least = Math.min(least, performance.now() - from);
  }
  return least;
}

/**
 * Tells whether the time for a text grows faster than its length. Times are those of this thread
 * on the processor, so other work on the machine changes nothing.
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
  /** Instead of a measurement: the milliseconds for a text. */
  readonly timeOf?: (text: string) => number;
}

/** For 4 times the length, linear work needs 4 times as long, and quadratic work 16 times. */
const timesMax = 9;
/**
 * If one of these lengths takes `leastMs`, the time is cubic or worse. Small steps keep exponential work short: after 40
 * characters each is a quarter longer than the last.
 */
const shortLengths = [4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 50, 62, 78, 97, 121, 151, 189, 236];

/**
 * Returns a text for which the work takes too long; undefined if its time grows no faster than its length. With a bound
 * on nesting, the time grows faster up to the bound and with the length beyond it: this is linear too. So growth counts
 * only if it goes on at 4 times the length, or if the work refuses so long a text.
 */
export function growthOf(
  work: (text: string) => void,
  hostile: Hostile,
  { length, leastMs, timeOf }: GrowthOptions,
): Growth | undefined {
  const timeFor = timeOf ?? ((text) => processorTimeOf(work, text));
  const isOver = (size: number, ms: number): boolean => {
    const text = textOf(hostile, size);
    return (timeOf !== undefined || seemsOver(work, text, ms)) && timeFor(text) > ms;
  };
  if (shortLengths.some((size) => isOver(size, leastMs))) return { hostile, times: Infinity };
  if (isOver(length / 4, 50 * leastMs)) return { hostile, times: Infinity };
  if (!isOver(length, leastMs)) return undefined;
  const timeAt = (size: number): number => timeFor(textOf(hostile, size));
  const ratio = (): number => timeAt(length) / timeAt(length / 4);
  const times = Math.min(ratio(), ratio());
  if (times <= timesMax) return undefined;
  const later = timeAt(4 * length) / timeAt(length);
  const isRefused = later < 1;
  return isRefused || later > timesMax ? { hostile, times } : undefined;
}

/** Long texts have the pump a multiple of 12 times, so that its quotes and brackets are closed in each of them or in none. */
function textOf({ before, pump, after }: Hostile, length: number): string {
  const count = Math.ceil(length / pump.length);
  return before + pump.repeat(count < 12 ? count : Math.ceil(count / 12) * 12) + after;
}

/** A first look, by the clock: other processes may have had their turns in this time. */
function seemsOver(work: (text: string) => void, text: string, ms: number): boolean {
  for (let round = 0; round < 3; round += 1) {
    const from = performance.now();
    work(text);
    if (performance.now() - from <= ms) return false;
  }
  return true;
}

/** The system counts a thread's time in steps of some milliseconds, so the work is repeated for longer. */
const enoughMs = 60;

/** The time of this thread for one run, in milliseconds. */
function processorTimeOf(work: (text: string) => void, text: string): number {
  const from = process.threadCpuUsage();
  for (let runs = 1; ; runs += 1) {
    work(text);
    const { user, system } = process.threadCpuUsage(from);
    const ms = (user + system) / 1000;
    if (ms >= enoughMs) return ms / runs;
  }
}

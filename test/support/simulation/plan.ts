import { Chance } from "../model/chance.ts";
import type { Mishap } from "./machine.ts";

/** One life of a process: from a start to an end of any kind. Its seed decides all random values. */
export interface Life {
  readonly seed: number;
  readonly mishaps: readonly Mishap[];
  /** The number of calls that clients make, if it lives long enough. */
  readonly calls: number;
  /** How it ends if no fault ends it: it is stopped, its process is killed, or its power fails. */
  readonly ending: "stop" | "kill" | "power";
  /** Whether its files are closed after a fault, as the runtime does, or the process simply disappears. */
  readonly closes: boolean;
  /** The offset of the wall clock, in milliseconds. */
  readonly skewMs: number;
  /** The free bytes on the disk; null means unlimited. */
  readonly roomBytes: number | null;
  /** How often its operator has receipts erased, or changes the signing key; never by default. */
  readonly errands?: number;
  /** How often people decide parked calls, or clients use what was approved; never by default. */
  readonly votes?: number;
  /** How often clients send a check with a `call_id`, or send one again; never by default. */
  readonly repeats?: number;
}

/** A ledger's whole history: the content of a file in `regressions/simulation`. */
export interface Plan {
  /** Whether the head pin has a folder of its own. */
  readonly hasPinOutside: boolean;
  readonly lives: readonly Life[];
}

/** The ledger's folder on the simulated disk. */
export const folder = "/simulated/gate";

const livesMax = 12;

/** @param rarely the share of histories that are made for rare events */
export function planOf(seed: number, rarely = 0.1): Plan {
  const chance = new Chance(seed);
  if (chance.often(rarely)) return { hasPinOutside: false, lives: chance.pick(rare)(chance) };
  return { hasPinOutside: chance.often(0.3), lives: chance.many(4, livesMax, () => lifeOf(chance)) };
}

function lifeOf(chance: Chance): Life {
  return {
    seed: chance.whole(0, 0x7fff_ffff),
    mishaps: mishapsOf(chance),
    calls: chance.way<number>([
      [80, () => chance.whole(0, 15)],
      [20, () => chance.whole(15, 50)],
      [1, () => chance.whole(200, 300)],
    ]),
    ending: chance.pick(["stop", "kill", "power", "power"]),
    closes: chance.often(0.5),
    skewMs: chance.often(0.3) ? chance.whole(-30_000, 30_000) : 0,
    roomBytes: chance.often(0.05) ? chance.whole(0, 200_000) : null,
    errands: chance.often(0.4) ? chance.whole(1, 3) : 0,
    votes: chance.often(0.7) ? chance.whole(3, 20) : 0,
    repeats: chance.often(0.5) ? chance.whole(2, 12) : 0,
  };
}

const logFlush = `fsync ${folder}/ledger.db-wal` as const;
const pinned = { on: `rename ${folder}/head.pin.new`, at: 1, what: "power" } as const;

/** Histories for faults that only a sequence of events shows. */
const rare: readonly ((chance: Chance) => readonly Life[])[] = [
  // A flush fails, the process goes on, the power fails.
  (chance) => {
    const at = chance.whole(6, 30);
    return [
      aLife(chance, 25, [
        { on: logFlush, at, what: "EIO" },
        { on: logFlush, at: at + 1, what: "power" },
      ]),
    ];
  },
  // A flush fails, a process starts on what the cache shows, the power fails.
  (chance) => [
    { ...aLife(chance, chance.whole(0, 12), []), ending: "power" },
    aLife(chance, 25, [{ on: logFlush, at: chance.whole(6, 30), what: "EIO" }]),
    aLife(chance, chance.whole(0, 12), [
      chance.pick<Mishap>([
        { on: logFlush, at: chance.whole(1, 4), what: "power" },
        { on: `write ${folder}/ledger.db`, at: chance.whole(1, 6), what: "power" },
      ]),
    ]),
  ],
  // The power fails just before the first pin.
  (chance) => [aLife(chance, 0, [pinned])],
  // The process ends just after it has made its key, and the power fails during the next start.
  (chance) => [
    aLife(chance, 0, [{ on: `unlink ${folder}/signing.key`, at: 1, what: "kill" }]),
    aLife(chance, 0, [pinned]),
  ],
];

function aLife(chance: Chance, calls: number, mishaps: readonly Mishap[]): Life {
  return { ...lifeOf(chance), mishaps, calls, closes: false, ending: "kill", roomBytes: null };
}

/** The usual number of calls in a start and in a life, by kind. */
const made: readonly (readonly [on: Mishap["on"], start: number, life: number])[] = [
  ["disk", 80, 250],
  ["fsync", 14, 40],
  ["write", 25, 130],
  ["name", 40, 60],
  ["read", 30, 100],
  ["lock", 50, 250],
];

function mishapsOf(chance: Chance): readonly Mishap[] {
  return chance
    .way<readonly Mishap["what"][]>([
      [2, () => []],
      [5, () => ["power"]],
      [2, () => ["kill"]],
      [3, () => ["EIO"]],
      [1, () => ["ENOSPC"]],
      [1, () => ["EIO", "power"]],
      [1, () => ["ENOSPC", "EIO", "kill"]],
    ])
    .map((what) => {
      const [on, start, life] = chance.way(
        made.map((each, index) => [index === 0 ? 4 : index < 3 ? 3 : 1, () => each]),
      );
      return { on, at: chance.whole(1, chance.often(0.15) ? start : life), what };
    });
}

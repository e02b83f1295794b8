import { Chance } from "../model/chance.ts";
import { DiskFailure, type Crash, type Disk, type DiskError } from "./disk.ts";

/** Calls on the disk by kind; locks are not of the disk, and a process takes more of them than it makes other calls. */
export type Kind = "read" | "write" | "fsync" | "name" | "lock";

/** What happens at one of the calls that a process makes. */
export interface Mishap {
  /** Which calls are counted: those of one kind, all on the disk, or those that begin so, such as `fsync /a/file`. */
  readonly on: Kind | "disk" | `${string} ${string}`;
  /** It happens at this one of them, counted from 1. */
  readonly at: number;
  readonly what: Crash | DiskError;
}

/** One process on a simulated machine: it lives until it ends or the power goes, and then nothing of it acts any more. */
export class Process {
  readonly disk: Disk;
  isAlive = true;
  /** How it ended, once it did. */
  crash: Crash | undefined;
  /** Mishaps that it has met. */
  readonly met: string[] = [];
  readonly #mishaps: readonly { readonly mishap: Mishap; left: number }[];

  constructor(disk: Disk, mishaps: readonly Mishap[]) {
    this.disk = disk;
    this.#mishaps = mishaps.map((mishap) => ({ mishap, left: mishap.at }));
  }

  /**
   * Every call begins here.
   *
   * @throws {DiskFailure} when it fails; a process that has ended gets nothing but failures
   */
  enter(kind: Kind, call: string): void {
    if (!this.isAlive) throw new DiskFailure("EIO", `${call} after the end`);
    const due = this.#mishaps.filter((each) => {
      if (!counts(each.mishap.on, kind, call)) return false;
      each.left -= 1;
      return each.left === 0;
    });
    const [first] = due;
    if (first === undefined) return;
    const { what, on, at } = first.mishap;
    this.met.push(`${what} at ${on} ${at}, ${call}`);
    if (what === "kill" || what === "power") this.end(what);
    throw new DiskFailure(what === "ENOSPC" ? "ENOSPC" : "EIO", call);
  }

  end(crash: Crash): void {
    this.isAlive = false;
    this.crash ??= crash;
  }
}

function counts(on: Mishap["on"], kind: Kind, call: string): boolean {
  if (on === "disk") return kind !== "lock";
  return on.includes(" ") ? call.startsWith(on) : on === kind;
}

interface Task {
  readonly at: number;
  readonly owner: Process;
  readonly run: () => void;
  /** Tasks of one lane run in the order in which they were put there. */
  readonly lane: unknown;
  isOff: boolean;
}

export interface Timer {
  unref(): Timer;
}

/** The platform's own, which the simulation needs where the code it runs is given simulated ones. */
const { setImmediate: afterMicrotasks } = globalThis;

/**
 * The event loop of a simulated machine: which of the tasks that are ready goes next is chance from the seed, and time
 * passes only when none is. Promises go on in between as the platform has them: their order is a matter of the program.
 */
export class Machine {
  /** Milliseconds since the epoch. */
  now: number;
  chance: Chance;
  /** Whose code is running. */
  process: Process;
  #tasks: Task[] = [];

  constructor(chance: Chance, disk: Disk, now: number) {
    this.chance = chance;
    this.now = now;
    this.process = new Process(disk, []);
  }

  /** From here on all chance comes from this seed. */
  reseed(seed: number): void {
    this.chance = new Chance(seed);
  }

  /** What the process that is running now wants done later. It is not done when the process has ended by then. */
  later(delayMs: number, run: () => void, lane?: unknown): Timer {
    const task: Task = { at: this.now + delayMs, owner: this.process, run, lane, isOff: false };
    this.#tasks.push(task);
    const timer: Timer & { readonly task: Task } = { task, unref: () => timer };
    return timer;
  }

  clear(timer: Timer | undefined): void {
    const task = (timer as { readonly task?: Task } | undefined)?.task;
    if (task !== undefined) task.isOff = true;
  }

  /** An answer from outside the program, such as that of the disk, some time later. */
  eventually<Value>(work: () => Value): Promise<Value> {
    return new Promise((resolve, reject) => {
      const run = (): void => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      };
      this.later(this.chance.whole(0, 2), run);
    });
  }

  /**
   * Runs a process until it ends or nothing is left to do.
   *
   * @returns false where it still waits for something that will never come
   */
  async run(process: Process, main: () => Promise<void>): Promise<boolean> {
    let isDone = false;
    let wrong: unknown;
    this.process = process;
    this.later(0, () => {
      const done = (): void => {
        isDone = true;
      };
      main().then(done, (error: unknown) => {
        wrong = error;
        done();
      });
    });
    for (;;) {
      await new Promise<void>((resolve) => afterMicrotasks(resolve));
      if (isDone || !process.isAlive) break;
      const task = this.#next();
      if (task === undefined) break;
      this.process = task.owner;
      task.run();
    }
    this.#tasks = [];
    if (wrong !== undefined) throw wrong;
    return isDone || !process.isAlive;
  }

  #next(): Task | undefined {
    this.#tasks = this.#tasks.filter(({ isOff, owner }) => !isOff && owner.isAlive);
    if (this.#tasks.length === 0) return undefined;
    const soonest = Math.min(...this.#tasks.map(({ at }) => at));
    this.now = Math.max(this.now, soonest);
    const lanes = new Set<unknown>();
    const ready = this.#tasks.filter(({ at, lane }) => {
      if (at > this.now || (lane !== undefined && lanes.has(lane))) return false;
      lanes.add(lane);
      return true;
    });
    const task = this.chance.pick(ready);
    this.#tasks.splice(this.#tasks.indexOf(task), 1);
    return task;
  }
}

let running: Machine | undefined;

/** The machine that code under simulation runs on now. */
export function machine(): Machine {
  if (running === undefined) throw new Error("no machine is simulated now");
  return running;
}

/** Gives the code of this process a machine: its timers, its clock and its chance are those of the machine until the end. */
export async function onMachine<Value>(simulated: Machine, work: () => Promise<Value>): Promise<Value> {
  const { setTimeout, clearTimeout, setImmediate } = globalThis;
  const now = Object.getOwnPropertyDescriptor(performance, "now");
  running = simulated;
  Object.assign(globalThis, {
    setTimeout: (run: () => void, delayMs = 0) => simulated.later(delayMs, run),
    clearTimeout: (timer: Timer | undefined) => simulated.clear(timer),
    setImmediate: (run: () => void) => simulated.later(0, run),
  });
  Object.defineProperty(performance, "now", { value: () => simulated.now, configurable: true });
  try {
    return await work();
  } finally {
    Object.assign(globalThis, { setTimeout, clearTimeout, setImmediate });
    if (now === undefined) Reflect.deleteProperty(performance, "now");
    else Object.defineProperty(performance, "now", now);
    running = undefined;
  }
}

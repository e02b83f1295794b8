import { Chance } from "../model/chance.ts";
import { DiskFailure, type Crash, type Disk, type DiskError } from "./disk.ts";

/** Calls on the disk by kind. Locks are not disk calls, and a process takes more locks than it makes other calls. */
export type Kind = "read" | "write" | "fsync" | "name" | "lock";

/** The event at one of a process's calls. */
export interface Mishap {
  /** The counted calls: those of one kind, all on the disk, or those with this prefix, such as `fsync /a/file`. */
  readonly on: Kind | "disk" | `${string} ${string}`;
  /** The number of the call at which it happens, from 1. */
  readonly at: number;
  readonly what: Crash | DiskError;
}

/** One process on a simulated machine: after its end or a power failure, none of its code acts any more. */
export class Process {
  readonly disk: Disk;
  isAlive = true;
  /** How it ended, once it did. */
  crash: Crash | undefined;
  /** The faults that it has met. */
  readonly met: string[] = [];
  readonly #mishaps: readonly { readonly mishap: Mishap; left: number }[];

  constructor(disk: Disk, mishaps: readonly Mishap[]) {
    this.disk = disk;
    this.#mishaps = mishaps.map((mishap) => ({ mishap, left: mishap.at }));
  }

  /**
   * Every call starts here.
   *
   * @throws {DiskFailure} if it fails; every call of an ended process fails
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
  /** Tasks of one lane run in the order in which they were added. */
  readonly lane: unknown;
  isOff: boolean;
}

export interface Timer {
  unref(): Timer;
}

/** The platform's own functions, for the simulation, while the simulated code gets simulated ones. */
const { setImmediate: afterMicrotasks } = globalThis;

/**
 * The event loop of a simulated machine. The seed chooses the next of the ready tasks, and time passes only if no task
 * is ready. Promises run between tasks in the platform's order, because the program itself determines that order.
 */
export class Machine {
  /** Milliseconds since the epoch. */
  now: number;
  chance: Chance;
  /** The process whose code is running. */
  process: Process;
  #tasks: Task[] = [];

  constructor(chance: Chance, disk: Disk, now: number) {
    this.chance = chance;
    this.now = now;
    this.process = new Process(disk, []);
  }

  /** Takes all later random values from this seed. */
  reseed(seed: number): void {
    this.chance = new Chance(seed);
  }

  /** Schedules a task of the running process. The task does not run if the process has ended by then. */
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

  /** Schedules an answer from outside the program, such as that of the disk, some time later. */
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
   * @returns false if it still waits for something that will never come
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

/** Returns the machine on which the simulated code now runs. */
export function machine(): Machine {
  if (running === undefined) throw new Error("no machine is simulated now");
  return running;
}

/** Replaces this process's timers, clock and random values by those of the machine, until the end. */
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

import { Chance } from "../model/chance.ts";
import { deciders, deciding } from "./approvers.ts";
import { ask, administer, type Serving } from "./clients.ts";
import { Disk, type Defect } from "./disk.ts";
import { contracts } from "./contracts.ts";
import { reseedPools } from "./host-crypto.ts";
import { operate } from "./operator.ts";
import { Machine, onMachine, Process } from "./machine.ts";
import { Outside } from "./outside.ts";
import { inspect } from "./inspect.ts";
import { folder, type Life, type Plan } from "./plan.ts";
import { askAgain } from "./repeats.ts";
import type { Sources } from "./sources.ts";
import { closeAll } from "./sqlite.ts";
import { reseed } from "./vfs.ts";

/** Returns the path of its pin. */
function pinOf({ hasPinOutside }: Plan): string {
  return hasPinOutside ? "/simulated/pins/head.pin" : `${folder}/head.pin`;
}

/** The results of a history. */
export interface Came {
  /** Lives that ended by a crash. */
  crashes: number;
  /** The number of answered checks, reloads and administrative events, and of rows at the end. */
  answers: number;
  rows: number;
  /** The number of parts whose erasure was confirmed, and of rows that rotate the signing key. */
  erased: number;
  rotations: number;
  /** The number of answered decisions, and of checks that used an approval. */
  decided: number;
  used: number;
  /** The number of answers that repeat another. */
  repeated: number;
  refusals: number;
  faults: number;
  refusedStarts: number;
  /** The faults, and after which life, counted from 0. */
  problem: { readonly life: number; readonly what: string } | undefined;
}

/** Runs a history, and after each life checks every promise. */
export function live(sources: Sources, plan: Plan, defect: Defect = {}): Promise<Came> {
  const { lives } = plan;
  const pinFile = pinOf(plan);
  const machine = new Machine(new Chance(lives[0]?.seed ?? 0), new Disk(defect), 1_790_000_000_000);
  return onMachine(machine, async () => {
    const came: Came = {
      crashes: 0,
      answers: 0,
      rows: 0,
      erased: 0,
      rotations: 0,
      decided: 0,
      used: 0,
      repeated: 0,
      refusals: 0,
      faults: 0,
      refusedStarts: 0,
      problem: undefined,
    };
    const outside = new Outside();
    reseedPools(machine.chance);
    const disk = machine.process.disk;
    for (const [index, life] of lives.entries()) {
      const lived = new Lived(sources, { machine, disk, outside, life, index, pinFile });
      const ran = await lived.run();
      const left = { disk: disk.copy(), pinFile, pinnedFrom: lived.pinnedFrom };
      const what = ran ?? (await inspect(sources, { machine, outside, life, ...left }));
      came.crashes += lived.hasCrashed ? 1 : 0;
      came.faults += lived.fault === undefined ? 0 : 1;
      came.refusedStarts += lived.hasStarted ? 0 : 1;
      if (what === undefined) continue;
      came.problem = { life: index, what: `${what} (it met: ${lived.process.met.join("; ") || "nothing"})` };
      break;
    }
    came.answers = outside.answers;
    came.refusals = outside.refused.size;
    came.rows = outside.rows;
    came.erased = outside.erased.size;
    came.rotations = outside.rotations;
    came.decided = outside.decided.length;
    came.used = outside.used;
    came.repeated = outside.repeated;
    return came;
  });
}

/** The pin may trail by a second, plus the disk's delay. */
const pinTrailMs = 1000 + 50;

interface WorldSetup {
  readonly machine: Machine;
  readonly disk: Disk;
  readonly outside: Outside;
  readonly life: Life;
  readonly index: number;
  readonly pinFile: string;
}

/** One life of a gate. */
class Lived {
  readonly process: Process;
  readonly #sources: Sources;
  readonly #setup: WorldSetup;
  hasStarted = false;
  #endedAt = 0;
  fault: unknown;
  #startFailure: unknown;
  #hasStopped = false;

  constructor(sources: Sources, setup: WorldSetup) {
    this.#sources = sources;
    this.#setup = setup;
    this.process = new Process(setup.disk, setup.life.mishaps);
  }

  get hasCrashed(): boolean {
    return !this.#hasStopped;
  }

  /** The time up to which the pin must have all known rows; undefined if the pin may lack some. */
  get pinnedFrom(): number | undefined {
    const { met } = this.process;
    return this.hasStarted && met.every((each) => each.startsWith("kill") || each.startsWith("power"))
      ? this.#endedAt - pinTrailMs
      : undefined;
  }

  /** @returns the faults of the life */
  async run(): Promise<string | undefined> {
    const { machine, disk, life, outside } = this.#setup;
    machine.reseed(life.seed);
    reseed();
    disk.capacityBytes = life.roomBytes === null ? Number.MAX_SAFE_INTEGER : disk.usedBytes + life.roomBytes;
    const { process } = this;
    const hasEnded = await machine.run(process, () => this.#serve());
    const problem = this.#problem(hasEnded);
    this.#endedAt = machine.now;
    machine.process = process;
    if (process.isAlive && (this.fault === undefined || life.closes)) closeAll(process);
    const crash = process.crash ?? (this.#hasStopped || life.ending !== "power" ? "kill" : "power");
    process.end(crash);
    closeAll(process);
    disk.crash(crash, machine.chance);
    disk.capacityBytes = Number.MAX_SAFE_INTEGER;
    machine.now += machine.chance.whole(0, 5000);
    return problem ?? outside.problem;
  }

  async #serve(): Promise<void> {
    const { life, outside, machine, index } = this.#setup;
    let serving: Serving;
    try {
      serving = await this.#start();
    } catch (error) {
      this.#startFailure = error;
      return;
    }
    this.hasStarted = true;
    const { gate, ledger } = serving;
    const leave = (checkpoint: string): void => (this.process.isAlive ? outside.signed(checkpoint) : undefined);
    leave(await ledger.checkpoint());
    ledger.watchHeads(({ checkpoint }) => leave(checkpoint));
    const stopped = (async () => {
      await Promise.all([
        ask(serving, outside, { life: index, calls: life.calls }),
        administer(serving, outside),
        deciding(serving, outside, { life: index, votes: life.votes ?? 0 }),
        askAgain(serving, outside, { life: index, repeats: life.repeats ?? 0 }),
        operate(serving, outside, { life: index, errands: life.errands ?? 0, keys: this.#sources }),
      ]);
      if (life.ending !== "stop") {
        // A pending call after the process's end never completes.
        machine.process.end(life.ending);
        return;
      }
      await gate.drain();
      await ledger.close();
      this.#hasStopped = true;
    })();
    try {
      await Promise.race([gate.failed, stopped]);
    } catch (error) {
      if (this.process.isAlive) this.fault = error;
    }
  }

  async #start(): Promise<Serving> {
    const { machine, life, pinFile } = this.#setup;
    const { openLedger, openGate, Clock } = this.#sources;
    const ledger = await openLedger({ folder, pinFile, engine: "svc-gate/1.0.0" });
    const clock = new Clock({ wall: () => machine.now + life.skewMs, monotonic: () => machine.now });
    const { chance } = machine;
    const opened = await openGate({
      ledger,
      clock,
      policySet: chance.pick(contracts),
      mode: chance.pick(["enforce", "assist"] as const),
      deciders,
      onDefect: ({ defect }) => {
        throw defect;
      },
    });
    if (!opened.ok) throw new Error(opened.problem.detail);
    return { gate: opened.value.gate, ledger, machine };
  }

  #problem(hasEnded: boolean): string | undefined {
    if (!hasEnded) return "the gate waits for what will never come";
    const isExpected = this.process.met.length > 0 || this.#setup.life.roomBytes !== null;
    if (isExpected || !this.process.isAlive) return undefined;
    if (this.#startFailure !== undefined) return `the gate did not start: ${textOf(this.#startFailure)}`;
    if (this.fault !== undefined) return `the gate had a fault of its own: ${textOf(this.fault)}`;
    return undefined;
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : JSON.stringify(error);
}

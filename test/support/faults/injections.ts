import { spawnSync } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { startGate, type Exit, type GateProcess } from "../gate-process.ts";
import type { Mutation } from "../mutation/mutate.ts";
import { Load } from "./load.ts";
import { examine, setupIn, type Setup } from "./setup.ts";

/**
 * Faults between process and kernel: strace makes one system call of the running gate fail, or kills the gate at it.
 * The disk itself always works; these tests do not show what a real disk leaves after a failed call.
 */

/** One system call of a gate: its name, its file, and its position among the thread's calls of that name. */
export interface CallPoint {
  readonly call: string;
  /** Relative to the data folder; `.` is the folder. */
  readonly file: string;
  readonly instance: number;
}

export type Fault = "EIO" | "ENOSPC" | "SIGKILL";

/** The results after a fault. */
export interface Injected extends CallPoint {
  readonly fault: Fault;
  /** Whether the point was reached, and with it the fault. */
  readonly happened: boolean;
  /** `refused` before it listened; `ended` without a signal or killed; `stopped` in order, after a signal. */
  readonly end: "refused" | "ended" | "stopped";
  readonly exit: Exit;
  readonly answered: number;
  /** The gate's last output. */
  readonly said: string;
  /** Calls that were sent after the fault but still answered. */
  readonly answeredAfter: number;
  /** The broken promises; empty if there are none. */
  readonly wrong: readonly string[];
}

/** Calls that change files, or decide whether they may be changed. */
const changing = [
  ["openat", "mkdir", "mmap", "msync", "statfs", "fstatfs", "fallocate", "fchmod", "ftruncate"],
  ["pwrite64", "pwritev", "write", "writev", "fsync", "fdatasync"],
  ["rename", "renameat", "renameat2", "unlink", "unlinkat"],
].join(",");

const reading = "pread64,read";

/** Undefined if strace can follow a process here, else the reason. */
export function noStrace(): string | undefined {
  const { status, error, stderr } = spawnSync("strace", ["-D", "-f", "-o", "/dev/null", "true"], { encoding: "utf8" });
  if (error !== undefined) return "strace is not installed";
  return status === 0 ? undefined : `strace may not follow a process here: ${stderr.trim().split("\n")[0]}`;
}

/**
 * The log is checkpointed every few rows and the pin follows at once, so that a short run contains every kind of write.
 */
const hurried: readonly Mutation[] = [
  { within: "logPagesMax", value: "12" },
  { within: "trailMs", value: "100" },
];

/**
 * Calls that may fail without an effect: the gate may continue, and end normally.
 *
 * @returns the reason, for such a call
 */
function harmless({ call, file, fault }: CallPoint & { readonly fault: Fault }): string | undefined {
  if (fault === "ENOSPC" && [".", "head.pin.new", "checkpoint.new"].includes(file) && call !== "statfs")
    return "they trail until there is room, and are then written again";
  if (file.startsWith("owner.lock")) return "the file is empty: it is locked, not written";
  if (call === "unlink" && /-(?:shm|wal)$/.test(file))
    return "the next start reads a log that was already checkpointed";
  if (["openat", "ftruncate", "mmap"].includes(call) && /-(?:shm|wal)$/.test(file))
    return "SQLite opens the log and its index again before the gate serves, or the start is refused";
  if (call === "pwrite64" && file.endsWith("-shm"))
    return "the index of the log is in memory and is rebuilt from the log: the write only extends its file";
  if (call === "mkdir" && file === ".") return "the folder already exists, or the next call reports that it is missing";
  return undefined;
}

/** strace counts instances for each thread, so one thread must do all work on the main thread's files. */
const oneThread = { UV_THREADPOOL_SIZE: "1" };

const checks = 6;
/** Longer than the pin trails in such a run. */
const trailMs = 300;

/**
 * Runs one short life of a gate on an empty folder: start, a few checks one after another, the pin, one more check, an
 * orderly stop.
 */
async function live(gate: GateProcess, load: Load): Promise<"ended" | "stopped"> {
  await load.run(gate.url, 1, checks);
  const ended = gate.ended.then(() => "ended" as const);
  const first = await Promise.race([ended, wait(trailMs, "waited" as const)]);
  if (first === "ended") return first;
  await load.run(gate.url, 1, 1);
  await Promise.race([ended, gate.stop()]);
  return "stopped";
}

interface Tracing {
  readonly setup: Setup;
  /** The file for strace's output. */
  readonly trace: string;
}

function straced({ setup, trace }: Tracing, options: readonly string[]) {
  const prefix = ["strace", "-D", "-f", "-y", "-ttt", "-o", trace, ...options];
  return { prefix, settings: { ...setup.settings, ...oneThread } };
}

/** Returns every call of a run on the files of the data folder, in the order of files. */
export async function survey(folder: string): Promise<readonly CallPoint[]> {
  const tracing = tracingIn(folder, []);
  const gate = await startGate(straced(tracing, ["-e", `trace=${changing},${reading}`, "--seccomp-bpf"]));
  await live(gate, new Load());
  const data = realpathSync(tracing.setup.data);
  const counted = new Map<string, number>();
  for (const line of readFileSync(tracing.trace, "utf8").split("\n")) {
    const { thread, call, path } = /^(?<thread>\d+) +\S+ (?<call>\w+)\((?<path>.*)$/.exec(line)?.groups ?? {};
    const file = path === undefined ? undefined : fileOf(path, data);
    if (file === undefined || besideTheLedger.test(file)) continue;
    const id = `${call} ${file} ${thread}`;
    counted.set(id, (counted.get(id) ?? 0) + 1);
  }
  const most = new Map<string, number>();
  for (const [id, count] of counted) {
    const name = id.split(" ").slice(0, 2).join(" ");
    most.set(name, Math.max(count, most.get(name) ?? 0));
  }
  return [...most]
    .toSorted(([one], [other]) => one.localeCompare(other))
    .flatMap(([id, count]) => {
      const [call = "", file = ""] = id.split(" ");
      return Array.from({ length: count }, (_, at) => ({ call, file, instance: at + 1 }));
    });
}

/** Files on which no answer depends, and the first signing key, which has a random name before its rename. */
const besideTheLedger = /operator|key-uses|^signing\.key\./;

function fileOf(text: string, data: string): string | undefined {
  const found = new RegExp(String.raw`[<"]${RegExp.escape(data)}(?:/([^/>"]*))?[>"]`).exec(text);
  return found === null ? undefined : (found[1] ?? ".");
}

function tracingIn(folder: string, changes: readonly Mutation[]): Tracing {
  return { setup: setupIn(folder, { changes: [...hurried, ...changes] }), trace: join(folder, "trace") };
}

/** Returns the faults that a call can have: a read never lacks space. */
export function faultsOf({ call }: CallPoint): readonly Fault[] {
  return isRead(call) ? ["EIO", "SIGKILL"] : ["EIO", "ENOSPC", "SIGKILL"];
}

function isRead(call: string): boolean {
  return reading.split(",").includes(call);
}

/** Runs one life with one fault, and inspects the folder afterwards. */
export async function inject(
  folder: string,
  point: CallPoint,
  fault: Fault,
  changes: readonly Mutation[] = [],
): Promise<Injected> {
  const { call, file, instance } = point;
  const tracing = tracingIn(folder, changes);
  const { setup, trace } = tracing;
  const path = join(realpathSync(folder), basename(setup.data), file === "." ? "" : file).replace(/\/$/, "");
  // Killed at its entry, so the call does not happen. With --seccomp-bpf, strace 6.1 forgets the signal.
  const what = fault === "SIGKILL" ? "signal=KILL" : `error=${fault}`;
  // A page that cannot be read is read once more, so a read keeps failing: one that succeeds then has lost nothing.
  const when = fault === "EIO" && isRead(call) ? `${instance}+` : instance;
  const options = [
    "-P",
    path,
    "-e",
    `trace=${call}`,
    "-e",
    `inject=${call}:${what}:when=${when}`,
    ...(fault === "SIGKILL" ? [] : ["--seccomp-bpf"]),
  ];
  const load = new Load();
  const started = straced(tracing, options);
  const life = await startGate(started).then(
    async (gate) => ({ end: await live(gate, load), exit: await gate.ended, said: gate.stderr() }),
    (error: Error) => ({ end: "refused" as const, exit: exitOf(error), said: error.message }),
  );
  const at = injectedAt(readFileSync(trace, "utf8"), fault);
  const answeredAfter = at === undefined ? 0 : load.answers.filter(({ askedAt }) => askedAt > at).length;
  const outcome = {
    ...point,
    ...life,
    fault,
    happened: at !== undefined,
    answered: load.answers.length,
    answeredAfter,
  };
  return { ...outcome, wrong: await wrongWith(outcome, load, setupIn(folder)) };
}

/** Returns the time of the fault in milliseconds since the epoch; undefined if it did not occur. */
function injectedAt(trace: string, fault: Fault): number | undefined {
  const line = trace
    .split("\n")
    .find((each) => (fault === "SIGKILL" ? each.includes("+++ killed") : each.includes("(INJECTED)")));
  const seconds = line === undefined ? undefined : /^\d+ +(\d+\.\d+) /.exec(line)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}

function exitOf({ message }: Error): Exit {
  const code = /ended with (\d+|null)/.exec(message)?.[1];
  return code === undefined || code === "null"
    ? { code: null, signal: "SIGKILL" }
    : { code: Number(code), signal: null };
}

/**
 * Pin and checkpoint are written in parallel with the answers, so the one client may have sent a call before the gate
 * noticed the fault.
 */
function underWay({ file }: CallPoint): number {
  return file === "." || /^(?:head\.pin|checkpoint)/.test(file) ? 1 : 0;
}

async function wrongWith(outcome: Omit<Injected, "wrong">, load: Load, whole: Setup): Promise<string[]> {
  const wrong: string[] = [];
  const { answeredAfter, end, exit, fault, happened, said } = outcome;
  if (happened && fault !== "SIGKILL" && harmless(outcome) === undefined) {
    if (answeredAfter > underWay(outcome)) wrong.push(`${answeredAfter} calls were answered after the fault`);
    if (exit.code === 0) wrong.push(`it ended with 0 (${end})`);
    if (exit.signal !== null) wrong.push(`it ended by ${exit.signal}`);
    if (said.trim() === "") wrong.push("it said nothing");
  }
  try {
    const { lost } = await examine(whole, [...load.answers], load);
    if (lost.length > 0) wrong.push(`${lost.length} answered checks are lost`);
  } catch (error) {
    wrong.push(`afterwards: ${(error as Error).message}`);
  }
  return wrong;
}

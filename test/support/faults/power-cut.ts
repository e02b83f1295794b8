import { fork, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { Dice } from "../campaign/random.ts";
import { startGate } from "../gate-process.ts";
import type { Mutation } from "../mutation/mutate.ts";
import { Load, type Answered } from "./load.ts";
import { examine, setupIn } from "./setup.ts";

/**
 * Power cuts. A gate's data folder is on a file system on a loop device on our own disk (disk.ts), which logs the
 * kernel's requests. A cut at one record of that log keeps all earlier flushed data. It keeps none, all, or some of the
 * unflushed writes, whole or in sectors. That disk is then mounted as after a reboot, and a gate starts on it.
 *
 * This covers unflushed pages of the process and of the file system, the file system's own journal, and a disk with a
 * volatile cache that drops, reorders and tears writes between two flushes. It does not cover a disk that confirms a
 * flush falsely, sectors that rot later, controllers and their batteries, and file systems that were not run.
 */

export type FileSystem = "ext4" | "xfs" | "btrfs";

export interface PowerCutOptions {
  /** The working folder, on another disk. */
  readonly folder: string;
  readonly fileSystem: FileSystem;
  /** Mount options, such as `barrier=0`. */
  readonly mountOptions?: string;
  /** Mutations that break the gate on purpose. */
  readonly changes?: readonly Mutation[];
  readonly dice: Dice;
  /** How many cuts, each at its own moment. */
  readonly cuts: number;
  /** The most cuts in one session. */
  readonly cutsOfSession: number;
  readonly loadMs: number;
  /** The fate of unflushed writes; drawn from all by default. */
  readonly fates?: readonly Unflushed[];
  readonly say?: (sentence: string) => void;
}

export interface PowerCuts {
  readonly cuts: number;
  /** The fate of unflushed writes. */
  readonly unflushed: Readonly<Record<Unflushed, number>>;
  /** The answers that clients had before a cut, over all cuts, and how many of them were missing afterwards. */
  readonly required: number;
  readonly lost: number;
  /** Cuts after which the gate did not start, or its ledger was damaged. */
  readonly problems: readonly string[];
  /** Records of the disks' logs: writes and flushes. */
  readonly writes: number;
  readonly flushes: number;
}

type Unflushed = "dropped" | "kept" | "some kept, some torn";
const allFates: readonly Unflushed[] = ["dropped", "kept", "some kept, some torn"];

/** Room for a gate's reserve, and the minimum size of each file system. */
const mebibytes: Readonly<Record<FileSystem, number>> = { ext4: 128, xfs: 400, btrfs: 256 };
const makers: Readonly<Record<FileSystem, readonly string[]>> = {
  ext4: ["mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
  xfs: ["mkfs.xfs", "-q", "-f"],
  btrfs: ["mkfs.btrfs", "-q", "-f"],
};

/** Why power cuts are impossible here; undefined if they are possible. */
export function noPowerCut(fileSystem: FileSystem): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "only root of a Linux may mount file systems";
  if (!existsSync("/dev/fuse") || !existsSync("/dev/loop-control"))
    return "there is no /dev/fuse or no loop device here";
  const maker = makers[fileSystem][0] ?? "";
  if (spawnSync(maker, ["-V"]).error !== undefined) return `${maker} is not installed`;
  return mayMount() ? undefined : "this root may not mount file systems";
}

function mayMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-mount-"));
  const isMounted = spawnSync("mount", ["-t", "tmpfs", "tmpfs", folder]).status === 0;
  if (isMounted) spawnSync("umount", [folder]);
  rmdirSync(folder);
  return isMounted;
}

/**
 * Runs sessions until this many cuts were made; each continues from the state after the previous session's last cut.
 */
export async function cutPower(options: PowerCutOptions): Promise<PowerCuts> {
  const { dice, folder, fileSystem, say = () => undefined } = options;
  const image = join(folder, "image");
  const unflushed: Record<Unflushed, number> = { dropped: 0, kept: 0, "some kept, some torn": 0 };
  const sum = { cuts: 0, required: 0, lost: 0, writes: 0, flushes: 0 };
  const problems: string[] = [];
  makeImage(image, fileSystem);
  let before: readonly Answered[] = [];
  for (let session = 0; sum.cuts < options.cuts && problems.length === 0; session += 1) {
    const { disk, answers } = await underLoad(image, options);
    sum.writes += disk.log.filter(({ bytes }) => bytes !== undefined).length;
    sum.flushes += disk.log.filter(({ bytes }) => bytes === undefined).length;
    for (const { at, fate } of cutsOf(disk.log.length, options.cuts - sum.cuts, options)) {
      const { moment } = disk.log[at] as Logged;
      const required = [...before, ...answers.filter(({ heard }) => heard < moment)];
      writeSparse(image, disk.leftBy(at, fate, dice));
      const after = await afterReboot(image, required, options);
      sum.cuts += 1;
      sum.required += required.length;
      sum.lost += after.lost;
      unflushed[fate] += 1;
      const name = `session ${session}, record ${at} of ${disk.log.length}, unflushed ${fate}`;
      if (after.problem !== undefined) problems.push(`${name}: ${after.problem}`);
      say(`${name}: ${required.length} answered, ${after.lost} lost ${after.problem ?? ""}`);
      if (at === disk.log.length - 1) before = [...required, ...after.answers];
    }
  }
  return { ...sum, unflushed, problems };
}

/** Draws moments from the mount on, in order; the last is at the end, so that a session continues from all data. */
function cutsOf(
  records: number,
  left: number,
  { cutsOfSession, dice, fates = allFates }: PowerCutOptions,
): readonly { at: number; fate: Unflushed }[] {
  const last = records - 1;
  const points = new Set([last]);
  while (points.size < Math.min(cutsOfSession, left, records)) points.add(Math.floor(dice.roll() * last));
  const ordered = [...points].toSorted((one, other) => one - other);
  return ordered.map((at) => ({ at, fate: dice.oneOf(fates) }));
}

function makeImage(image: string, fileSystem: FileSystem): void {
  writeFileSync(image, "");
  truncateSync(image, mebibytes[fileSystem] * 2 ** 20);
  const [maker = "", ...options] = makers[fileSystem];
  run(maker, ...options, image);
}

function run(command: string, ...args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${error?.message ?? stderr}`);
}

/** Runs in another process, awaited, because this process must go on serving the disk. */
async function runBeside(command: string, ...args: readonly string[]): Promise<void> {
  const child = spawn(command, args, { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (piece: Buffer) => (said += piece.toString()));
  const [status] = (await once(child, "close")) as [number | null];
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${said}`);
}

const clients = 4;
/** The answers that a load has at least, however slow the machine. */
const answersMin = 400;

/** Runs a gate under load on a disk that starts as the image, and kills it; the log has everything. */
async function underLoad(
  image: string,
  { folder, fileSystem, mountOptions, changes = [], loadMs }: PowerCutOptions,
): Promise<{ readonly disk: LoggedDisk; readonly answers: readonly Answered[] }> {
  const [device, mounted, log] = [join(folder, "device"), join(folder, "mounted"), join(folder, "log")];
  const base = readFileSync(image);
  mkdirSync(mounted, { recursive: true });
  writeFileSync(device, "");
  const disk = fork(join(import.meta.dirname, "disk.ts"), [image, device, log, mounted]);
  const ended = once(disk, "exit");
  const load = new Load();
  try {
    await Promise.race([once(disk, "message"), ended.then(() => Promise.reject(new Error("the disk did not start")))]);
    const options = ["loop", ...(mountOptions === undefined ? [] : [mountOptions])].join(",");
    await runBeside("mount", "-t", fileSystem, "-o", options, device, mounted);
    const { settings } = setupIn(folder, { data: join(mounted, "data"), changes });
    const gate = await startGate({ settings });
    const working = load.run(gate.url, clients);
    await wait(loadMs);
    await load.reaches(answersMin, working);
    await gate.kill();
    await working;
  } finally {
    // Writes of the unmount are not part of the load: every answer is older.
    await runBeside("umount", mounted).catch(() => undefined);
    await whenFree(device);
    await runBeside("umount", "-l", device).catch(() => undefined);
    await ended;
  }
  return { disk: new LoggedDisk(base, readLog(log)), answers: load.answers };
}

/** Waits until the loop device has released its file, a moment after the unmount of its file system. */
async function whenFree(device: string): Promise<void> {
  for (let tries = 0; tries < 400; tries += 1) {
    if (spawnSync("losetup", ["-j", device], { encoding: "utf8" }).stdout.trim() === "") return;
    await wait(50);
  }
}

/** A write, or a flush if it has no bytes. */
interface Logged {
  /** The time of the request, in nanoseconds of the machine's monotonic clock. */
  readonly moment: bigint;
  readonly offset: number;
  readonly bytes: Uint8Array | undefined;
}

function readLog(file: string): readonly Logged[] {
  const text = readFileSync(file);
  const records: Logged[] = [];
  for (let at = 0; at < text.length;) {
    const [moment, length] = [text.readBigUInt64LE(at), Number(text.readBigUInt64LE(at + 8))];
    const offset = Number(text.readBigUInt64LE(at + 16));
    records.push({ moment, offset, bytes: length === 0 ? undefined : text.subarray(at + 24, at + 24 + length) });
    at += 24 + length;
  }
  return records;
}

const sector = 512;

/** The content of a disk at any record of its log. */
class LoggedDisk {
  readonly log: readonly Logged[];
  readonly #flushed: Buffer;
  #reached = 0;

  constructor(base: Buffer, log: readonly Logged[]) {
    this.log = log;
    this.#flushed = base;
  }

  /**
   * Returns the content of the disk if the power fails just before a record. Call it in the order of time.
   *
   * @param fate of the writes since the last flush
   */
  leftBy(at: number, fate: Unflushed, dice: Dice): Buffer {
    const flush = this.log.findLastIndex(({ bytes }, index) => index < at && bytes === undefined);
    for (; this.#reached < flush; this.#reached += 1) put(this.#flushed, this.log[this.#reached]);
    const left = Buffer.from(this.#flushed);
    if (fate === "dropped") return left;
    for (const write of this.log.slice(this.#reached, at)) {
      if (fate === "kept" || dice.roll() < 0.4) put(left, write);
      else if (dice.roll() < 0.5) tear(left, write, dice);
    }
    return left;
  }
}

function put(disk: Buffer, { offset, bytes }: Logged = { moment: 0n, offset: 0, bytes: undefined }): void {
  if (bytes !== undefined) disk.set(bytes, offset);
}

/**
 * The superblock of ext4 is two sectors under one checksum, and such a small disk has no copy of it: torn, it would
 * never mount, whatever a gate did. The file system expects its block to be written as a unit, so this disk does so.
 */
const superblockEnd = 4096;

function tear(disk: Buffer, { offset, bytes = new Uint8Array() }: Logged, dice: Dice): void {
  if (offset < superblockEnd) {
    if (dice.roll() < 0.5) disk.set(bytes.subarray(0, superblockEnd - offset), offset);
    return tear(disk, { moment: 0n, offset: superblockEnd, bytes: bytes.subarray(superblockEnd - offset) }, dice);
  }
  for (let at = 0; at < bytes.length; at += sector)
    if (dice.roll() < 0.5) disk.set(bytes.subarray(at, at + sector), offset + at);
}

/** Skips blocks of zeros, because an image is mostly empty. */
function writeSparse(file: string, content: Buffer): void {
  const block = 65_536;
  const zeros = Buffer.alloc(block);
  rmSync(file, { force: true });
  const handle = openSync(file, "w");
  for (let at = 0; at < content.length; at += block) {
    const piece = content.subarray(at, at + block);
    if (!piece.equals(zeros.subarray(0, piece.length))) writeSync(handle, piece, 0, piece.length, at);
  }
  closeSync(handle);
  truncateSync(file, content.length);
}

interface AfterReboot {
  readonly lost: number;
  /** The answers to calls after the cut. */
  readonly answers: readonly Answered[];
  readonly problem: string | undefined;
}

/** Mounts the file system with its journal, starts the gate on its ledger, and makes new calls. */
async function afterReboot(
  image: string,
  required: readonly Answered[],
  options: PowerCutOptions,
): Promise<AfterReboot> {
  const { folder, fileSystem, changes = [] } = options;
  const mounted = join(folder, "mounted");
  const further = new Load();
  try {
    run("mount", "-t", fileSystem, "-o", "loop", image, mounted);
    const setup = setupIn(folder, { data: join(mounted, "data"), changes });
    const { lost } = await examine(setup, required, further);
    return { lost: lost.length, answers: further.answers, problem: undefined };
  } catch (error) {
    return { lost: 0, answers: further.answers, problem: (error as Error).message };
  } finally {
    spawnSync("umount", [mounted]);
  }
}

import { readFile } from "node:fs/promises";
import { replaceFile } from "../durable-file.ts";
import { zeroHash } from "../entry/leaf.ts";
import { LedgerRefused } from "../store/store.ts";
import { Frontier } from "../tree/merkle.ts";

/** What is known of a ledger outside its file: that it is there, and how far it reached at least. */
export interface Pin {
  readonly log: string;
  readonly seq: number;
  readonly hash: string;
  /** Of the tree over its rows, base64. */
  readonly root: string;
}

/** What a pin says of a ledger without rows. */
export const noRows: Omit<Pin, "log"> = { seq: 0, hash: zeroHash, root: new Frontier().root().toString("base64") };

/** Undefined when there is none. @throws {LedgerRefused} for one that is not exactly what `writePin` writes */
export async function readPin(file: string): Promise<Pin | undefined> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw new LedgerRefused(
      `the head pin ${file} cannot be read (${code}): SVC_PIN names a file that this user can read and write`,
    );
  }
  try {
    const { log, seq, hash, root } = JSON.parse(text) as Partial<Pin>;
    const isTyped = typeof log === "string" && typeof seq === "number" && typeof hash === "string";
    if (isTyped && typeof root === "string") {
      const pin = { log, seq, hash, root };
      const isHead = Number.isSafeInteger(seq) && seq >= 0 && /^[0-9a-f]{64}$/.test(hash) && rootText.test(root);
      if (pinText(pin) === text && isHead) return pin;
    }
  } catch {
    // Refused below: a pin is whole or it is not one.
  }
  throw new LedgerRefused(
    `the head pin ${file} is damaged: restore it; or move it away, verify the ledger, and start once with --accept missing-pin`,
  );
}

const rootText = /^[A-Za-z0-9+/]{43}=$/;

function pinText({ log, seq, hash, root }: Pin): string {
  return `${JSON.stringify({ log, seq, hash, root })}\n`;
}

/** Replaces the pin. A crash leaves the old one or the new one. */
export async function writePin(file: string, pin: Pin): Promise<void> {
  await replaceFile(file, pinText(pin));
}

/** The pin may trail the head by this much; it never leads. */
const trailMs = 1000;

/** A head that is durable and signed. */
export interface PinnedHead extends Pin {
  /** The signed checkpoint over it. */
  readonly checkpoint: string;
}

export interface PinFiles {
  readonly pin: string;
  /** Where the signed checkpoint is left for whoever reads the ledger's folder; undefined where it has none. */
  readonly checkpoint: string | undefined;
}

/** Why the last write of a file failed. */
export interface PinFailure {
  readonly what: "head pin" | "checkpoint";
  readonly file: string;
  /** The system's code, such as ENOSPC. */
  readonly why: string;
}

/** The state of the pin. */
export interface PinReading {
  /** The last row that it holds. */
  readonly seq: number;
  /** Milliseconds since the first head that it does not hold; 0 if it holds the last one. */
  readonly behindMs: number;
  /** Undefined if the last write succeeded. */
  readonly failure: PinFailure | undefined;
}

/** A write that takes longer is reported as a failure while it goes on: a network volume may never answer. */
const answerMs = 5000;

/**
 * Moves the pin behind the head, and the checkpoint with it, at most once a second. Owns the files while the ledger is open.
 *
 * A file that cannot be written now (a full or read-only volume, a folder that was removed) is written as soon as it can be
 * again, and `watch` is called for each attempt. An error of the disk itself is thrown at the next head: the gate must stop.
 */
export class HeadPin {
  readonly #files: PinFiles;
  #wanted: (() => PinnedHead) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isSettled = false;
  /** An error of the disk. */
  #fault: unknown;
  #failure: PinFailure | undefined;
  #seq: number;
  #behindSince: number | undefined;
  #watch: (failure: PinFailure | undefined) => void = () => undefined;

  /** @param seq the row that the pin holds now */
  constructor(files: PinFiles, seq: number) {
    this.#files = files;
    this.#seq = seq;
  }

  get reading(): PinReading {
    const behindMs = this.#behindSince === undefined ? 0 : performance.now() - this.#behindSince;
    return { seq: this.#seq, behindMs, failure: this.#failure };
  }

  /** Calls the function after each write: with the failure, or undefined. */
  watch(watch: (failure: PinFailure | undefined) => void): void {
    this.#watch = watch;
  }

  /** @param head returns the durable head. @throws the error of the last write, if the disk failed */
  follow(head: () => PinnedHead): void {
    if (this.#fault !== undefined) throw this.#fault;
    this.#wanted = head;
    this.#behindSince ??= performance.now();
    this.#schedule();
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#isSettled) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#writing = this.#writing.then(() => this.#write());
    }, trailMs);
    this.#timer.unref();
  }

  /** Writes the last head now, and nothing after it. @throws {LedgerRefused} if it cannot be written */
  async settle(): Promise<void> {
    this.#isSettled = true;
    clearTimeout(this.#timer);
    await this.#writing;
    await this.#write();
    if (this.#fault !== undefined) throw this.#fault;
    if (this.#failure === undefined) return;
    const { what, file, why } = this.#failure;
    throw new LedgerRefused(
      `the ${what} ${file} cannot be written (${why}), so it is not at the ledger's last row: nothing that was answered ` +
        "is lost; let this user write the file before the next start, which moves the pin",
    );
  }

  async #write(): Promise<void> {
    const wanted = this.#wanted;
    if (wanted === undefined) return;
    this.#wanted = undefined;
    const head = wanted();
    let part: Omit<PinFailure, "why"> = { what: "head pin", file: this.#files.pin };
    const slow = setTimeout(() => this.#report({ ...part, why: "no answer" }), answerMs).unref();
    try {
      const { pin, checkpoint } = this.#files;
      await writePin(pin, head);
      this.#seq = head.seq;
      if (checkpoint !== undefined) {
        part = { what: "checkpoint", file: checkpoint };
        await replaceFile(checkpoint, head.checkpoint);
      }
      this.#behindSince = this.#wanted === undefined ? undefined : performance.now();
      this.#report(undefined);
    } catch (error) {
      const { code = "" } = error as NodeJS.ErrnoException;
      if (!passing.has(code)) this.#fault = error;
      this.#wanted ??= wanted;
      this.#report({ ...part, why: code });
      this.#schedule();
    } finally {
      clearTimeout(slow);
    }
  }

  #report(failure: PinFailure | undefined): void {
    this.#failure = failure;
    this.#watch(failure);
  }
}

/**
 * Errors of space, permissions, paths and file descriptors do not mean that the disk fails, so the file is written again
 * later. Every other error, such as EIO, is a fault.
 */
const passing: ReadonlySet<string> = new Set(
  "ENOSPC EDQUOT EROFS EACCES EPERM ENOENT ENOTDIR EISDIR EEXIST ENOTEMPTY ESTALE EMFILE ENFILE".split(" "),
);

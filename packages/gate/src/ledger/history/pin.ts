import { readIfThere, replaceFile } from "../files/durable-file.ts";
import { zeroHash } from "../../../../core/src/record/entry/leaf.ts";
import { LedgerRefused } from "../errors.ts";
import { Frontier } from "../../../../core/src/record/tree/merkle.ts";

/** The last known head of a ledger, stored outside its file. */
export interface Pin {
  readonly log: string;
  readonly seq: number;
  readonly hash: string;
  /** The root of the tree over its rows, in base64. */
  readonly root: string;
}

/** The pin of a ledger without rows. */
export const noRows: Omit<Pin, "log"> = { seq: 0, hash: zeroHash, root: new Frontier().root().toString("base64") };

/**
 * Reads a pin; undefined if there is none.
 *
 * @throws {LedgerRefused} if it is not exactly the text that `writePin` writes
 */
export async function readPin(file: string): Promise<Pin | undefined> {
  const bytes = await readIfThere(file).catch(({ code }: NodeJS.ErrnoException) => {
    throw new LedgerRefused(
      `the head pin ${file} cannot be read (${code}): set SVC_PIN to a file that this user can read and write`,
    );
  });
  if (bytes === undefined) return undefined;
  const text = bytes.toString("utf8");
  try {
    const { log, seq, hash, root } = JSON.parse(text) as Partial<Pin>;
    const isTyped = typeof log === "string" && typeof seq === "number" && typeof hash === "string";
    if (isTyped && typeof root === "string") {
      const pin = { log, seq, hash, root };
      const isHead = Number.isSafeInteger(seq) && seq >= 0 && /^[0-9a-f]{64}$/.test(hash) && rootText.test(root);
      if (pinText(pin) === text && isHead) return pin;
    }
  } catch {
    // A pin that is not complete is refused below.
  }
  throw new LedgerRefused(
    `the head pin ${file} is damaged: restore it; or move it away, verify the ledger, and start once with --accept missing-pin`,
  );
}

const rootText = /^[A-Za-z0-9+/]{43}=$/;

function pinText({ log, seq, hash, root }: Pin): string {
  return `${JSON.stringify({ log, seq, hash, root })}\n`;
}

/** Replaces the pin. After a crash there is either the old pin or the new one. */
export async function writePin(file: string, pin: Pin): Promise<void> {
  await replaceFile(file, pinText(pin));
}

/** The pin may be behind the head by this time. It is never ahead of the head. */
const trailMs = 1000;

/** A head that is durable and signed. */
export interface PinnedHead extends Pin {
  /** The signed checkpoint of this head. */
  readonly checkpoint: string;
}

export interface PinFiles {
  readonly pin: string;
  /** The file of the signed checkpoint, for readers of the folder; undefined if the ledger has no folder. */
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
  /** The last row in the pin. */
  readonly seq: number;
  /** Milliseconds since the first head that is not in the pin yet; 0 if it has the last head. */
  readonly behindMs: number;
  /** Undefined if the last write succeeded. */
  readonly failure: PinFailure | undefined;
}

/** A write that takes longer is reported as a failure while it continues, because a network volume may never answer. */
const answerMs = 5000;

/**
 * Writes the pin and the checkpoint after each new head, at most once a second. It owns the files while the ledger is
 * open.
 *
 * If a file cannot be written now (a full or read-only volume, a removed folder), it is written as soon as possible,
 * and `watch` is called for each attempt. An error of the disk itself is thrown at the next head, because the gate must
 * stop.
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

  /** @param seq the row in the pin now */
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

  /**
   * Notes a new head.
   *
   * @param head returns the durable head
   * @throws the error of the last write, if the disk failed
   */
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

  /**
   * Writes the last head now, and nothing after it.
   *
   * @throws {LedgerRefused} if it cannot be written
   */
  async settle(): Promise<void> {
    this.#isSettled = true;
    clearTimeout(this.#timer);
    await this.#writing;
    await this.#write();
    if (this.#fault !== undefined) throw this.#fault;
    if (this.#failure === undefined) return;
    const { what, file, why } = this.#failure;
    throw new LedgerRefused(
      `the ${what} ${file} cannot be written (${why}), so it is not at the ledger's last row. No receipt is lost. ` +
        "Let this user write the file before the next start, which moves the pin",
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
 * Errors of space, permissions, paths and file descriptors do not mean that the disk fails, so the file is written
 * again later. Every other error, such as EIO, is a fault.
 */
const passing: ReadonlySet<string> = new Set(
  "ENOSPC EDQUOT EROFS EACCES EPERM ENOENT ENOTDIR EISDIR EEXIST ENOTEMPTY ESTALE EMFILE ENFILE".split(" "),
);

import { readFile } from "node:fs/promises";
import { replaceFile } from "./durable-file.ts";
import { LedgerRefused } from "./stores/store.ts";

/** What is known of a ledger outside its file: that it is there, and how far it reached at least. */
export interface Pin {
  readonly log: string;
  readonly seq: number;
  readonly hash: string;
  /** Of the tree over its rows, base64; undefined in a pin of before there was one. */
  readonly root?: string | undefined;
}

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
    if (typeof log === "string" && typeof seq === "number" && seq >= 0 && typeof hash === "string") {
      const pin = { log, seq, hash, root };
      const isHead = Number.isSafeInteger(seq) && /^[0-9a-f]{64}$/.test(hash);
      if (pinText(pin) === text && isHead && (root === undefined || rootText.test(root))) return pin;
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

/** Moves the pin behind the head, and the checkpoint with it, at most once a second. Owns the files while the ledger is open. */
export class HeadPin {
  readonly #files: PinFiles;
  #wanted: (() => PinnedHead) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #failure: unknown;
  #noRoom: unknown;

  constructor(files: PinFiles) {
    this.#files = files;
  }

  /** @param head what is durable when it is asked. @throws what kept the pin from being written before */
  follow(head: () => PinnedHead): void {
    if (this.#failure !== undefined) throw this.#failure;
    this.#wanted = head;
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#writing = this.#writing.then(() => this.#write());
    }, trailMs);
    this.#timer.unref();
  }

  /** Writes what is wanted, now. */
  async settle(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#writing;
    await this.#write();
    const kept = this.#failure ?? this.#noRoom;
    if (kept !== undefined) throw kept;
  }

  /** On a full disk it trails until there is room: then all of it is written anew, and no flush is tried twice. */
  async #write(): Promise<void> {
    const wanted = this.#wanted;
    if (wanted === undefined) return;
    this.#wanted = undefined;
    const head = wanted();
    this.#noRoom = undefined;
    const { pin, checkpoint } = this.#files;
    try {
      await writePin(pin, head);
      if (checkpoint !== undefined) await replaceFile(checkpoint, head.checkpoint);
    } catch (error) {
      if (!isNoRoom(error)) this.#failure = error;
      else {
        this.#noRoom = error;
        this.#wanted ??= wanted;
      }
    }
  }
}

function isNoRoom(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT"].includes((error as NodeJS.ErrnoException).code ?? "");
}

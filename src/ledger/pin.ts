import { readFile } from "node:fs/promises";
import { replaceFile } from "./durable-file.ts";
import { LedgerRefused } from "./stores/store.ts";

/** What is known of a ledger outside its file: that it is there, and how far it reached at least. */
export interface Pin {
  readonly log: string;
  readonly seq: number;
  readonly hash: string;
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
    const { log, seq, hash } = JSON.parse(text) as Partial<Pin>;
    if (typeof log === "string" && typeof seq === "number" && seq >= 0 && typeof hash === "string") {
      const pin = { log, seq, hash };
      if (pinText(pin) === text && Number.isSafeInteger(seq) && /^[0-9a-f]{64}$/.test(hash)) return pin;
    }
  } catch {
    // Refused below: a pin is whole or it is not one.
  }
  throw new LedgerRefused(
    `the head pin ${file} is damaged: restore it; or move it away, verify the ledger, and start once with --accept missing-pin`,
  );
}

function pinText({ log, seq, hash }: Pin): string {
  return `${JSON.stringify({ log, seq, hash })}\n`;
}

/** Replaces the pin. A crash leaves the old one or the new one. */
export async function writePin(file: string, pin: Pin): Promise<void> {
  await replaceFile(file, pinText(pin));
}

/** The pin may trail the head by this much; it never leads. */
const trailMs = 1000;

/** Moves the pin behind the head, at most once a second. Owns the file while the ledger is open. */
export class HeadPin {
  readonly #file: string;
  #wanted: Pin | undefined;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #failure: unknown;

  constructor(file: string) {
    this.#file = file;
  }

  /** @param pin a head that is durable already. @throws what kept the pin from being written before */
  follow(pin: Pin): void {
    if (this.#failure !== undefined) throw this.#failure;
    this.#wanted = pin;
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
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #write(): Promise<void> {
    const pin = this.#wanted;
    if (pin === undefined) return;
    this.#wanted = undefined;
    try {
      await writePin(this.#file, pin);
    } catch (error) {
      this.#failure = error;
    }
  }
}

import type { CheckEntry } from "../../ledger/mod.ts";
import { cutInputText, headBytesMax } from "../../../../core/src/record/entry/mod.ts";
import { bad, good, type Result } from "../../../../core/src/wire/mod.ts";

/** Limits for the inputs of calls that were refused before any rule was evaluated. */
export interface RefusedInputLimits {
  /** A longer input is cut. */
  readonly bytesMax: number;
  /** Bytes of whole inputs for each key in 24 hours; after that, inputs are cut. */
  readonly bytesPerDay: number;
}

export const refusedInputDefaults: RefusedInputLimits = { bytesMax: 16_384, bytesPerDay: 67_108_864 };

const hourMs = 3_600_000;
const hoursKept = 24;
/** The most keys that are counted; beyond it, the count of the key with the oldest last call is dropped. */
const keysMax = 65_536;

interface Hour {
  /** Hours since the epoch. */
  readonly hour: number;
  bytes: number;
}

/**
 * Decides which inputs of refused calls the ledger stores whole. An agent can easily make many such calls and fill the
 * disk. The bytes are counted by the hour, in this process only: a restart starts at zero.
 */
export class RefusedInputs {
  readonly #limits: RefusedInputLimits;
  readonly #keysMax: number;
  readonly #used = new Map<string, Hour[]>();

  constructor(limits: RefusedInputLimits = refusedInputDefaults, keys: number = keysMax) {
    this.#limits = limits;
    this.#keysMax = keys;
  }

  /** The number of keys that are counted now. */
  get size(): number {
    return this.#used.size;
  }

  /** Returns the stored input of a refused call: the whole input, or the result of `cutInputText`. */
  toStoredCall({ keyName, at, inputText, sensitive }: RefusedCall, tenant: string | null = null): StoredCall {
    if (this.#isWhole(`${tenant ?? ""} ${keyName}`, Buffer.byteLength(inputText), at)) return { inputText, sensitive };
    const others = sensitive.filter(({ name }) => !name.startsWith("input."));
    return { inputText: cutInputText(inputText, sensitive), sensitive: others };
  }

  #isWhole(key: string, bytes: number, at: number): boolean {
    if (bytes <= headBytesMax) return true;
    if (bytes > this.#limits.bytesMax) return false;
    const now = Math.floor(at / hourMs);
    const hours = (this.#used.get(key) ?? []).filter(({ hour }) => hour > now - hoursKept);
    const used = hours.reduce((sum, hour) => sum + hour.bytes, 0);
    const isWhole = used + bytes <= this.#limits.bytesPerDay;
    const last = hours.at(-1);
    if (isWhole && last?.hour === now) last.bytes += bytes;
    else if (isWhole) hours.push({ hour: now, bytes });
    this.#keep(key, hours);
    return isWhole;
  }

  /** Moves the key to the end of the map, so that the order is by last use. */
  #keep(key: string, hours: Hour[]): void {
    this.#used.delete(key);
    if (hours.length === 0) return;
    const [oldest] = this.#used.size >= this.#keysMax ? this.#used.keys() : [];
    if (oldest !== undefined) this.#used.delete(oldest);
    this.#used.set(key, hours);
  }
}

export interface StoredCall extends Pick<CheckEntry, "inputText"> {
  readonly sensitive: NonNullable<CheckEntry["sensitive"]>;
}

/** A call that was refused before any rule was evaluated. */
export interface RefusedCall extends StoredCall, Pick<CheckEntry, "at" | "keyName"> {}

const units: Readonly<Record<string, number>> = { "": 1, KiB: 1024, MiB: 1_048_576, GiB: 1_073_741_824 };

/** Reads a size: `16384`, `16 KiB`, `64MiB`, `1 GiB`. */
export function parseBytes(text: string): Result<number, string> {
  const [, number = "", unit = ""] = /^(0|[1-9][0-9]{0,9}) ?(KiB|MiB|GiB|)$/.exec(text) ?? [];
  const bytes = Number(number) * (units[unit] ?? 1);
  if (number !== "" && bytes <= Number.MAX_SAFE_INTEGER) return good(bytes);
  return bad(`"${text}" is not a size; write a number of bytes, or a number with KiB, MiB or GiB, such as 16 KiB`);
}

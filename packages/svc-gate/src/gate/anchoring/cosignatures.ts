import { readFile } from "node:fs/promises";
import { replaceFile } from "../../ledger/mod.ts";
import { claimedText, openCheckpoint, openNote, signatureLine } from "../../ledger/tree/mod.ts";
import type { AnchoredLog, Head } from "./head.ts";
import type { WitnessPolicy } from "./policy.ts";

/** A cosignature as a line of a note, and the text of the key that made it. */
export interface Cosignature {
  readonly key: string;
  readonly line: string;
  /** Milliseconds. */
  readonly at: number;
}

/** Heads whose cosignatures are still gathered: witnesses that are slow answer for older ones. */
const gatheredMax = 8;

/** Gathers cosignatures, and keeps the latest head that a quorum has cosigned, in a file too. */
export class Cosignatures {
  readonly #file: string;
  readonly #policy: WitnessPolicy;
  readonly #gathered = new Map<string, { readonly head: Head; readonly lines: Map<string, string>; at: number }>();
  #kept: CosignedHead | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(file: string, policy: WitnessPolicy) {
    this.#file = file;
    this.#policy = policy;
  }

  /** The latest head with cosignatures of a quorum; undefined before the first. */
  get latest(): CosignedHead | undefined {
    return this.#kept;
  }

  /**
   * Takes up what an earlier run has kept.
   *
   * @returns undefined where there is nothing, or nothing that this log's keys and a quorum have signed
   */
  async load(log: AnchoredLog): Promise<CosignedHead | undefined> {
    const note = await readFile(this.#file, "utf8").catch(() => "");
    const keys = this.#policy.witnesses.map(({ key }) => key);
    const opened = openCheckpoint(note, log.verifiers, keys);
    if (!opened.ok || opened.value.origin !== log.name) return undefined;
    const { size, root, signed } = opened.value;
    if (!this.#policy.isMet(new Set(signed.map(({ key }) => key.text)))) return undefined;
    this.#kept = { note, size, root, at: Math.max(0, ...signed.map(({ time = 0 }) => time * 1000)) };
    return this.#kept;
  }

  /** Adds what a witness has cosigned. @returns when a head that is now kept is on disk */
  async add(head: Head, cosignatures: readonly Cosignature[]): Promise<void> {
    const found = this.#gathered.get(head.note) ?? { head, lines: new Map<string, string>(), at: 0 };
    for (const { key, line, at } of cosignatures) {
      found.lines.set(key, line);
      found.at = Math.max(found.at, at);
    }
    this.#gathered.delete(head.note);
    this.#gathered.set(head.note, found);
    const [oldest] = this.#gathered.keys();
    if (this.#gathered.size > gatheredMax && oldest !== undefined) this.#gathered.delete(oldest);
    if (head.size < (this.#kept?.size ?? 0) || !this.#policy.isMet(new Set(found.lines.keys()))) return;
    const { size, root } = head;
    this.#kept = { note: head.note + [...found.lines.values()].join(""), size, root, at: found.at };
    // Where the disk fails the next one is tried: the file is a copy of what witnesses can give again.
    this.#writing = this.#writing.then(() => this.#write()).catch(() => undefined);
    await this.#writing;
  }

  async #write(): Promise<void> {
    const { note } = this.#kept ?? {};
    if (note !== undefined) await replaceFile(this.#file, note);
  }
}

/** A head with its cosignatures. */
export interface CosignedHead extends Head {
  /** When the latest of them was made, in milliseconds. */
  readonly at: number;
}

/**
 * Reads what a witness answers to a checkpoint: lines of signatures. Those of unknown keys are left out.
 *
 * @returns why nothing of it counts, where one of a known key is wrong or there is none of the witness's own
 */
export function readCosignatures(
  head: Head,
  lines: string,
  { policy, own }: { readonly policy: WitnessPolicy; readonly own: string },
): readonly Cosignature[] | string {
  const keys = policy.witnesses.map(({ key }) => key);
  const note = head.note + lines;
  if (claimedText(note) !== claimedText(head.note)) return "its answer is not lines of signatures";
  const opened = openNote(note, keys);
  if (!opened.ok) return `its answer is refused: ${opened.problem}`;
  const found = opened.value.signed.flatMap(({ key, signature, time = 0 }) =>
    time === 0 ? [] : [{ key: key.text, line: signatureLine(key, signature.bytes), at: time * 1000 }],
  );
  return found.some(({ key }) => key === own) ? found : "it answers without a cosignature of its key";
}

import { readFile } from "node:fs/promises";
import { replaceFile } from "../../ledger/mod.ts";
import { claimedText, openCheckpoint, openNote, signatureLine } from "../../../../core/src/record/tree/mod.ts";
import type { AnchoredLog, Head } from "./head.ts";
import type { WitnessPolicy } from "./policy.ts";

/** A cosignature as a line of a note, and its key as text. */
export interface Cosignature {
  readonly key: string;
  readonly line: string;
  /** Milliseconds. */
  readonly at: number;
}

/** The number of heads whose cosignatures are still collected, because slow witnesses answer for older heads. */
const gatheredMax = 8;

/** Collects cosignatures, and stores the latest head that a quorum has cosigned, also in a file. */
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
   * Loads the head that an earlier run has stored.
   *
   * @returns undefined if there is none, or this log's keys and a quorum have not signed it
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

  /** Adds cosignatures of a witness. If a quorum has now cosigned the head, the head is on disk when this resolves. */
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
    // If the write fails, the next head is written. Witnesses can give the cosignatures again.
    this.#writing = this.#writing.then(() => this.#write()).catch(() => undefined);
    await this.#writing;
  }

  async #write(): Promise<void> {
    const { note } = this.#kept ?? {};
    if (note !== undefined) await replaceFile(this.#file, note);
  }
}

export interface CosignedHead extends Head {
  /** The time of the latest cosignature, in milliseconds. */
  readonly at: number;
}

/**
 * Reads the answer of a witness to a checkpoint: lines of signatures. Signatures of unknown keys are left out.
 *
 * @returns a sentence if the signature of a known key is wrong, or the witness's own signature is missing
 */
export function readCosignatures(
  head: Head,
  lines: string,
  { policy, own }: { readonly policy: WitnessPolicy; readonly own: string },
): readonly Cosignature[] | string {
  const keys = policy.witnesses.map(({ key }) => key);
  const note = head.note + lines;
  if (claimedText(note) !== claimedText(head.note)) return "its answer does not consist of signature lines";
  const opened = openNote(note, keys);
  if (!opened.ok) return `its answer is not valid: ${opened.problem}`;
  const found = opened.value.signed.flatMap(({ key, signature, time = 0 }) =>
    time === 0 ? [] : [{ key: key.text, line: signatureLine(key, signature.bytes), at: time * 1000 }],
  );
  return found.some(({ key }) => key === own) ? found : "its answer has no cosignature by its key";
}

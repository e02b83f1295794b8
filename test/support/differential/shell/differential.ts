import { brokenPromises, promisedBy, type Promised, type ShellRecord } from "./harmless.ts";
import type { Reply } from "./runner.ts";
import type { Sandbox } from "./sandbox.ts";
import { writeText } from "./texts.ts";

/** Reads a text as `shell()` does; undefined if the text is in doubt. */
export type Reader = (text: string) => ShellRecord | undefined;

export interface Shell {
  readonly name: string;
  /** The shell's path and its options. */
  readonly command: readonly string[];
}

/** A text with a harmless record that did harm, or a text on which the reader itself failed. */
export interface Hole {
  readonly seed: number | undefined;
  readonly text: string;
  readonly shell: string;
  readonly promised: Promised;
  readonly effects: readonly string[];
  readonly record: ShellRecord;
  readonly output: string;
}

export interface Tally {
  generated: number;
  harmless: number;
  timedOut: number;
  /** How many texts of each production the run wrote, and how many of them were harmless and ran unchanged. */
  readonly byProduction: Map<string, { generated: number; harmless: number }>;
  readonly holes: Hole[];
}

/** @returns a reader over a function that gives the record of a text as a `Value` */
export function readerOf(read: (text: string) => unknown): Reader {
  return (text) => {
    try {
      return plain(read(text)) as ShellRecord;
    } catch (error) {
      if (error instanceof Error && error.constructor.name === "EvaluationError") return undefined;
      throw error;
    }
  };
}

function plain(value: unknown): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([name, member]) => [name, plain(member)]));
  return Array.isArray(value) ? value.map(plain) : value;
}

/** Texts that wait for a shell: enough to keep the runners busy. */
const waitingMax = 8;

export class Differential {
  readonly tally: Tally = { generated: 0, harmless: 0, timedOut: 0, byProduction: new Map(), holes: [] };
  readonly #read: Reader;
  readonly #allows: (text: string) => boolean;
  readonly #sandbox: Sandbox;
  readonly #shells: readonly Shell[];
  readonly #waiting = new Set<Promise<void>>();

  /** `allows`: whether a contract allows the text. If so it runs, whatever its record. */
  constructor(options: {
    read: Reader;
    allows?: (text: string) => boolean;
    sandbox: Sandbox;
    shells: readonly Shell[];
  }) {
    this.#read = options.read;
    this.#allows = options.allows ?? (() => false);
    this.#sandbox = options.sandbox;
    this.#shells = options.shells;
  }

  /** Writes a text from a seed and runs it in every shell if its record is harmless. */
  async random(seed: number, focus: string): Promise<void> {
    const { area } = this.#sandbox;
    const { text, used, isMutated } = writeText({ seed, area, focus });
    const isHarmless = await this.give(text, seed);
    this.tally.generated += 1;
    if (isHarmless) this.tally.harmless += 1;
    if (isMutated) return;
    for (const production of used) {
      const counts = this.tally.byProduction.get(production) ?? { generated: 0, harmless: 0 };
      counts.generated += 1;
      if (isHarmless) counts.harmless += 1;
      this.tally.byProduction.set(production, counts);
    }
  }

  /** @returns whether the record is harmless, so that the text runs */
  async give(text: string, seed?: number): Promise<boolean> {
    // A null character cannot be an argument of a program.
    const record = text.includes("\0") ? undefined : this.#read(text);
    if (record === undefined) return false;
    const promised = this.#allows(text) ? "allowed" : promisedBy(record);
    if (promised === undefined) return false;
    for (const shell of this.#shells) {
      const run = this.#sandbox.run({ shell: shell.command, text }).then((reply) => {
        this.#waiting.delete(run);
        this.#judge({ seed, text, shell: shell.name, promised, record }, reply);
      });
      this.#waiting.add(run);
    }
    while (this.#waiting.size >= waitingMax) await Promise.race(this.#waiting);
    return true;
  }

  /** Waits until all texts have run. */
  async settle(): Promise<void> {
    await Promise.all(this.#waiting);
  }

  #judge(run: Omit<Hole, "effects" | "output">, reply: Reply): void {
    if (reply.timedOut) this.tally.timedOut += 1;
    const effects = brokenPromises(run.promised, run.record, reply);
    if (effects.length > 0) this.tally.holes.push({ ...run, effects, output: reply.output });
  }
}

/** Describes a hole on lines with everything needed to repeat it. */
export function describeHole({ seed, text, shell, promised, effects, record, output }: Hole): string {
  return [
    `${shell}: ${effects.join("; ")}`,
    `  seed: ${seed ?? "a kept text"}; promised: ${promised}`,
    `  text: ${JSON.stringify(text)}`,
    `  record: ${JSON.stringify(record)}`,
    `  output: ${JSON.stringify(output)}`,
  ].join("\n");
}

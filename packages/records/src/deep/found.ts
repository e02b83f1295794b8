import type { Difference } from "../replay/decide-again.ts";
import type { Mistake } from "../../../core/src/record/entry/mod.ts";
import { visible } from "../../../core/src/wire/mod.ts";

/** The result of deciding every check again. */
export interface DecidedFound {
  /** The last row that was examined. */
  readonly rows: number;
  /** Checks with the same result as on their receipts: verdict, rule, reason, answer, trace, and counter updates. */
  readonly replayed: number;
  /** Checks that cannot be decided again, such as those with an erased part. */
  readonly notReplayable: number;
  readonly firstNotReplayable: { readonly seq: number; readonly why: string } | undefined;
  readonly differs: number;
  readonly firstDiffering:
    | { readonly seq: number; readonly what: string; readonly recorded: string; readonly again: string }
    | undefined;
}

/** Counts the result of each check, and keeps the first of each kind. */
export class ReplayTally {
  readonly #found: { -readonly [Name in keyof Omit<DecidedFound, "rows">]: DecidedFound[Name] } = {
    replayed: 0,
    notReplayable: 0,
    firstNotReplayable: undefined,
    differs: 0,
    firstDiffering: undefined,
  };

  countAgreement(): void {
    this.#found.replayed += 1;
  }

  countSkip(seq: number, why: string): void {
    this.#found.notReplayable += 1;
    this.#found.firstNotReplayable ??= { seq, why };
  }

  countDifference(seq: number, { what, was, is }: Difference): void {
    this.#found.differs += 1;
    this.#found.firstDiffering ??= { seq, what, recorded: was, again: is };
  }

  /** @param rows the last row that was examined */
  summarize(rows: number): DecidedFound {
    return { rows, ...this.#found };
  }
}

/** The result for a ledger, whose counters were folded again too. */
export interface DeepFound extends DecidedFound {
  readonly counters: {
    readonly kept: number;
    /** Events of rows older than their counter, which no receipt commits to, found again. */
    readonly events: number;
    /** Counters that depend on rows which cannot be counted again, or that no receipt's contract names yet. */
    readonly unverifiable: number;
    readonly firstWrong: WrongCounter | undefined;
  };
}

export interface WrongCounter extends Mistake {
  readonly counter: string;
}

/** Do all examined checks and counters agree? */
export function isSound({ differs, counters }: DeepFound): boolean {
  return differs === 0 && counters.firstWrong === undefined;
}

/** For programs. */
export function shownDeep(found: DeepFound): object {
  const { kept, events, unverifiable, firstWrong } = found.counters;
  return {
    ...shownDecided(found),
    counters: { kept, events, unverifiable, first_wrong: firstWrong ?? null },
  };
}

export function shownDecided({ rows, replayed, differs, ...firsts }: DecidedFound): object {
  return {
    rows,
    replayed,
    not_replayable: firsts.notReplayable,
    first_not_replayable: firsts.firstNotReplayable ?? null,
    differs,
    first_differing: firsts.firstDiffering ?? null,
  };
}

/** The first check that differs; undefined if none does. */
export function differsText({ differs, replayed, firstDiffering }: DecidedFound): string | undefined {
  if (firstDiffering === undefined) return undefined;
  const { seq, what, recorded, again } = firstDiffering;
  return (
    `DIFFERS: ${differs} of ${replayed + differs} checks have another result, the first is row ${seq}: ` +
    `another ${what}\n  recorded  ${visible(recorded)}\n  again     ${visible(again)}`
  );
}

/** @param width of the first column */
export function decidedLines(found: DecidedFound, width: number): readonly string[] {
  const { replayed, notReplayable, firstNotReplayable } = found;
  const row = (name: string, text: string): string => `  ${name.padEnd(width)}${text}`;
  return [
    row("replay", `${replayed} checks decided again agree with their receipts`),
    ...(firstNotReplayable === undefined
      ? []
      : [
          row(
            "",
            `${notReplayable} cannot be decided again: row ${firstNotReplayable.seq}, ${visible(firstNotReplayable.why)}`,
          ),
        ]),
  ];
}

import { loadContracts, renderDiagnostics } from "../../../gate/src/server/policy/mod.ts";
import type { Mode } from "../../../core/src/wire/mod.ts";
import { openHistory, type History, type ReceiptSource } from "../history.ts";
import { BadInput, type Outcome } from "../../../gate/src/cli/mod.ts";
import { showProgress } from "../../../gate/src/cli/progress.ts";
import { readMode, readSpan, rowsWithin, type SpanOptions } from "../span.ts";
import type { Difference } from "./decide-again.ts";
import { agreementText, comparisonText, sortGroups, type Disagreement, type SkippedRows } from "./print.ts";
import { decideAllAgain, compareWithItself } from "./replay.ts";
import { VerdictChanges } from "./verdict-changes.ts";

export interface ReplayCommandOptions extends Omit<ReceiptSource, "folder">, SpanOptions {
  /** A contract or mandate to decide under, instead of those that were in force. */
  readonly contract?: string | undefined;
  readonly mode?: string | undefined;
  /** A path such as `input.amount`. */
  readonly sum?: string | undefined;
  readonly examples: string;
  readonly json: boolean;
}

/**
 * `svc-gate replay`: decides recorded receipts again, under the contracts that were in force or under another contract.
 */
export async function replayCommand(folder: string, options: ReplayCommandOptions): Promise<Outcome> {
  const examples = readCount(options.examples);
  const mode = options.mode === undefined ? undefined : readMode(options.mode);
  const field = readField(options.sum);
  if (options.contract === undefined && (mode !== undefined || field !== undefined))
    throw new BadInput("--mode and --sum need --contract: without it, receipts are compared with themselves");
  const { since, until, last } = options;
  if (options.contract === undefined && (since ?? until ?? last) !== undefined)
    throw new BadInput(
      "--since, --until and --last need --contract: without it, every receipt is compared with itself, as by verify --deep",
    );
  const wanted = readSpan(options, Date.now());
  await using history = await openHistory({ ...options, folder });
  return options.contract === undefined
    ? await agreement(history, examples, options.json)
    : await comparison(history, { ...options, contract: options.contract, mode, field, examples, wanted });
}

async function agreement(history: History, examples: number, json: boolean): Promise<Outcome> {
  using progress = showProgress(history.rows);
  const skips = new Skips();
  const shown: Disagreement[] = [];
  let [agreed, disagreements] = [0, 0];
  await compareWithItself(history, {
    onRow: (seq) => progress.at(seq),
    onSkip: (seq, why) => skips.add(seq, why),
    onAgreement: () => void (agreed += 1),
    differs: ({ leaf: { seq } }, difference: Difference) => {
      disagreements += 1;
      if (shown.length < examples) shown.push({ seq, difference });
    },
  });
  const found = { agreed, disagreements, shown, skipped: skips.found };
  return {
    exitCode: disagreements === 0 ? 0 : 1,
    text: json ? JSON.stringify({ ...found, skipped: skips.json }) : agreementText(found),
    forPrograms: json,
  };
}

interface ComparisonOptions {
  readonly contract: string;
  readonly mode: Mode | undefined;
  readonly field: readonly string[] | undefined;
  readonly examples: number;
  readonly wanted: ReturnType<typeof readSpan>;
  readonly json: boolean;
}

async function comparison(history: History, options: ComparisonOptions): Promise<Outcome> {
  const { contract, mode, field, examples, wanted, json } = options;
  const compiled = await loadContracts(contract);
  if (!compiled.ok) return { exitCode: 2, text: renderDiagnostics(compiled.problem) };
  using progress = showProgress(history.rows);
  const skips = new Skips();
  const counts = new VerdictChanges({ field, examples });
  await decideAllAgain(
    history,
    { policySet: compiled.value, mode, span: await rowsWithin(history, wanted) },
    {
      onRow: (seq) => progress.at(seq),
      onSkip: (seq, why) => skips.add(seq, why),
      onDecision: (recorded, again) => counts.add(recorded, again),
    },
  );
  if (field !== undefined && counts.withField === 0)
    throw new BadInput(`--sum: no receipt has a number at ${field.join(".")}`);
  const found = { contract, counts, field: field?.join("."), skipped: skips.found };
  return {
    exitCode: counts.changed === 0 ? 0 : 1,
    text: json ? JSON.stringify(comparisonJson(counts, skips)) : comparisonText(found),
    forPrograms: json,
  };
}

function comparisonJson(counts: VerdictChanges, skips: Skips): object {
  const groups = (of: VerdictChanges["byRule"]): object => sortGroups(of).map(([name, share]) => ({ name, ...share }));
  return {
    decided: counts.decided,
    changed: counts.changed,
    changes: sortGroups(counts.changes).map(([, change]) => change),
    by_rule: groups(counts.byRule),
    by_tool: groups(counts.byTool),
    by_session: groups(counts.bySession),
    examples: [...counts.examples.values()].flat(),
    skipped: skips.json,
  };
}

class Skips {
  readonly #reasons = new Map<string, { receipts: number; first: number }>();
  #receipts = 0;

  add(seq: number, why: string): void {
    this.#receipts += 1;
    this.#reasons.getOrInsertComputed(why, () => ({ receipts: 0, first: seq })).receipts += 1;
  }

  get found(): SkippedRows {
    return { receipts: this.#receipts, reasons: this.#reasons };
  }

  get json(): object {
    return [...this.#reasons].map(([why, counts]) => ({ why, ...counts }));
  }
}

function readCount(text: string): number {
  if (!/^[0-9]{1,4}$/.test(text)) throw new BadInput(`--examples must be a number from 0 to 9999, not "${text}"`);
  return Number(text);
}

function readField(text: string | undefined): readonly string[] | undefined {
  const path = text?.split(".");
  if (path === undefined || (["input", "platform"].includes(path[0] ?? "") && path.length > 1 && !path.includes("")))
    return path;
  throw new BadInput(`--sum must be a member such as input.amount or platform.total, not "${text ?? ""}"`);
}

import type { LedgerCheck, LedgerHistory } from "../../../gate/src/ledger/mod.ts";
import { ledgerSource, type DatabaseOption, type LedgerSource } from "../../../gate/src/cli/ledger-source.ts";
import { decidedLines, differsText, isSound, shownDeep, type DeepFound } from "../deep/found.ts";
import { BadInput, counted, type Outcome } from "../../../gate/src/cli/mod.ts";
import { progressStride, showProgress } from "../../../gate/src/cli/progress.ts";
import { lookBeside, type FolderFound } from "./folder.ts";
import { compareWithSinks } from "./sinks.ts";

export interface VerifyOptions {
  readonly json: boolean;
  readonly pin: string | undefined;
  readonly chain: boolean;
  /** Decide every check again too, and fold the counters again. */
  readonly deep: boolean;
  readonly database: DatabaseOption;
  /** Files of collected checkpoints; if empty, the file that SVC_SEEN names. */
  readonly seen?: readonly string[];
}

/** `svc-gate verify`: walks the chain of a ledger in a folder or a database, without a gate. */
export async function verifyCommand(folder: string, options: VerifyOptions): Promise<Outcome> {
  const { json, chain } = options;
  const source = ledgerSource(folder, options.database);
  const { check, isUnknown } = await compareWithSinks(await walk(source, options), source, options.seen ?? []);
  const isWhole = check.broken === undefined;
  const beside = !source.isShared && isWhole ? await lookBeside(folder, options.pin) : nothingBeside;
  const isDeep = options.deep && check.broken === undefined;
  const deep = isDeep ? await deepen(source.open()) : undefined;
  const isSame = beside.changed.length === 0;
  const exitCode = isWhole && isSame && (deep === undefined || isSound(deep)) ? 0 : 1;
  if (json) return { exitCode, text: JSON.stringify(toCheckJson(check, deep, beside)), forPrograms: true };
  if (check.broken !== undefined) {
    const { seq, problem, expected, found: stood } = check.broken;
    return {
      exitCode,
      text: `${brokenAt(seq, check.rows)}: ${problem}\n  expected  ${expected}\n  found     ${stood}`,
    };
  }
  const { rows, log, head, anchored } = check;
  const anchor =
    anchored === undefined
      ? `nothing outside the ${source.isShared ? "database" : "data folder"} anchors it (SVC_PIN)`
      : `anchored through row ${anchored.seq} by the ${anchored.by}`;
  const looked = chain && !source.isShared ? "only the chain" : "chain and evidence";
  const ok = `${counted(rows, "row")}, ${looked} verified`;
  const verdict = (deep && wrongText(deep)) ?? (isSame ? `ok: ${ok}` : `CHANGED next to the ledger: ${ok}`);
  const besides = [
    ...beside.changed.map((sentence) => `  changed  ${sentence}`),
    ...beside.warnings.map((sentence) => `  warning  ${sentence}`),
  ];
  const unknown = isUnknown ? ["  no file of SVC_SINKS, SVC_SEEN or --seen has a checkpoint of it"] : [];
  const lines = [
    verdict,
    `  ledger  ${log}`,
    `  head    ${head.hash}`,
    `  ${anchor}`,
    ...unknown,
    ...deepLines(deep),
    ...besides,
  ];
  return { exitCode, text: lines.join("\n") };
}

async function walk(source: LedgerSource, { pin, chain }: VerifyOptions): Promise<LedgerCheck> {
  const check = await source.walk({ pinFile: pin, chainAlone: chain });
  if (
    source.isShared ||
    pin === undefined ||
    check.broken !== undefined ||
    check.anchored !== undefined ||
    check.rows === 0
  )
    return check;
  throw new BadInput(
    `the ledger is consistent, with ${counted(check.rows, "row")}, but the head pin ${pin} does not exist: ` +
      "name the right one (--pin, SVC_PIN), or none",
  );
}

async function deepen(opening: Promise<LedgerHistory>): Promise<DeepFound> {
  const { replayAndFold } = await import("../deep/deep.ts");
  await using ledger = await opening;
  using progress = showProgress(ledger.rows);
  return await replayAndFold(ledger, (seq) => progress.at(seq - (seq % progressStride)));
}

const nothingBeside: FolderFound = { changed: [], warnings: [] };

function toCheckJson(
  { rows, head, broken, anchored }: LedgerCheck,
  deep: DeepFound | undefined,
  { changed, warnings }: FolderFound,
): object {
  if (broken !== undefined) return { ok: false, rows, first_broken: broken };
  const ok = changed.length === 0 && (deep === undefined || isSound(deep));
  return {
    ok,
    rows,
    head,
    anchored: anchored ?? null,
    ...(changed.length === 0 ? {} : { changed }),
    ...(warnings.length === 0 ? {} : { warnings }),
    ...(deep === undefined ? {} : { deep: shownDeep(deep) }),
  };
}

/** A row after the last one should exist, but does not. */
function brokenAt(seq: number, rows: number): string {
  if (seq <= rows) return `BROKEN at row ${seq} of ${rows}`;
  return `BROKEN: row ${seq} should exist but does not; the last row is ${rows}`;
}

/** Undefined if everything agrees. */
function wrongText(deep: DeepFound): string | undefined {
  const differing = differsText(deep);
  const { firstWrong } = deep.counters;
  if (differing !== undefined || firstWrong === undefined) return differing;
  const { counter, seq, problem, expected, found: stood } = firstWrong;
  return `WRONG COUNTER ${counter}, at row ${seq}: ${problem}\n  expected  ${expected}\n  found     ${stood}`;
}

function deepLines(deep: DeepFound | undefined): readonly string[] {
  if (deep === undefined) return [];
  const { kept, events, unverifiable } = deep.counters;
  const uncertain = unverifiable === 0 ? "" : `, ${counted(unverifiable, "counter")} uncertain`;
  const folded = `${counted(kept, "counter")}, ${counted(events, "event")} of older rows found again`;
  return [...decidedLines(deep, 8), `  fold    ${folded}${uncertain}`];
}

import { text as textOf } from "node:stream/consumers";
import type { Diagnostic } from "../../../core/src/contract/mod.ts";
import { loadContracts, renderDiagnostics } from "../../../gate/src/server/policy/mod.ts";
import type { Result } from "../../../core/src/wire/mod.ts";
import { contractOf, openHistory, rowOf, type History, type ReceiptSource } from "../history.ts";
import { io, BadInput, readText, type Outcome } from "../../../gate/src/cli/mod.ts";
import type { ReceiptCheck } from "../replay/recorded.ts";
import { readMode } from "../span.ts";
import { momentOf } from "../time.ts";
import { EvaluationTrace } from "../evaluation-trace.ts";
import { erasedText } from "./erased.ts";
import { countersExplained } from "./counted.ts";
import { explainCall, givenValues, recordedValues, unknownCounter } from "./explain-call.ts";
import { toTimedCall, readCheck, receiptExplained } from "./receipt.ts";
import { explainedJson, explainedText, type CallExplanation } from "./report.ts";

export interface ExplainOptions extends Omit<ReceiptSource, "folder"> {
  /** A receipt of a ledger, instead of a call in a file. */
  readonly receipt?: string | undefined;
  readonly dataDir: string;
  readonly contract: string;
  /** JSON: the values of counters, by name. */
  readonly counters?: string | undefined;
  readonly now?: string | undefined;
  readonly key: string;
  readonly mode: string;
  readonly json: boolean;
}

/** `svc-gate explain`: prints how the verdict on a call is reached, with the values of every operand. */
export async function explainCommand(file: string | undefined, options: ExplainOptions): Promise<Outcome> {
  if (file !== undefined && options.receipt !== undefined)
    throw new BadInput("name a call's file or a receipt, not both");
  if (file === undefined && options.receipt === undefined)
    throw new BadInput(
      "name a file with the body of a POST /check, `-` for standard input, or a receipt with --receipt NUMBER",
    );
  const found =
    file === undefined ? await explainReceipt(options.receipt ?? "", options) : await explainFile(file, options);
  if ("diagnostics" in found) return { exitCode: 2, text: renderDiagnostics(found.diagnostics) };
  return {
    exitCode: found.recorded === undefined || found.recorded.agrees ? 0 : 1,
    text: options.json ? JSON.stringify(explainedJson(found)) : explainedText(found),
    forPrograms: true,
  };
}

type CompileFailure = { readonly diagnostics: readonly Diagnostic[] };

async function explainFile(file: string, options: ExplainOptions): Promise<CallExplanation | CompileFailure> {
  const body = await (file === "-" ? textOf(io().stdin) : readText(file));
  const given = readCounters(options.counters);
  const trace = new EvaluationTrace();
  const compiled = await loadContracts(options.contract, options.contract, { probe: trace.probe });
  if (!compiled.ok) return { diagnostics: compiled.problem };
  const call = { body, key: options.key, at: readNow(options.now), mode: readMode(options.mode) };
  const unknown = unknownCounter(given, compiled.value);
  if (unknown !== undefined) throw new BadInput(`--counters: ${unknown}`);
  return explainOrRefuse(explainCall({ policySet: compiled.value, trace }, call, givenValues(given, "0")), file);
}

async function explainReceipt(number: string, options: ExplainOptions): Promise<CallExplanation | CompileFailure> {
  if (!/^[1-9][0-9]{0,14}$/.test(number)) throw new BadInput(`--receipt must be a receipt's number, not "${number}"`);
  await using history = await openHistory({ ...options, folder: options.dataDir });
  const row = await rowOf(history, Number(number));
  if (row === undefined) {
    const source = options.url ?? options.dataDir;
    throw new BadInput(`receipt ${number} does not exist in ${source}, which has ${history.rows ?? 0}`);
  }
  const recorded = readCheck(row);
  if (recorded.ok) return await explainRecorded(recorded.value, history);
  const erased = await erasedText(row, history);
  throw new BadInput(erased === undefined ? recorded.problem : `receipt ${number} cannot be explained: ${erased}`);
}

async function explainRecorded(recorded: ReceiptCheck, history: History): Promise<CallExplanation | CompileFailure> {
  const { leaf } = recorded;
  const trace = new EvaluationTrace();
  const compiled = await contractOf(history, leaf.contract ?? "", { probe: trace.probe });
  if (compiled === undefined)
    throw new BadInput(
      `the text of the contract that receipt ${leaf.seq} names (${leaf.contract ?? "none"}) is missing`,
    );
  if (!compiled.ok) return { diagnostics: compiled.problem };
  const receipt = receiptExplained(recorded);
  const found = explainOrRefuse(
    explainCall({ policySet: compiled.value, trace }, toTimedCall(recorded), recordedValues(receipt), receipt),
    "the receipt",
  );
  const own = recorded.trace.asked?.own;
  return { ...found, counters: await countersExplained(found.evaluation.counters, leaf, history, own) };
}

function explainOrRefuse(found: Result<CallExplanation, string>, source: string): CallExplanation {
  if (found.ok) return found.value;
  throw new BadInput(`${source} is refused with 400: ${found.problem}`);
}

function readCounters(text: string | undefined): ReadonlyMap<string, string> {
  if (text === undefined) return new Map();
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch (error) {
    throw new BadInput(`--counters must be a JSON object such as {"attempts": 5}: ${(error as Error).message}`);
  }
  const entries = Object.entries(found ?? {});
  const wrong = entries.find(([, value]) => !/^(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$/.test(String(value)));
  if (typeof found !== "object" || Array.isArray(found) || wrong !== undefined)
    throw new BadInput(`--counters must be a JSON object of numbers of 0 or more, such as {"attempts": 5}`);
  return new Map(entries.map(([name, value]) => [name, String(value)]));
}

function readNow(text: string | undefined): number {
  if (text === undefined) return Date.now();
  const moment = momentOf(text);
  if (moment === undefined) throw new BadInput(`--now must be a time such as 2026-01-15T10:00:00Z, not "${text}"`);
  return moment;
}

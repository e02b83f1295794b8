import { readFile } from "node:fs/promises";
import { text as textOf } from "node:stream/consumers";
import type { PolicySet, Diagnostic, Lookup } from "../../contract/mod.ts";
import { loadContracts, renderDiagnostics, whyNot } from "../../gate/mod.ts";
import { isMode, modes, visible, type Mode } from "../../wire/mod.ts";
import { contractOf, openHistory, rowOf, type History, type ReceiptSource } from "../history.ts";
import { evaluate, type Call } from "../evaluate.ts";
import { BadInput, type Outcome } from "../outcome.ts";
import { inputNotKept, otherKind, readRecorded, type Recorded } from "../replay/recorded.ts";
import { momentOf } from "../test/time.ts";
import { EvaluationTrace } from "../evaluation-trace.ts";
import { erasedText } from "./erased.ts";
import { countersExplained, type CounterExplained } from "./counted.ts";
import { explain } from "./explanation.ts";
import { explainedJson, explainedText, type Explained } from "./report.ts";

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
      "name a file that holds the body of a POST /check, `-` for standard input, or a receipt with --receipt NUMBER",
    );
  const found =
    file === undefined ? await explainReceipt(options.receipt ?? "", options) : await explainCall(file, options);
  if ("diagnostics" in found) return { exitCode: 2, text: renderDiagnostics(found.diagnostics) };
  return {
    exitCode: found.recorded === undefined || found.recorded.agrees ? 0 : 1,
    text: options.json ? JSON.stringify(explainedJson(found)) : explainedText(found),
    forPrograms: true,
  };
}

type Broken = { readonly diagnostics: readonly Diagnostic[] };

async function explainCall(file: string, options: ExplainOptions): Promise<Explained | Broken> {
  const body = await readBody(file);
  const given = readCounters(options.counters);
  const trace = new EvaluationTrace();
  const compiled = await loadContracts(options.contract, options.contract, { probe: trace.probe });
  if (!compiled.ok) return { diagnostics: compiled.problem };
  const call = { body, key: options.key, at: readNow(options.now), mode: readMode(options.mode) };
  checkCounters(given, compiled.value);
  const valueOf = ({ counter }: Lookup): string => given.get(counter.name) ?? given.get(shortName(counter.name)) ?? "0";
  return explained(compiled.value, call, trace, { valueOf, file });
}

/** `-` is standard input. */
async function readBody(file: string): Promise<string> {
  if (file === "-") return textOf(process.stdin);
  return readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new BadInput(`${file} cannot be read: ${whyNot(error)}`);
  });
}

const notDecided = {
  change: "it records a change of keys or contracts",
  result: "it records the result of a tool",
} as const;

async function explainReceipt(number: string, options: ExplainOptions): Promise<Explained | Broken> {
  if (!/^[1-9][0-9]{0,14}$/.test(number)) throw new BadInput(`--receipt must be a receipt's number, not "${number}"`);
  const history = await openHistory({ ...options, folder: options.dataDir });
  try {
    const row = await rowOf(history, Number(number));
    if (row === undefined) {
      const source = options.url ?? options.dataDir;
      throw new BadInput(`receipt ${number} does not exist in ${source}, which has ${history.rows ?? 0}`);
    }
    const kind = otherKind(row);
    if (kind !== undefined) throw new BadInput(`receipt ${number} is not a check: ${notDecided[kind]}`);
    const recorded = readRecorded(row);
    if (typeof recorded === "string")
      throw new BadInput(`receipt ${number} cannot be explained: ${(await erasedText(row, history)) ?? recorded}`);
    if (recorded.cutInput !== undefined)
      throw new BadInput(`receipt ${number} cannot be explained: ${inputNotKept}; ${cutText(recorded.cutInput)}`);
    return await explainRecorded(recorded, history);
  } finally {
    await history.close();
  }
}

async function explainRecorded(recorded: Recorded, history: History): Promise<Explained | Broken> {
  const { leaf } = recorded;
  const trace = new EvaluationTrace();
  const compiled = await contractOf(history, leaf.contract ?? "", { probe: trace.probe });
  if (compiled === undefined)
    throw new BadInput(
      `the text of the contract that receipt ${leaf.seq} names (${leaf.contract ?? "none"}) is missing`,
    );
  if (!compiled.ok) return { diagnostics: compiled.problem };
  const call = { body: bodyOf(recorded), key: leaf.key ?? "", at: leaf.at, mode: leaf.mode ?? "enforce" };
  const found = explained(compiled.value, call, trace, { valueOf: recordedValues(recorded), file: undefined });
  const own = recorded.trace.asked?.own;
  const counters = await countersExplained(found.evaluation.counters, leaf, history, own);
  const { decision } = found.evaluation;
  const agrees =
    decision.verdict === leaf.verdict &&
    decision.rule === leaf.rule &&
    JSON.stringify(decision.reason) === recorded.reasonText;
  return { ...found, counters, recorded: { seq: leaf.seq, contract: leaf.contract ?? "", agrees } };
}

function cutText({ bytes, head, sha256 }: NonNullable<Recorded["cutInput"]>): string {
  return `it had ${bytes} bytes, its SHA-256 is ${sha256}, and it begins with ${visible(head)}`;
}

/** The body that was evaluated, as far as the receipt has it. */
function bodyOf({ request }: Recorded): string {
  const { toolName, inputText, sessionId, platformText } = request;
  const members = [`"tool_name":${JSON.stringify(toolName)}`, `"tool_input":${inputText}`];
  if (sessionId !== null) members.push(`"session_id":${JSON.stringify(sessionId)}`);
  if (platformText !== null) members.push(`"platform_state":${platformText}`);
  return `{${members.join(",")}}`;
}

/**
 * The recorded values of the counters. A receipt has those that were read, by the value's number if the counter
 * remembers.
 */
function recordedValues({ trace: { counters } }: Recorded): (lookup: Lookup) => string | undefined {
  const asked = new Map<string, number>();
  return ({ counter: { name, remembers } }) => {
    if (!remembers) return counters[name];
    const index = asked.get(name) ?? 0;
    asked.set(name, index + 1);
    return counters[`${name}[${index}]`];
  };
}

interface Known {
  readonly valueOf: (lookup: Lookup) => string | undefined;
  /** The file with the call. */
  readonly file: string | undefined;
}

function explained(policySet: PolicySet, call: Call, trace: EvaluationTrace, { valueOf, file }: Known): Explained {
  const evaluation = evaluate(policySet, call, valueOf);
  if (!evaluation.ok) throw new BadInput(`${file ?? "the receipt"} is refused with 400: ${evaluation.problem}`);
  const counters = evaluation.value.counters.map((counter): CounterExplained => ({ ...counter, counted: undefined }));
  return {
    call,
    evaluation: evaluation.value,
    explanation: explain(evaluation.value, trace),
    counters,
    recorded: undefined,
  };
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

function checkCounters(given: ReadonlyMap<string, string>, { counters }: PolicySet): void {
  const names = counters.flatMap(({ name }) => [name, shortName(name)]);
  const unknown = [...given.keys()].find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new BadInput(
      `--counters: the counter ${unknown} does not exist; the counters are ${counters.map(({ name }) => name).join(", ") || "none"}`,
    );
}

function shortName(name: string): string {
  return name.slice(name.indexOf(".") + 1);
}

function readNow(text: string | undefined): number {
  if (text === undefined) return Date.now();
  const moment = momentOf(text);
  if (moment === undefined) throw new BadInput(`--now must be a time such as 2026-01-15T10:00:00Z, not "${text}"`);
  return moment;
}

function readMode(text: string): Mode {
  if (isMode(text)) return text;
  throw new BadInput(`--mode must be one of ${modes.join(", ")}, not "${text}"`);
}

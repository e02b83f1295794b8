import { exactText, isExact } from "../../../core/src/contract/ir.ts";
import { addDecimals, type Json, type JsonObject, type Verdict } from "../../../core/src/wire/mod.ts";
import type { Again } from "./decide-again.ts";
import type { ReceiptCheck } from "./recorded.ts";

/** Receipts, and the sum of a field of them if one was requested. */
export interface ReceiptTotals {
  receipts: number;
  /** A decimal. */
  sum: string;
}

export interface VerdictChange extends ReceiptTotals {
  readonly was: Verdict;
  readonly wouldBe: Verdict;
}

export interface ChangeExample {
  readonly seq: number;
  readonly tool: string;
  readonly session: string | null;
  readonly was: { readonly verdict: string; readonly rule: string; readonly reason: string };
  readonly wouldBe: { readonly verdict: string; readonly rule: string; readonly reason: string };
}

/** Groups beyond this number are counted together: bounds memory for any history. */
const groupsMax = 10_000;
export const otherGroups = "(others)";

/** The calls that a contract would have decided differently. Unordered: the code that prints them sorts. */
export class VerdictChanges {
  readonly #field: readonly string[] | undefined;
  readonly #examplesMax: number;
  readonly changes: Map<string, VerdictChange> = new Map();
  readonly byRule: Map<string, ReceiptTotals> = new Map();
  readonly byTool: Map<string, ReceiptTotals> = new Map();
  readonly bySession: Map<string, ReceiptTotals> = new Map();
  readonly examples: Map<string, ChangeExample[]> = new Map();
  decided = 0;
  /** Receipts, changed or not, that have the field. */
  withField = 0;

  /** @param field a path below `input` or `platform` whose numbers are added up */
  constructor({ field, examples }: { readonly field: readonly string[] | undefined; readonly examples: number }) {
    this.#field = field;
    this.#examplesMax = examples;
  }

  add(recorded: ReceiptCheck, again: Again): void {
    this.decided += 1;
    const { leaf, request, tool } = recorded;
    const was = leaf.verdict;
    const wouldBe = again.decision.verdict;
    const found = this.#field === undefined ? undefined : amountOf(request, this.#field);
    if (found !== undefined) this.withField += 1;
    if (was === null || was === wouldBe) return;
    const amount = found ?? "0";
    const kind = `${was} ${wouldBe}`;
    const change = this.changes.getOrInsertComputed(kind, () => ({ was, wouldBe, receipts: 0, sum: "0" }));
    count(change, amount);
    group(this.byRule, `${leaf.rule ?? ""} -> ${again.decision.rule}`, amount);
    group(this.byTool, tool, amount);
    group(this.bySession, request.sessionId ?? "(no session)", amount);
    const examples = this.examples.getOrInsertComputed(kind, () => []);
    if (examples.length < this.#examplesMax) examples.push(exampleOf(recorded, again));
  }

  get changed(): number {
    return [...this.changes.values()].reduce((sum, { receipts }) => sum + receipts, 0);
  }
}

function count(share: ReceiptTotals, amount: string): void {
  share.receipts += 1;
  if (amount !== "0") share.sum = addDecimals(share.sum, amount);
}

function group(groups: Map<string, ReceiptTotals>, name: string, amount: string): void {
  const shown = groups.has(name) || groups.size < groupsMax ? name : otherGroups;
  const share = groups.getOrInsertComputed(shown, () => ({ receipts: 0, sum: "0" }));
  count(share, amount);
}

/** The number at the path; undefined if there is none. */
function amountOf(request: ReceiptCheck["request"], [root, ...steps]: readonly string[]): string | undefined {
  let value: Json | undefined = root === "input" ? request.toolInput : request.platformState;
  for (const step of steps) value = value instanceof Map ? (value as JsonObject).get(step) : undefined;
  return value !== undefined && isExact(value) ? exactText(value) : undefined;
}

function exampleOf({ leaf, request, tool, reason }: ReceiptCheck, { decision }: Again): ChangeExample {
  return {
    seq: leaf.seq,
    tool,
    session: request.sessionId,
    was: { verdict: leaf.verdict ?? "", rule: leaf.rule ?? "", reason },
    wouldBe: { verdict: decision.verdict, rule: decision.rule, reason: decision.reason },
  };
}

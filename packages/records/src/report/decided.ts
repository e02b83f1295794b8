import { readAct, listChangedRows, type ApprovalAct } from "../../../core/src/approvals/mod.ts";
import { endedBy, wholeText, type Leaf } from "../../../core/src/record/entry/mod.ts";
import { visible, type DecidedRule } from "../../../core/src/wire/mod.ts";
import type { RecordedRow } from "../history.ts";
import { columns } from "../replay/print.ts";
import { readLeaf, type ReceiptCheck } from "../replay/recorded.ts";
import { otherGroups } from "../replay/verdict-changes.ts";
import { Lines } from "./lines.ts";

const counts = [
  "opened",
  "attached",
  "capped",
  "approved",
  "denied",
  "expired",
  "unvoted",
  "used",
  "cancelled",
  "replaced",
  "fast",
  "young",
  "self",
] as const;
type Count = (typeof counts)[number];

interface ApprovalCounts extends Record<Count, number> {
  /** Milliseconds from the asking to the decision. */
  readonly decidedMs: number[];
}

/** An approval that is open. */
interface ReportedApproval {
  readonly rule: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  votes: number;
  isApproved: boolean;
}

/** Approvals that earlier rows opened, which the report did not read or cannot read. */
const earlier = "(opened earlier)";

const dayMs = 86_400_000;
/** Nobody can read a call in less time. */
const readingMs = 3000;
/** With fewer decisions, a rule that is always approved or always denied can be chance. */
const decisionsMin = 10;

/** After these acts a key's vote is also its maker's voice for a day, or its owner's groups are new. */
const keyActs: ReadonlySet<string> = new Set(["keys.create", "keys.rotate", "keys.update"]);

/**
 * Counts by rule what became of approvals, from the rows of checks and of what people and the gate did.
 *
 * It also tells each count to a function, with the time of the row in milliseconds since the epoch.
 */
export class DecidedApprovals {
  readonly #tell: (count: Count, at: number) => void;
  readonly #rules = new Lines<ApprovalCounts>(makeApprovalCounts, ({ opened }) => opened);
  readonly #open = new Map<number, ReportedApproval>();
  /** When each of the ledger's own keys was made, rotated or changed last, in milliseconds since the epoch. */
  readonly #keys = new Map<string, number>();

  constructor(tell: (count: Count, at: number) => void = () => undefined) {
    this.#tell = tell;
  }

  /** Adds a check. */
  add({ leaf, trace }: ReceiptCheck): void {
    const how = trace.asked?.how;
    if (how !== "opened" && how !== "attached" && how !== "capped") return;
    const rule = leaf.rule ?? "";
    this.#count(rule, how, leaf.at);
    if (how === "opened") this.#open.set(leaf.seq, { rule, at: leaf.at, votes: 0, isApproved: false });
  }

  /** Adds an administrative event. The row that resumes after a restore cancels every open approval. */
  addChange(row: RecordedRow): void {
    const leaf = readLeaf(row);
    if (typeof leaf === "string") return;
    const input = wholeText(row.evidence, "input") ?? "null";
    if (keyActs.has(leaf.act ?? "")) this.#addKey(input, leaf.at);
    const [act] = readUntrustedList(() => [readAct(leaf.act ?? "", input)]);
    if (act !== undefined) for (const seq of readUntrustedList(() => listChangedRows(act))) this.#apply(act, seq, leaf);
    else if (this.#open.size > 0)
      for (const [from, to] of readUntrustedList(() => endedBy(leaf, row.evidence)))
        for (const [seq, { rule }] of this.#open)
          if (from <= seq && seq <= to) this.#end(seq, rule, "cancelled", leaf.at);
  }

  /** The root's ledger also has the rows of the tenants' keys, which may have the same names. */
  #addKey(input: string, at: number): void {
    const [key] = readUntrustedList(() => [
      JSON.parse(input) as { readonly name: string; readonly tenant: string | null } | null,
    ]);
    if (key?.tenant === null) this.#keys.set(key.name, at);
  }

  #apply(act: ApprovalAct, row: number, leaf: Leaf): void {
    const { at } = leaf;
    const open = this.#open.get(row);
    const rule = open?.rule ?? earlier;
    // The row that asked cannot be read any more, so nothing says that it was counted.
    if (open === undefined && act.act === "approval.cancel" && act.why === "erased") return;
    if (act.act === "approval.approve" || act.act === "approval.deny") this.#addVote(rule, act, open, leaf);
    if (act.act === "approval.approve") {
      if (open !== undefined) open.votes += 1;
      if (act.use_by === null || open?.isApproved === true) return;
      if (open !== undefined) open.isApproved = true;
      this.#decide(rule, "approved", open, at);
    } else if (act.act === "approval.deny") {
      if (open?.isApproved === true) this.#count(rule, "denied", at);
      else this.#decide(rule, "denied", open, at);
      this.#open.delete(row);
    } else if (act.act !== "stop.set" || act.ends.includes(row)) this.#end(row, rule, endings[act.act], at);
    else if (open !== undefined) Object.assign(open, { isApproved: false, votes: 0 });
  }

  #addVote(
    rule: string,
    act: Extract<ApprovalAct, { act: "approval.approve" | "approval.deny" }>,
    open: ReportedApproval | undefined,
    { at, key }: Leaf,
  ): void {
    const line = this.#rules.of(rule);
    if (act.self === true) line.self += 1;
    if (open !== undefined && at - open.at < readingMs) line.fast += 1;
    const made = this.#keys.get(key ?? "");
    if (act.act === "approval.approve" && made !== undefined && at < made + dayMs) line.young += 1;
  }

  #decide(rule: string, count: "approved" | "denied", open: ReportedApproval | undefined, at: number): void {
    this.#count(rule, count, at);
    if (open !== undefined) this.#rules.of(rule).decidedMs.push(at - open.at);
  }

  #end(row: number, rule: string, count: "cancelled" | "expired" | "replaced" | "used", at: number): void {
    this.#count(rule, count, at);
    if (count === "expired" && this.#open.get(row)?.votes === 0) this.#rules.of(rule).unvoted += 1;
    this.#open.delete(row);
  }

  #count(rule: string, count: Count, at: number): void {
    this.#rules.of(rule)[count] += 1;
    this.#tell(count, at);
  }

  get text(): readonly string[] {
    const { json } = this;
    if (json.length === 0) return [];
    const rows = json.map((line) => [
      visible(line.rule),
      ...counts.map((count) => String(line[count] ?? "-")),
      line.expired_share === null ? "-" : `${Math.round(100 * line.expired_share)}%`,
      ...[line.median_ms, line.p90_ms].map(lengthText),
    ]);
    return [
      "",
      "approvals that people were asked for",
      ...columns([["rule", ...counts, "expired %", "median", "p90"], ...rows]),
      "  unvoted: expired without any vote; expired %: of those that ended; median and p90: the time until the decision",
      "  fast: votes and denials in less than 3 seconds; young: votes with keys made or changed less than a day before",
      "  self: decisions of people on their own calls: each no, and each yes where the mandate permits it",
      ...json.flatMap(alwaysText),
    ];
  }

  get json(): readonly DecidedLine[] {
    return this.#rules.lines.map(([rule, line]) => ({
      rule,
      ...this.#figuresOf(line),
      always: rule === earlier || rule === otherGroups ? null : alwaysOf(line),
    }));
  }

  /** The same figures for all rules together. */
  get allJson(): DecidedFigures {
    const all = makeApprovalCounts();
    for (const [, line] of this.#rules.lines) {
      for (const count of counts) all[count] += line[count];
      for (const ms of line.decidedMs) all.decidedMs.push(ms);
    }
    return this.#figuresOf(all);
  }

  #figuresOf(line: ApprovalCounts): DecidedFigures {
    const { decidedMs: _times, ...of } = line;
    return {
      ...of,
      young: this.#keys.size === 0 ? null : of.young,
      expired_share: shareOf(of.expired, of.denied + of.expired + of.used + of.cancelled + of.replaced),
      approved_share: shareOf(of.approved, of.approved + of.denied),
      ...timesOf(line),
    };
  }
}

/** Figures of the report for programs. */
interface DecidedFigures
  extends Record<Exclude<Count, "young">, number>, Pick<DecidedRule, "expired_share" | "median_ms" | "p90_ms"> {
  /** Null if the report read no row of a key. */
  readonly young: number | null;
  /** Of the decisions, from 0 to 1. Null if there was none. */
  readonly approved_share: number | null;
}

type DecidedLine = DecidedFigures & DecidedRule;

function shareOf(count: number, all: number): number | null {
  return all === 0 ? null : count / all;
}

function alwaysOf({ approved, denied }: Readonly<Record<"approved" | "denied", number>>): DecidedLine["always"] {
  if (approved + denied < decisionsMin || (approved > 0 && denied > 0)) return null;
  return denied === 0 ? "approved" : "denied";
}

function alwaysText({ rule, always, approved, denied }: DecidedLine): readonly string[] {
  const name = visible(rule);
  if (always === "approved")
    return [`  rule ${name}: all ${approved} decisions were approvals. Does a person need to decide these calls?`];
  if (always === "denied")
    return [`  rule ${name}: all ${denied} decisions were denials. Should the contract block these calls?`];
  return [];
}

const endings = {
  "stop.set": "cancelled",
  "approval.cancel": "cancelled",
  "approval.expire": "expired",
  "approval.supersede": "replaced",
  "approval.use": "used",
} as const;

/** No source of rows is trusted: the input of an event may have any shape. */
export function readUntrustedList<Item>(read: () => readonly Item[]): readonly Item[] {
  try {
    const found: unknown = read();
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}

function makeApprovalCounts(): ApprovalCounts {
  return { ...(Object.fromEntries(counts.map((count) => [count, 0])) as Record<Count, number>), decidedMs: [] };
}

/** The nearest ranks: each is a time that occurred. Null if nobody decided. */
function timesOf({ decidedMs }: ApprovalCounts): Pick<DecidedRule, "median_ms" | "p90_ms"> {
  const sorted = decidedMs.toSorted((one, other) => one - other);
  const at = (share: number): number | null => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null;
  return { median_ms: at(0.5), p90_ms: at(0.9) };
}

const units = [
  ["d", dayMs],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
] as const;

/** A length of time in its largest unit, such as `90s`, `12m` or `3h`. */
function lengthText(ms: number | null): string {
  if (ms === null) return "-";
  const [unit, length] = units.find(([, each]) => ms >= 2 * each) ?? ["s", 1000];
  return `${Math.round(ms / length)}${unit}`;
}

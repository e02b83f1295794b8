import { readAct, rowsOf, type ApprovalAct } from "../../approvals/mod.ts";
import { endedBy, wholeText } from "../../ledger/entry/mod.ts";
import { visible } from "../../wire/mod.ts";
import type { RecordedRow } from "../history.ts";
import { columns } from "../replay/print.ts";
import { readLeaf, type Recorded } from "../replay/recorded.ts";
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
] as const;
type Count = (typeof counts)[number];

interface Line extends Record<Count, number> {
  /** Milliseconds from the asking to the decision. */
  readonly decidedMs: number[];
}

/** An approval that is open. */
interface Open {
  readonly rule: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  votes: number;
  isApproved: boolean;
}

/** Approvals that earlier rows opened, which the report did not read or cannot read. */
const earlier = "(opened earlier)";

/** Counts by rule what became of approvals, from the rows of checks and of what persons and the gate did. */
export class DecidedApprovals {
  readonly #rules = new Lines<Line>(newLine, ({ opened }) => opened);
  readonly #open = new Map<number, Open>();

  /** Adds a check. */
  add({ leaf, trace }: Recorded): void {
    const how = trace.asked?.how;
    if (how !== "opened" && how !== "attached" && how !== "capped") return;
    const rule = leaf.rule ?? "";
    this.#rules.of(rule)[how] += 1;
    if (how === "opened") this.#open.set(leaf.seq, { rule, at: leaf.at, votes: 0, isApproved: false });
  }

  /** Adds an administrative event. The row that resumes after a restore cancels every open approval. */
  addChange(row: RecordedRow): void {
    const leaf = readLeaf(row);
    if (typeof leaf === "string") return;
    const { act: name, at } = leaf;
    const [act] = listOf(() => [readAct(name ?? "", wholeText(row.evidence, "input") ?? "null")]);
    if (act !== undefined) for (const asked of listOf(() => rowsOf(act))) this.#apply(act, asked, at);
    else if (this.#open.size > 0)
      for (const [from, to] of listOf(() => endedBy(leaf, row.evidence))) this.#cancel(from, to);
  }

  #cancel(from: number, to: number): void {
    for (const [row, { rule }] of this.#open) if (from <= row && row <= to) this.#end(row, rule, "cancelled");
  }

  #apply(act: ApprovalAct, row: number, at: number): void {
    const open = this.#open.get(row);
    const rule = open?.rule ?? earlier;
    // The row that asked cannot be read any more, so nothing says that it was counted.
    if (open === undefined && act.act === "approval.cancel" && act.why === "erased") return;
    if (act.act === "approval.approve") {
      if (open !== undefined) open.votes += 1;
      if (act.use_by === null || open?.isApproved === true) return;
      if (open !== undefined) open.isApproved = true;
      this.#decide(rule, "approved", open, at);
    } else if (act.act === "approval.deny") {
      if (open?.isApproved === true) this.#rules.of(rule).denied += 1;
      else this.#decide(rule, "denied", open, at);
      this.#open.delete(row);
    } else if (act.act !== "stop.set" || act.ends.includes(row)) this.#end(row, rule, endings[act.act]);
    else if (open !== undefined) Object.assign(open, { isApproved: false, votes: 0 });
  }

  #decide(rule: string, count: "approved" | "denied", open: Open | undefined, at: number): void {
    const line = this.#rules.of(rule);
    line[count] += 1;
    if (open !== undefined) line.decidedMs.push(at - open.at);
  }

  #end(row: number, rule: string, count: "cancelled" | "expired" | "replaced" | "used"): void {
    const line = this.#rules.of(rule);
    line[count] += 1;
    if (count === "expired" && this.#open.get(row)?.votes === 0) line.unvoted += 1;
    this.#open.delete(row);
  }

  get text(): readonly string[] {
    const { lines } = this.#rules;
    if (lines.length === 0) return [];
    const rows = lines.map(([rule, line]) => {
      const { median, p90 } = timesOf(line);
      return [visible(rule), ...counts.map((count) => String(line[count])), ...[median, p90].map(lengthText)];
    });
    return [
      "",
      "approvals that persons were asked for",
      ...columns([["rule", ...counts, "median", "p90"], ...rows]),
      "  unvoted: expired without any vote; median and p90: the time until the decision",
    ];
  }

  get json(): object {
    return this.#rules.lines.map(([rule, line]) => {
      const { median, p90 } = timesOf(line);
      return {
        rule,
        ...Object.fromEntries(counts.map((count) => [count, line[count]])),
        median_ms: median,
        p90_ms: p90,
      };
    });
  }
}

const endings = {
  "stop.set": "cancelled",
  "approval.cancel": "cancelled",
  "approval.expire": "expired",
  "approval.supersede": "replaced",
  "approval.use": "used",
} as const;

/** No source of rows is trusted: the input of an event may have any shape. */
function listOf<Item>(read: () => readonly Item[]): readonly Item[] {
  try {
    const found: unknown = read();
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}

function newLine(): Line {
  return { ...(Object.fromEntries(counts.map((count) => [count, 0])) as Record<Count, number>), decidedMs: [] };
}

/** The nearest ranks: each is a time that occurred. Null if nobody decided. */
function timesOf({ decidedMs }: Line): { readonly median: number | null; readonly p90: number | null } {
  const sorted = decidedMs.toSorted((one, other) => one - other);
  const at = (share: number): number | null => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null;
  return { median: at(0.5), p90: at(0.9) };
}

const units = [
  ["d", 86_400_000],
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

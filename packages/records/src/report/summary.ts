import { parseLeaf, wholeText } from "../../../core/src/record/entry/mod.ts";
import { isStricter, visible, type ReportJson } from "../../../core/src/wire/mod.ts";
import { eachRow, type ContractSource, type History, type RecordedRow } from "../history.ts";
import { Contracts } from "../replay/decide-again.ts";
import { columns, plural, sortGroups } from "../replay/print.ts";
import { erasedPart, otherKind, readLeaf, readReceiptCheck, resetIn, type ReceiptCheck } from "../replay/recorded.ts";
import { otherGroups, type ReceiptTotals } from "../replay/verdict-changes.ts";
import type { LastRows } from "../span.ts";
import { DecidedApprovals } from "./decided.ts";
import { Forecast } from "./forecast.ts";
import { linesMax } from "./lines.ts";
import { ReportedOutcomes } from "./outcomes.ts";
import { momentText } from "./moment.ts";
import { OverTime } from "./over-time.ts";

/** One line of the report: receipts with something in common, and the first of them. */
interface ReportLine extends ReceiptTotals {
  readonly cells: readonly string[];
  readonly examples: ReceiptExample[];
}

/** The most sessions of a report: for programs, and in a text. */
const sessionsMax = 50;
const sessionsShown = 10;

/** A person let these calls through, not the mode. */
const byPerson: ReadonlySet<string | undefined> = new Set(["used", "grant"]);

/** A row that reset counters. */
interface ResetRow {
  readonly seq: number;
  readonly counters: readonly string[];
  readonly reason: string;
}

interface ReceiptExample {
  readonly seq: number;
  readonly tool: string;
  readonly session: string | null;
  readonly reason: string;
}

/**
 * Reads rows and counts what they say.
 *
 * @param examplesMax receipts to name for each rule
 * @param passed called with each row; if it returns a promise, that is awaited before the next row
 */
export async function summarize(
  history: ContractSource & Pick<History, "scan">,
  { first, end, leftOut }: LastRows,
  examplesMax: number,
  passed: (seq: number) => Promise<void> | undefined,
): Promise<Summary> {
  const summary = new Summary(examplesMax, leftOut, new Contracts(history));
  for await (const row of eachRow(history, first, end)) {
    const pause = passed(row.seq);
    if (pause !== undefined) await pause;
    await summary.take(row);
  }
  return summary;
}

class Summary {
  readonly #examplesMax: number;
  readonly #leftOut: number;
  readonly #verdicts = new Map<string, ReportLine>();
  readonly #rules = new Map<string, ReportLine>();
  readonly #tools = new Map<string, ReportLine>();
  readonly #sessions = new Map<string, ReportLine>();
  readonly #observing = new Map<string, ReportLine>();
  #receipts = 0;
  #first = 0;
  #last = 0;
  #letThrough = 0;
  #sentToPerson = 0;
  #erased = 0;
  /** Receipts that no gate writes in this form. */
  #unreadable = 0;
  #results = 0;
  /** How often each act is in the rows. */
  readonly #acts = new Map<string, number>();
  /** Rows that reset counters: each has weakened a limit. */
  readonly #resets: ResetRow[] = [];
  readonly #overTime: OverTime;
  readonly #decided: DecidedApprovals;
  readonly #outcomes = new ReportedOutcomes();
  readonly #forecast: Forecast;

  constructor(examplesMax: number, leftOut: number, contracts: Contracts) {
    this.#examplesMax = examplesMax;
    this.#leftOut = leftOut;
    this.#forecast = new Forecast(contracts);
    this.#overTime = new OverTime(contracts);
    this.#decided = new DecidedApprovals((count, at) => this.#overTime.count(count, at));
  }

  async take(row: RecordedRow): Promise<void> {
    const recorded = otherKind(row) ?? readReceiptCheck(row);
    if (typeof recorded !== "string") {
      this.#add(recorded);
      await this.#forecast.add(recorded);
    } else if (recorded === "change") this.#addChange(row);
    else if (recorded === "result") this.#results += 1;
    else if (recorded === erasedPart) this.#erased += 1;
    else this.#unreadable += 1;
    const leaf = typeof recorded === "string" ? readLeaf(row) : recorded.leaf;
    if (typeof leaf !== "string") await this.#overTime.add(leaf, row);
  }

  #add(recorded: ReceiptCheck): void {
    const { leaf, trace } = recorded;
    const verdict = leaf.verdict ?? "BLOCK";
    const rule = leaf.rule ?? "";
    if (this.#receipts === 0) this.#first = leaf.at;
    this.#receipts += 1;
    this.#last = leaf.at;
    this.#decided.add(recorded);
    this.#outcomes.add(recorded);
    if (leaf.answered !== verdict && !byPerson.has(trace.asked?.how)) {
      if (leaf.answered === "ALLOW") this.#letThrough += 1;
      else if (isStricter(verdict, leaf.answered ?? verdict)) this.#sentToPerson += 1;
    }
    const reason = (): string => recorded.reason.replace(/^Svc: /, "");
    this.#count(this.#verdicts, [verdict, leaf.mode ?? "", leaf.answered ?? ""], recorded, undefined);
    if (verdict !== "ALLOW") {
      this.#count(this.#rules, [rule, verdict], recorded, reason);
      this.#count(this.#tools, [recorded.tool, verdict], recorded, undefined);
      // No session has an empty name.
      const session = recorded.request.sessionId ?? "";
      this.#count(this.#sessions, [session, leaf.key ?? "", verdict], recorded, undefined);
    }
    for (const seen of trace.observed) {
      const effect = isStricter(seen.verdict, verdict) ? `${verdict} becomes ${seen.verdict}` : `${verdict} stays`;
      this.#count(this.#observing, [seen.rule, effect], recorded, () => seen.reason);
    }
  }

  #addChange(row: RecordedRow): void {
    const act = parseLeaf(row.leaf)?.act ?? "another";
    this.#acts.set(act, (this.#acts.get(act) ?? 0) + 1);
    this.#decided.addChange(row);
    this.#outcomes.addChange(row);
    const counters = [...resetIn(row).values()];
    if (counters.length === 0) return;
    const reason = String(JSON.parse(wholeText(row.evidence, "reason") ?? '""')).replace(/^Svc: /, "");
    this.#resets.push({ seq: row.seq, counters, reason });
  }

  #count(
    lines: Map<string, ReportLine>,
    cells: readonly string[],
    recorded: ReceiptCheck,
    reason: (() => string) | undefined,
  ): void {
    const own = cells.join(" ");
    const key = lines.has(own) || lines.size < linesMax ? own : otherGroups;
    const named = key === own ? cells : [otherGroups, ...cells.slice(1).map(() => "")];
    const line = lines.getOrInsertComputed(key, () => ({ cells: named, receipts: 0, sum: "0", examples: [] }));
    line.receipts += 1;
    if (reason === undefined || line.examples.length >= this.#examplesMax) return;
    const { leaf, request, tool } = recorded;
    line.examples.push({ seq: leaf.seq, tool, session: request.sessionId, reason: reason() });
  }

  get text(): string {
    if (this.#receipts === 0) return "no receipts match --from, --since, --last and --until";
    return [
      `${plural(this.#receipts)}, ${momentText(this.#first)} to ${momentText(this.#last)}`,
      ...softenedText(this.#letThrough, "let through because the gate only observes", "stopped"),
      ...softenedText(this.#sentToPerson, "sent to a person because of assist mode", "blocked"),
      ...(this.#erased === 0 ? [] : [`${this.#erased} more have erased parts, and are not counted`]),
      ...(this.#unreadable === 0
        ? []
        : [`${this.#unreadable} more are malformed, and are not counted; run \`svc-gate verify\``]),
      ...this.#resets.map(
        ({ seq, counters, reason }) =>
          `row ${seq} reset ${visible(counters.join(", "))}: calls before it no longer count (${visible(reason)})`,
      ),
      ...(this.#acts.size === 0 ? [] : [`acts beside the checks: ${this.#actsText}`]),
      ...(this.#results === 0 ? [] : [`${this.#results} more record the result of a tool, and contain no decision`]),
      ...table("verdicts", ["verdict", "mode", "answered", "receipts"], this.#verdicts),
      ...table("refused or parked, by rule", ["rule", "verdict", "receipts"], this.#rules),
      ...table("refused or parked, by tool", ["tool", "verdict", "receipts"], this.#tools),
      ...table(
        "refused or parked, by session",
        ["session", "key", "verdict", "receipts"],
        this.#sessions,
        sessionsShown,
      ),
      ...table("observing rules: the result if they decided", ["rule", "effect", "receipts"], this.#observing),
      ...this.#decided.text,
      ...this.#outcomes.text,
      ...this.#forecast.text,
    ].join("\n");
  }

  get #actsText(): string {
    const counts = [...this.#acts].toSorted(([one], [other]) => (one < other ? -1 : 1));
    return counts.map(([act, count]) => `${count} ${visible(act)}`).join(", ");
  }

  get json(): ReportJson & Readonly<Record<string, unknown>> {
    const lines = <Name extends string>(of: Map<string, ReportLine>, ...names: readonly Name[]) =>
      sortGroups(of).map(([, { cells, receipts, examples }]) => ({
        ...(Object.fromEntries(names.map((name, at) => [name, cells[at]])) as Record<Name, string>),
        receipts,
        ...(examples.length === 0 ? {} : { examples }),
      }));
    const sessions = lines(this.#sessions, "session", "key", "verdict").slice(0, sessionsMax);
    return {
      receipts: this.#receipts,
      from: this.#first,
      to: this.#last,
      left_out: this.#leftOut,
      softened: this.#letThrough + this.#sentToPerson,
      erased: this.#erased,
      unreadable: this.#unreadable,
      changes: this.#acts.values().reduce((sum, count) => sum + count, 0),
      resets: this.#resets,
      results: this.#results,
      verdicts: lines(this.#verdicts, "verdict", "mode", "answered"),
      by_rule: lines(this.#rules, "rule", "verdict"),
      by_tool: lines(this.#tools, "tool", "verdict"),
      by_session: sessions.map(({ session, ...line }) => ({ session: session || null, ...line })),
      observing: lines(this.#observing, "rule", "effect"),
      approvals: this.#decided.json,
      approvals_all: this.#decided.allJson,
      outcomes: this.#outcomes.json,
      forecast: this.#forecast.json,
      over_time: this.#overTime.json,
    };
  }
}

/** How many calls the mode answered more leniently than the verdict, and their result in enforce mode. */
function softenedText(calls: number, what: string, enforced: string): readonly string[] {
  if (calls === 0) return [];
  const [were, they] = calls === 1 ? ["call was", "it"] : ["calls were", "they"];
  return [`${calls} ${were} ${what}; in enforce mode ${they} would have been ${enforced}`];
}

function table(
  title: string,
  head: readonly string[],
  lines: ReadonlyMap<string, ReportLine>,
  most = Infinity,
): readonly string[] {
  if (lines.size === 0) return [];
  const all = sortGroups(lines)
    .slice(0, most)
    .map(([, line]) => line);
  const rows = columns([
    head,
    ...all.map(({ cells, receipts }) => [...cells.map((cell) => visible(cell) || "-"), String(receipts)]),
  ]);
  const [headRow = "", ...body] = rows;
  const rest = lines.size > most ? [`  and ${lines.size - most} more`] : [];
  return [
    "",
    title,
    headRow,
    ...body.flatMap((row, at) => [row, ...(all[at]?.examples ?? []).map(exampleText)]),
    ...rest,
  ];
}

function exampleText({ seq, tool, session, reason }: ReceiptExample): string {
  return `      receipt ${seq}, ${visible(tool)}${session === null ? "" : `, session ${visible(session)}`}: ${visible(reason)}`;
}

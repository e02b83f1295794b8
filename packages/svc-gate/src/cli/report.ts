import { wholeText } from "../ledger/entry/mod.ts";
import { isStricter, visible } from "../wire/mod.ts";
import { DecidedApprovals } from "./report/decided.ts";
import { Forecast } from "./report/forecast.ts";
import { linesMax } from "./report/lines.ts";
import { ReportedOutcomes } from "./report/outcomes.ts";
import { momentText } from "./report/moment.ts";
import { openHistory, type ReceiptSource, type RecordedRow } from "./history.ts";
import type { Outcome } from "./outcome.ts";
import { showProgress } from "./progress.ts";
import { columns, plural, sorted } from "./replay/print.ts";
import { erasedPart, otherKind, readRecorded, resetIn, type Recorded } from "./replay/recorded.ts";
import { otherGroups, type Share } from "./replay/verdict-changes.ts";
import { readSpan, readWhole, rowsWithin, type SpanOptions } from "./span.ts";

export interface ReportOptions extends Omit<ReceiptSource, "folder">, SpanOptions {
  readonly from: string;
  readonly examples: string;
  readonly json: boolean;
}

/** One line of the report: receipts with something in common, and the first of them. */
interface Line extends Share {
  readonly cells: readonly string[];
  readonly examples: Example[];
}

/** A row that reset counters. */
interface Reset {
  readonly seq: number;
  readonly counters: readonly string[];
  readonly reason: string;
}

interface Example {
  readonly seq: number;
  readonly tool: string;
  readonly session: string | null;
  readonly reason: string;
}

/**
 * `svc-gate report`: prints the calls that enforce mode would have refused, by rule, with examples, and the approvals
 * that persons decided or would have had to decide, and the outcomes that were reported.
 */
export async function reportCommand(folder: string, options: ReportOptions): Promise<Outcome> {
  const from = readWhole("--from", options.from, 1);
  const examples = readWhole("--examples", options.examples, 0);
  const asked = readSpan(options, Date.now());
  const history = await openHistory({ ...options, folder });
  const progress = showProgress(history.rows);
  const forecast = new Forecast(history);
  const summary = new Summary(examples, forecast);
  try {
    const { first, end } = await rowsWithin(history, asked);
    walk: for await (const slice of history.scan(Math.max(from, first))) {
      for (const row of slice) {
        if (row.seq >= end) break walk;
        progress.at(row.seq);
        const recorded = otherKind(row) ?? readRecorded(row);
        if (recorded === "change") summary.addChange(row);
        else if (recorded === "result") summary.results += 1;
        else if (recorded === erasedPart) summary.erased += 1;
        else if (typeof recorded === "string") summary.unreadable += 1;
        else {
          summary.add(recorded);
          await forecast.add(recorded);
        }
      }
    }
  } finally {
    progress.end();
    await history.close();
  }
  return { exitCode: 0, text: options.json ? JSON.stringify(summary.json) : summary.text, forPrograms: options.json };
}

class Summary {
  readonly #examplesMax: number;
  readonly #verdicts = new Map<string, Line>();
  readonly #rules = new Map<string, Line>();
  readonly #tools = new Map<string, Line>();
  readonly #observing = new Map<string, Line>();
  #receipts = 0;
  #first = 0;
  #last = 0;
  #letThrough = 0;
  #sentToPerson = 0;
  erased = 0;
  /** Receipts that no gate writes in this form. */
  unreadable = 0;
  results = 0;
  #changes = 0;
  /** Rows that reset counters: each has weakened a limit. */
  readonly #resets: Reset[] = [];
  readonly #decided = new DecidedApprovals();
  readonly #outcomes = new ReportedOutcomes();
  readonly #forecast: Forecast;

  constructor(examplesMax: number, forecast: Forecast) {
    this.#examplesMax = examplesMax;
    this.#forecast = forecast;
  }

  add(recorded: Recorded): void {
    const { leaf, trace } = recorded;
    const verdict = leaf.verdict ?? "BLOCK";
    const rule = leaf.rule ?? "";
    if (this.#receipts === 0) this.#first = leaf.at;
    this.#receipts += 1;
    this.#last = leaf.at;
    this.#decided.add(recorded);
    this.#outcomes.add(recorded);
    if (leaf.answered !== verdict && leaf.answered === "ALLOW") this.#letThrough += 1;
    else if (leaf.answered !== verdict) this.#sentToPerson += 1;
    const reason = (): string => recorded.reason.replace(/^Svc: /, "");
    this.#count(this.#verdicts, [verdict, leaf.mode ?? "", leaf.answered ?? ""], recorded, undefined);
    if (verdict !== "ALLOW") {
      this.#count(this.#rules, [rule, verdict], recorded, reason);
      this.#count(this.#tools, [recorded.request.toolName, verdict], recorded, undefined);
    }
    for (const seen of trace.observed) {
      const effect = isStricter(seen.verdict, verdict) ? `${verdict} becomes ${seen.verdict}` : `${verdict} stays`;
      this.#count(this.#observing, [seen.rule, effect], recorded, () => seen.reason);
    }
  }

  addChange(row: RecordedRow): void {
    this.#changes += 1;
    this.#decided.addChange(row);
    this.#outcomes.addChange(row);
    const counters = [...resetIn(row).values()];
    if (counters.length === 0) return;
    const reason = String(JSON.parse(wholeText(row.evidence, "reason") ?? '""')).replace(/^Svc: /, "");
    this.#resets.push({ seq: row.seq, counters, reason });
  }

  #count(
    lines: Map<string, Line>,
    cells: readonly string[],
    recorded: Recorded,
    reason: (() => string) | undefined,
  ): void {
    const own = cells.join(" ");
    const key = lines.has(own) || lines.size < linesMax ? own : otherGroups;
    const named = key === own ? cells : [otherGroups, ...cells.slice(1).map(() => "")];
    const line = lines.get(key) ?? { cells: named, receipts: 0, sum: "0", examples: [] };
    lines.set(key, line);
    line.receipts += 1;
    if (reason === undefined || line.examples.length >= this.#examplesMax) return;
    const { leaf, request } = recorded;
    line.examples.push({ seq: leaf.seq, tool: request.toolName, session: request.sessionId, reason: reason() });
  }

  get text(): string {
    if (this.#receipts === 0) return "no receipts match --from, --since, --last and --until";
    return [
      `${plural(this.#receipts)}, ${momentText(this.#first)} to ${momentText(this.#last)}`,
      ...softenedText(this.#letThrough, "let through because the gate only observes", "stopped"),
      ...softenedText(this.#sentToPerson, "sent to a person because of assist mode", "blocked"),
      ...(this.erased === 0 ? [] : [`${this.erased} more have erased parts, and are not counted`]),
      ...(this.unreadable === 0
        ? []
        : [`${this.unreadable} more are malformed, and are not counted; run \`svc-gate verify\``]),
      ...this.#resets.map(
        ({ seq, counters, reason }) =>
          `row ${seq} reset ${visible(counters.join(", "))}: calls before it no longer count (${visible(reason)})`,
      ),
      ...(this.#changes === 0
        ? []
        : [`${this.#changes} more record a change of keys or contracts, and contain no decision`]),
      ...(this.results === 0 ? [] : [`${this.results} more record the result of a tool, and contain no decision`]),
      ...table("verdicts", ["verdict", "mode", "answered", "receipts"], this.#verdicts),
      ...table("refused or held, by rule", ["rule", "verdict", "receipts"], this.#rules),
      ...table("refused or held, by tool", ["tool", "verdict", "receipts"], this.#tools),
      ...table("observing rules: the result if they decided", ["rule", "effect", "receipts"], this.#observing),
      ...this.#decided.text,
      ...this.#outcomes.text,
      ...this.#forecast.text,
    ].join("\n");
  }

  get json(): object {
    const lines = (of: Map<string, Line>, ...names: readonly string[]): object =>
      sorted(of).map(([, { cells, receipts, examples }]) => ({
        ...Object.fromEntries(names.map((name, at) => [name, cells[at]])),
        receipts,
        ...(examples.length === 0 ? {} : { examples }),
      }));
    return {
      receipts: this.#receipts,
      from: this.#first,
      to: this.#last,
      softened: this.#letThrough + this.#sentToPerson,
      erased: this.erased,
      unreadable: this.unreadable,
      changes: this.#changes,
      resets: this.#resets,
      results: this.results,
      verdicts: lines(this.#verdicts, "verdict", "mode", "answered"),
      by_rule: lines(this.#rules, "rule", "verdict"),
      by_tool: lines(this.#tools, "tool", "verdict"),
      observing: lines(this.#observing, "rule", "effect"),
      approvals: this.#decided.json,
      outcomes: this.#outcomes.json,
      forecast: this.#forecast.json,
    };
  }
}

/** How many calls the mode answered more leniently than the verdict, and their result in enforce mode. */
function softenedText(calls: number, what: string, enforced: string): readonly string[] {
  if (calls === 0) return [];
  const [were, they] = calls === 1 ? ["call was", "it"] : ["calls were", "they"];
  return [`${calls} ${were} ${what}; in enforce mode ${they} would have been ${enforced}`];
}

function table(title: string, head: readonly string[], lines: ReadonlyMap<string, Line>): readonly string[] {
  if (lines.size === 0) return [];
  const all = sorted(lines).map(([, line]) => line);
  const rows = columns([head, ...all.map(({ cells, receipts }) => [...cells.map(visible), String(receipts)])]);
  const [headRow = "", ...body] = rows;
  return ["", title, headRow, ...body.flatMap((row, at) => [row, ...(all[at]?.examples ?? []).map(exampleText)])];
}

function exampleText({ seq, tool, session, reason }: Example): string {
  return `      receipt ${seq}, ${visible(tool)}${session === null ? "" : `, session ${visible(session)}`}: ${visible(reason)}`;
}

import { h, type JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { DecidedRule, ReportJson, SessionJson, SliceJson } from "../../../../core/src/wire/mod.ts";
import { el } from "../elements.ts";
import { queryText } from "../gate.ts";
import { later } from "../later.ts";
import { empty, panel, table, tabs, Title, textLink, useAnswer, Verdict } from "../parts.ts";
import { useRoute } from "../route.ts";
import { Text } from "../text.ts";
import { lengthText, Moment } from "../time.ts";
import type { ChartLine } from "./chart.ts";

const spans = [
  ["", "The last 100,000 rows"],
  ["1", "One day"],
  ["7", "7 days"],
  ["30", "30 days"],
] as const;
const dayMs = 86_400_000;

/** Apart, so that the rest of the page is there in a browser that cannot draw the charts. */
const Chart = later(() => import("./chart.ts"));

/** The report as a page: what the rules did, and what people had to decide. */
export default function Rollout({ session }: { readonly session: SessionJson }): JSX.Element {
  const { query } = useRoute();
  const days = query.get("days") ?? "";
  const since = useMemo(
    () => (days === "" ? undefined : new Date(Date.now() - Number(days) * dayMs).toISOString()),
    [days],
  );
  const { value, note } = useAnswer<ReportJson>(`/report${queryText({ since })}`);
  return el.div(
    h(
      Title,
      { text: "Rollout" },
      tabs({ label: "Period", all: spans, shown: days }, (name) => `/rollout${queryText({ days: name })}`),
    ),
    note,
    value?.receipts === 0 &&
      empty("No receipts in this time", "Charts of verdicts, rules and decisions appear here after the first checks."),
    value !== undefined && value.receipts > 0 && h(ReportPanels, { report: value, mode: session.mode }),
  );
}

function ReportPanels({ report, mode }: { readonly report: ReportJson; readonly mode: string }): JSX.Element {
  const { receipts, from, to, softened, over_time: slices } = report;
  const times = useMemo(() => slices.map((slice) => slice.from), [slices]);
  const end = slices.at(-1)?.to ?? to;
  const verdicts = useMemo(() => verdictLines(slices), [slices]);
  const decisions = useMemo(() => decisionLines(slices), [slices]);
  return el.div(
    el.p(
      { class: "sentence" },
      `${formatCount(receipts, "call")}, `,
      h(Moment, { at: from }),
      " to ",
      h(Moment, { at: to }),
      softened > 0 && `. For ${formatCount(softened, "call")} the mode made the answer more lenient than the verdict.`,
    ),
    el.div(
      { class: "grid" },
      panel("Verdicts over time", h(Chart, { title: "Calls by verdict", times, end, lines: verdicts })),
      panel("Decisions over time", h(Chart, { title: "Approvals", times, end, lines: decisions })),
      counterNames(slices).map((name) => h(Money, { key: name, name, times, end, slices })),
      h(Shares, {
        title: "By rule",
        lines: report.by_rule.map((line) => {
          return { ...line, name: line.rule, href: `/contract${queryText({ rule: line.rule })}` };
        }),
      }),
      h(Shares, {
        title: "By tool",
        lines: report.by_tool.map((line) => {
          const { tool, verdict } = line;
          return { ...line, name: tool, href: `/receipts${queryText({ tool_name: tool, verdict })}` };
        }),
      }),
      h(Shares, {
        title: "By session",
        // No filter finds the calls without a session.
        lines: report.by_session.map((line) => {
          const { session, key, verdict } = line;
          const href = session === null ? undefined : `/receipts${queryText({ session_id: session, key, verdict })}`;
          return { ...line, name: session ?? "no session", href };
        }),
      }),
      h(DecisionTable, { rules: report.approvals }),
      h(Outcomes, { report }),
      h(Forecast, { report, mode }),
    ),
  );
}

function formatCount(count: number, noun: string): string {
  return `${count.toLocaleString()} ${noun}${count === 1 ? "" : "s"}`;
}

function verdictLines(slices: readonly SliceJson[]): readonly ChartLine[] {
  const of = (verdict: keyof SliceJson["verdicts"]): number[] => slices.map(({ verdicts }) => verdicts[verdict]);
  return [
    { label: "ALLOW", colour: "--allow", values: of("ALLOW") },
    { label: "ESCALATE", colour: "--escalate", dash: [6, 4], values: of("ESCALATE") },
    { label: "BLOCK", colour: "--block", dash: [2, 3], values: of("BLOCK") },
  ];
}

function decisionLines(slices: readonly SliceJson[]): readonly ChartLine[] {
  return [
    { label: "opened", colour: "--escalate", dash: [6, 4], values: slices.map(({ approvals }) => approvals.opened) },
    { label: "approved", colour: "--allow", values: slices.map(({ approvals }) => approvals.approved) },
    { label: "denied", colour: "--block", dash: [2, 3], values: slices.map(({ approvals }) => approvals.denied) },
    { label: "expired", colour: "--quiet", dash: [1, 4], values: slices.map(({ approvals }) => approvals.expired) },
  ];
}

const moneyMax = 6;

function counterNames(slices: readonly SliceJson[]): readonly string[] {
  return [...new Set(slices.flatMap(({ counters }) => Object.keys(counters)))].toSorted().slice(0, moneyMax);
}

interface MoneyProps {
  readonly name: string;
  readonly times: readonly number[];
  readonly end: number;
  readonly slices: readonly SliceJson[];
}

/** The amounts that a counter reserved for a person, gave back, and counted for good. */
function Money({ name, times, end, slices }: MoneyProps): JSX.Element {
  const lines = useMemo(() => {
    const of = (what: "held" | "released" | "used"): number[] =>
      slices.map(({ counters }) => Number(counters[name]?.[what] ?? 0));
    return [
      { label: "reserved", colour: "--escalate", dash: [6, 4], values: of("held") },
      { label: "given back", colour: "--quiet", dash: [1, 4], values: of("released") },
      { label: "counted", colour: "--allow", values: of("used") },
    ];
  }, [name, slices]);
  return panel({ title: `Amounts: ${name}` }, h(Chart, { title: name, times, end, lines }));
}

interface ShareRow {
  readonly name: string;
  readonly verdict: string;
  readonly receipts: number;
  /** The key that the session belongs to. */
  readonly key?: string;
  readonly href: string | undefined;
}

const shareRows = 12;

function Shares({ title, lines }: { readonly title: string; readonly lines: readonly ShareRow[] }): JSX.Element {
  const most = Math.max(1, ...lines.map(({ receipts }) => receipts));
  return panel(
    title,
    lines.length === 0 && el.p({ class: "quiet" }, "Nothing was refused or parked."),
    table(
      "shares",
      lines
        .slice(0, shareRows)
        .map(({ name, key = "", verdict, receipts, href }) =>
          el.tr(
            { key: JSON.stringify([name, key, verdict]) },
            el.th(
              { scope: "row" },
              href === undefined ? h(Text, { of: name }) : textLink(href, name),
              key !== "" && el.span({ class: "quiet" }, " of key ", h(Text, { of: key })),
            ),
            el.td(verdict !== "" && h(Verdict, { of: verdict })),
            el.td(h(Bar, { share: receipts / most, of: verdict }), " ", receipts.toLocaleString()),
          ),
        ),
    ),
    lines.length > shareRows && el.p({ class: "quiet" }, `and ${lines.length - shareRows} more`),
  );
}

/** A length beside its number, in the colour and with the pattern of a verdict. */
function Bar({ share, of = "" }: { readonly share: number; readonly of?: string }): JSX.Element {
  const bar = el.span({ style: { width: `${share * 100}%` } });
  return el.span({ class: "portion", "data-verdict": of, "aria-hidden": "true" }, bar);
}

function DecisionTable({ rules }: { readonly rules: readonly DecidedRule[] }): JSX.Element {
  const share = (part: number, whole: number): string => (whole === 0 ? "-" : `${Math.round((part / whole) * 100)} %`);
  const time = (ms: number | null): string => (ms === null ? "-" : lengthText(ms));
  return panel(
    { title: "What people decided", class: "full" },
    rules.length === 0 && el.p({ class: "quiet" }, "No call has waited for a person in this time."),
    rules.length > 0 &&
      el.div(
        { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Decisions by rule" },
        table(
          "list",
          rules.map((each) =>
            el.tr(
              { key: each.rule },
              el.th(
                { scope: "row" },
                textLink(`/contract${queryText({ rule: each.rule })}`, each.rule),
                each.always !== null &&
                  el.p(
                    { class: "note" },
                    each.always === "approved"
                      ? "always approved: does a person need to decide it?"
                      : "always denied: should the contract block it?",
                  ),
              ),
              el.td(each.opened),
              el.td(`${each.approved} (${share(each.approved, each.approved + each.denied)})`),
              el.td(each.denied),
              el.td(each.expired_share === null ? "-" : `${Math.round(each.expired_share * 100)} %`),
              el.td(each.fast),
              el.td(time(each.median_ms)),
              el.td(time(each.p90_ms)),
            ),
          ),
          {
            heads: ["Rule", "Opened", "Approved", "Denied", "Expired", "Under 3 s", "Median to decide", "90 % within"],
          },
        ),
      ),
  );
}

function Outcomes({ report }: { readonly report: ReportJson }): JSX.Element {
  const { let_through: all, done, failed, unknown, missing } = report.outcomes;
  const rows = [
    ["done", done],
    ["failed", failed],
    ["unknown", unknown],
    ["not reported", missing],
  ] as const;
  return panel(
    "Outcomes",
    el.p({ class: "quiet" }, `${formatCount(all, "call")} let through in assist or enforce mode.`),
    table(
      "shares",
      rows.map(([name, count]) =>
        el.tr(
          { key: name },
          el.th({ scope: "row" }, name),
          el.td(h(Bar, { share: count / Math.max(1, all) }), " ", count.toLocaleString()),
        ),
      ),
    ),
  );
}

function Forecast({ report, mode }: { readonly report: ReportJson; readonly mode: string }): JSX.Element | null {
  const { approvals, per_day: perDay, days, largest_hour: hour, by_rule: rules } = report.forecast;
  if (approvals === 0) return null;
  return panel(
    mode === "enforce" ? "If it had enforced all the time" : "If the gate enforced",
    el.p(
      `People would decide ${formatCount(perDay, "call")} a day: ${approvals} in ${formatCount(days, "day")}`,
      hour !== null && el.span(`, at most ${hour.approvals} in one hour (`, h(Moment, { at: hour.from }), ")"),
      ".",
    ),
    table(
      "shares",
      rules
        .slice(0, shareRows)
        .map(({ rule, per_day: a }) =>
          el.tr({ key: rule }, el.th({ scope: "row" }, h(Text, { of: rule })), el.td(`${a} a day`)),
        ),
    ),
  );
}

import { h, type JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { ApprovalDetail, Need, Receipt, ReceiptPage, SameCall, Session } from "../answers.ts";
import { queryText } from "../gate.ts";
import { listen, missed } from "../live.ts";
import {
  callMembers,
  Command,
  Facts,
  FactsSource,
  Loading,
  Panel,
  ProblemNote,
  State,
  Title,
  useAnswer,
  useFollowed,
  Verdict,
} from "../parts.ts";
import { link, useRoute } from "../route.ts";
import { reasonText, Text } from "../text.ts";
import { Ago, Countdown, Moment } from "../time.ts";
import { CallText } from "../tree.ts";
import { differences, partOf } from "../evidence.ts";
import { Decide } from "./decide.ts";
import { RulesOf } from "./rules.ts";

interface ApprovalProps {
  readonly id: string;
  readonly session: Session;
}

const votesEveryMs = 5000;

/** One approval: the whole call, the rules that ask for a person, and the decision. */
export default function ApprovalPage({ id, session }: ApprovalProps): JSX.Element {
  const { query } = useRoute();
  const { value, raw, problem, again } = useAnswer<ApprovalDetail>(`/approvals/${id}`, callMembers);
  useEffect(
    () =>
      listen(({ data, type }) =>
        data["approval"] === id || type === missed || type.startsWith("stop.") ? again(true) : undefined,
      ),
    [id, again],
  );
  const waitsForMore = value?.status === "pending" && value.needs > 1;
  useEffect(() => {
    if (!waitsForMore) return undefined;
    // No event tells of a vote that leaves the call pending.
    const timer = setInterval(() => again(true), votesEveryMs);
    return () => clearInterval(timer);
  }, [waitsForMore, again]);
  if (problem !== undefined) return h("div", null, h(Title, { text: "Approval" }), h(ProblemNote, { of: problem }));
  if (value === undefined) return h("div", null, h(Title, { text: "Approval" }), h(Loading, null));
  return h(
    "article",
    { class: "approval" },
    h(
      Title,
      { text: value.tool_name },
      h(State, { of: value.status }),
      h("a", { href: link("/"), class: "small button" }, "Inbox"),
    ),
    h("p", { class: "sentence" }, h(Text, { of: reasonText(value.reason) })),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "main" },
        h(Call, { approval: value, raw }),
        h(GrantsFrom, { receipt: value.receipt }),
        h(Decide, { approval: value, session, opens: query.has("decide"), onDecided: () => again(true) }),
      ),
      h(
        "div",
        { class: "side" },
        h(Clocks, { approval: value }),
        h(Asked, { approval: value }),
        h(Votes, { approval: value }),
        h(SameCalls, { of: value.same_call }),
        h(RulesOf, { seq: value.receipt, fallback: value.rules }),
        h(LastFive, { approval: value, input: raw["tool_input"] ?? "null" }),
        h(Timeline, { approval: value }),
      ),
    ),
  );
}

interface CallProps {
  readonly approval: ApprovalDetail;
  readonly raw: Readonly<Record<string, string>>;
}

function Call({ approval, raw }: CallProps): JSX.Element {
  const { may_differ: mayDiffer, at, sent_as: alias } = approval;
  const facts = raw["platform_state"] ?? "null";
  return h(
    "div",
    null,
    h(
      Panel,
      { title: "What the agent asked" },
      alias !== undefined && h("p", { class: "quiet" }, "It sent the tool as ", h(Text, { of: alias }), "."),
      h(CallText, { text: raw["tool_input"] ?? "null", label: "Input of the call", root: "input", mayDiffer }),
    ),
    h(
      Panel,
      {
        title: "Facts from the platform",
        more: h(
          "span",
          { class: "quiet" },
          h(FactsSource, { kind: approval.key_kind }),
          " when the agent asked, ",
          h(Ago, { at }),
        ),
      },
      facts === "null"
        ? h("p", { class: "quiet" }, "The platform sent no facts.")
        : h(CallText, { text: facts, label: "Facts", root: "platform" }),
    ),
  );
}

const decided: Readonly<Record<string, string>> = { approved: "decided", used: "decided", denied: "decided" };
const used: Readonly<Record<string, string>> = { used: "used", denied: "denied" };

/** The times to decide and to use the approval. Contracts set how long an approval may be used, so it has no bar. */
function Clocks({ approval }: { readonly approval: ApprovalDetail }): JSX.Element {
  const { at, decide_by: decideBy, use_by: useBy, status } = approval;
  const isOpen = status === "pending" || status === "approved";
  return h(
    Panel,
    { title: "Time" },
    h(Facts, {
      of: [
        ["Asked", h(Ago, { at })],
        [
          "To decide",
          status === "pending"
            ? h(Countdown, { until: decideBy, from: at, label: "left" })
            : (decided[status] ?? "over"),
        ],
        [
          "To use",
          status === "pending"
            ? "starts at the approval"
            : useBy === null || !isOpen
              ? (used[status] ?? "over")
              : h(Countdown, { until: useBy, label: "left" }),
        ],
      ],
    }),
  );
}

function Asked({ approval }: { readonly approval: ApprovalDetail }): JSX.Element {
  const { key, session_id: session, asked, receipt, mode, counters, groups, amounts } = approval;
  return h(
    Panel,
    { title: "Who asked" },
    h(Facts, {
      of: [
        ["Key", h(Text, { of: key })],
        [
          "Session",
          session === null
            ? "none"
            : h(
                "a",
                { href: link(`/receipts${queryText({ session_id: session, kind: "check" })}`) },
                h(Text, { of: session }),
              ),
        ],
        ["Asked", asked === 1 ? "once" : `${asked} times. One decision is for all of them`],
        ["Receipt", h("a", { href: link(`/receipts/${receipt}`) }, String(receipt))],
        ["Mode", mode ?? "unknown"],
        ["Needs", groups.map(needText).join(", and ")],
        ...Object.entries(amounts).map(([name, value]) => [name, value] as const),
        ...Object.entries(counters ?? {}).map(([name, value]) => [`${name}, before`, h(Text, { of: value })] as const),
      ],
    }),
  );
}

function needText({ by, of }: Need): string {
  if (by === null) return of === 1 ? "any one person who decides" : `any ${of} persons who decide`;
  const whom = `the ${by.length === 1 ? "group" : "groups"} ${by.join(" or ")}`;
  return `${of === 1 ? "one person" : `${of} persons`} of ${whom}`;
}

function Votes({ approval }: { readonly approval: ApprovalDetail }): JSX.Element {
  const { decisions, has, needs } = approval;
  return h(
    Panel,
    { title: "Decisions", more: h("span", { class: "count" }, `${has} of ${needs}`) },
    decisions.length === 0
      ? h("p", { class: "quiet" }, "Nobody has decided yet.")
      : h(
          "ul",
          { class: "said" },
          decisions.map(({ decision, person, at, comment, receipt, scope, until }) =>
            h(
              "li",
              { key: receipt },
              h("strong", null, h(Text, { of: person })),
              decision === "approve" ? " approved " : " denied ",
              h(Ago, { at }),
              ", ",
              h("a", { href: link(`/receipts/${receipt}`) }, `receipt ${receipt}`),
              comment !== "" && h("blockquote", null, h(Text, { of: comment })),
              scope !== undefined &&
                scope !== "call" &&
                h(
                  "p",
                  { class: "quiet" },
                  scope === "tool" ? "Also this tool in this session." : "Also this rule for this key.",
                ),
              until !== undefined && h("p", { class: "quiet" }, "Until ", h(Moment, { at: until })),
            ),
          ),
        ),
  );
}

/** Other questions about the same call, such as that of a run that was started again. */
function SameCalls({ of }: { readonly of: readonly SameCall[] }): JSX.Element | null {
  if (of.length === 0) return null;
  return h(
    Panel,
    { title: "The same call in other questions" },
    h(
      "ul",
      { class: "said" },
      of.map(({ id, status, session_id: session, differs, approved }) =>
        h(
          "li",
          { key: id },
          h("a", { href: link(`/approvals/${id}`) }, session === null ? "without a session" : h(Text, { of: session })),
          " ",
          h(State, { of: status }),
          differs.length > 0 && h("p", { class: "quiet" }, `Another ${differs.join(", ")} than here.`),
          approved && h("p", null, "A person approved it, and it was not used."),
        ),
      ),
    ),
  );
}

/** A grant outlives its approval: a person who takes the approval back must know that later calls still pass. */
function GrantsFrom({ receipt }: { readonly receipt: number }): JSX.Element | null {
  const { value, again } = useAnswer<{ readonly grants: readonly { readonly id: string; readonly source: number }[] }>(
    "/grants",
  );
  useFollowed(["grant.", missed], again);
  if (value?.grants.some(({ source }) => source === receipt) !== true) return null;
  return h(
    "p",
    { class: "panel", role: "status" },
    "A grant from this call lets later calls like it through. A denial of this call does not end it. ",
    h("a", { href: link("/access") }, "Look at the grant"),
  );
}

/** The difference to the last five calls of the same tool by the same key. */
function LastFive({ approval, input }: { readonly approval: ApprovalDetail; readonly input: string }): JSX.Element {
  const { tool_name: tool, key, receipt } = approval;
  const { value, problem } = useAnswer<ReceiptPage>(
    `/receipts${queryText({ tool_name: tool, key, before: receipt, limit: 5 })}`,
  );
  const calls = value?.receipts ?? [];
  return h(
    Panel,
    { title: "The last five calls of this tool" },
    problem !== undefined && h(ProblemNote, { of: problem }),
    value !== undefined &&
      calls.length === 0 &&
      h("p", { class: "quiet" }, "This key has not called this tool before."),
    h(
      "ul",
      { class: "like" },
      calls.map((call) => h(Like, { key: call.seq, call, input })),
    ),
  );
}

function Like({ call, input }: { readonly call: Receipt; readonly input: string }): JSX.Element {
  const theirs = partOf(call, "input");
  const found = theirs === undefined ? undefined : differences(theirs, input);
  return h(
    "li",
    null,
    h(Verdict, { of: call.answered ?? "" }),
    " ",
    h("a", { href: link(`/receipts/${call.seq}`) }, `receipt ${call.seq}`),
    ", ",
    h(Ago, { at: call.at }),
    found === undefined
      ? h("p", { class: "quiet" }, "Its input was erased.")
      : found.length === 0
        ? h("p", { class: "quiet" }, "The same input.")
        : h(
            "ul",
            { class: "differences" },
            found
              .slice(0, 8)
              .map(({ path, before, now }) =>
                h(
                  "li",
                  { key: path },
                  h("span", { class: "name" }, h(Text, { of: path })),
                  " ",
                  h("del", null, h(Text, { of: before ?? "absent" })),
                  " ",
                  h("ins", null, h(Text, { of: now ?? "absent" })),
                ),
              ),
            found.length > 8 && h("li", { class: "quiet" }, `and ${found.length - 8} more`),
          ),
  );
}

function Timeline({ approval }: { readonly approval: ApprovalDetail }): JSX.Element {
  const { session_id: session, key } = approval;
  const path = session === null ? undefined : `/receipts${queryText({ session_id: session, key, limit: 10 })}`;
  const { value, problem } = useAnswer<ReceiptPage>(path);
  return h(
    Panel,
    { title: "The session's last calls" },
    session === null && h("p", { class: "quiet" }, "The call has no session."),
    problem !== undefined && h(ProblemNote, { of: problem }),
    h(
      "ol",
      { class: "timeline" },
      (value?.receipts ?? []).map(({ seq, at, tool_name: sent, tool = sent, answered }) =>
        h(
          "li",
          { key: seq, class: seq === approval.receipt ? "here" : "" },
          h(Verdict, { of: answered ?? "" }),
          " ",
          h("a", { href: link(`/receipts/${seq}`) }, h(Text, { of: tool ?? "" })),
          " ",
          h(Ago, { at }),
        ),
      ),
    ),
    h(Command, { text: `svc-gate explain --receipt ${approval.receipt}` }),
  );
}

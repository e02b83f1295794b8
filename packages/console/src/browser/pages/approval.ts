import { h, type JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { ApprovalDetailJson, GrantJson, Need, SameCall } from "../../../../core/src/approvals/mod.ts";
import {
  jsonText,
  type Json,
  type ReceiptJson,
  type ReceiptPage,
  type SessionJson,
} from "../../../../core/src/wire/mod.ts";
import { el } from "../elements.ts";
import { queryText } from "../gate.ts";
import { listen, missed } from "../live.ts";
import {
  callMembers,
  Command,
  Facts,
  FactsSource,
  panel,
  ProblemNote,
  State,
  table,
  Title,
  textLink,
  useAnswer,
  useFollowed,
  Verdict,
} from "../parts.ts";
import { link, useRoute } from "../route.ts";
import { reasonText, Text } from "../text.ts";
import { Ago, Countdown, Moment } from "../time.ts";
import { CallText, isCallShownWhole } from "../tree.ts";
import {
  compareMembers,
  pathOf,
  pathText,
  readValue,
  recordedOf,
  type ValuePath,
  type RecordedValue,
} from "../evidence.ts";
import { Decide } from "./decide.ts";
import { RulesOf } from "./rules.ts";

interface ApprovalProps {
  readonly id: string;
  readonly session: SessionJson;
}

const votesEveryMs = 5000;

/** One approval: the whole call, the rules that ask for a person, and the decision. */
export default function ApprovalPage({ id, session }: ApprovalProps): JSX.Element {
  const { query } = useRoute();
  const { value, raw, note, again } = useAnswer<ApprovalDetailJson>(`/approvals/${id}`, callMembers);
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
  if (value === undefined) return el.div(h(Title, { text: "Approval" }), note);
  const { tool_input: input = "null", platform_state: facts = "null" } = raw;
  return el.article(
    { class: "approval" },
    h(
      Title,
      { text: value.tool_name },
      h(State, { of: value.status }),
      el.a({ href: link("/"), class: "small button" }, "Inbox"),
    ),
    el.p({ class: "sentence" }, h(Text, { of: reasonText(value.reason) })),
    el.div(
      { class: "columns" },
      el.div(
        { class: "main" },
        h(Input, { approval: value, text: input }),
        // The buttons keep to the window's lower edge as soon as a reader comes to the end of the input.
        el.div(
          { class: "deciding" },
          h(PlatformFacts, { approval: value, text: facts }),
          h(GrantsFrom, { receipt: value.receipt }),
          h(Decide, {
            approval: value,
            isShownWhole: isCallShownWhole(input) && isCallShownWhole(facts),
            session,
            opens: query.has("decide"),
            onDecided: () => again(true),
          }),
        ),
      ),
      el.div(
        { class: "side" },
        h(Clocks, { approval: value }),
        h(CallOrigin, { approval: value }),
        h(Votes, { approval: value }),
        h(SameCalls, { of: value.same_call }),
        h(RulesOf, { seq: value.receipt, fallback: value.rules }),
        h(LastFive, { approval: value, input }),
        h(Timeline, { approval: value }),
      ),
    ),
  );
}

interface CallProps {
  readonly approval: ApprovalDetailJson;
  /** The JSON text of the input or of the facts; `null` if there is none. */
  readonly text: string;
}

function Input({ approval: { may_differ: mayDiffer, sent_as: alias }, text }: CallProps): JSX.Element {
  return panel(
    "What the agent asked",
    alias !== undefined && el.p({ class: "quiet" }, "It sent the tool as ", h(Text, { of: alias }), "."),
    h(CallText, { text, label: "Input of the call", root: "input", mayDiffer }),
  );
}

function PlatformFacts({ approval: { at, key_kind: kind }, text }: CallProps): JSX.Element {
  const source = el.span({ class: "quiet" }, h(FactsSource, { kind }), " when the agent asked, ", h(Ago, { at }));
  return panel(
    { title: "Facts from the platform", more: source },
    text === "null"
      ? el.p({ class: "quiet" }, "The platform sent no facts.")
      : h(CallText, { text, label: "Facts", root: "platform" }),
  );
}

const decided: Readonly<Record<string, string>> = { approved: "decided", used: "decided", denied: "decided" };
const used: Readonly<Record<string, string>> = { used: "used", denied: "denied" };

/** The times to decide and to use the approval. Contracts set how long an approval may be used, so it has no bar. */
function Clocks({ approval }: { readonly approval: ApprovalDetailJson }): JSX.Element {
  const { at, decide_by: decideBy, use_by: useBy, status } = approval;
  const isOpen = status === "pending" || status === "approved";
  return panel(
    "Time",
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

function CallOrigin({ approval }: { readonly approval: ApprovalDetailJson }): JSX.Element {
  const { key, session_id: session, asked, receipt, mode, counters, groups } = approval;
  return panel(
    "Who asked",
    h(Facts, {
      of: [
        ["Key", h(Text, { of: key })],
        [
          "Session",
          session === null
            ? "none"
            : textLink(`/receipts${queryText({ session_id: session, kind: "check" })}`, session),
        ],
        ["Asked", asked === 1 ? "once" : `${asked} times. One decision is for all of them`],
        ["Receipt", el.a({ href: link(`/receipts/${receipt}`) }, String(receipt))],
        ["Mode", mode ?? "unknown"],
        ["Needs", groups.map(needText).join(", and ")],
        ...Object.entries(counters ?? {}).map(([name, value]) => [`${name}, before`, h(Text, { of: value })] as const),
      ],
    }),
  );
}

function needText({ by, of }: Need): string {
  if (by === null) return of === 1 ? "any one person who decides" : `any ${of} people who decide`;
  const whom = `the ${by.length === 1 ? "group" : "groups"} ${by.join(" or ")}`;
  return `${of === 1 ? "one person" : `${of} people`} of ${whom}`;
}

function Votes({ approval }: { readonly approval: ApprovalDetailJson }): JSX.Element {
  const { decisions, has, needs } = approval;
  return panel(
    { title: "Decisions", more: el.span({ class: "count" }, `${has} of ${needs}`) },
    decisions.length === 0
      ? el.p({ class: "quiet" }, "Nobody has decided yet.")
      : el.ul(
          { class: "said" },
          decisions.map(({ decision, person, at, comment, receipt, scope, until }) =>
            el.li(
              { key: receipt },
              el.strong(h(Text, { of: person })),
              decision === "approve" ? " approved " : " denied ",
              h(Ago, { at }),
              ", ",
              el.a({ href: link(`/receipts/${receipt}`) }, `receipt ${receipt}`),
              comment !== "" && el.blockquote(h(Text, { of: comment })),
              scope !== undefined &&
                scope !== "call" &&
                el.p(
                  { class: "quiet" },
                  scope === "tool" ? "Also this tool in this session." : "Also this rule for this key.",
                ),
              until !== undefined && el.p({ class: "quiet" }, "Until ", h(Moment, { at: until })),
            ),
          ),
        ),
  );
}

/** Other questions about the same call, such as that of a run that was started again. */
function SameCalls({ of }: { readonly of: readonly SameCall[] }): JSX.Element | null {
  if (of.length === 0) return null;
  return panel(
    "The same call in other questions",
    el.ul(
      { class: "said" },
      of.map(({ id, status, session_id: session, differs, approved }) =>
        el.li(
          { key: id },
          el.a({ href: link(`/approvals/${id}`) }, session === null ? "without a session" : h(Text, { of: session })),
          " ",
          h(State, { of: status }),
          differs.length > 0 && el.p({ class: "quiet" }, `Another ${differs.join(", ")} than here.`),
          approved && el.p("A person approved it, and it was not used."),
        ),
      ),
    ),
  );
}

/** A grant outlives its approval: a person who takes the approval back must know that later calls still pass. */
function GrantsFrom({ receipt }: { readonly receipt: number }): JSX.Element | null {
  const { value, again } = useAnswer<{ readonly grants: readonly GrantJson[] }>("/grants");
  useFollowed(["grant.", missed], again);
  if (value?.grants.some(({ source }) => source === receipt) !== true) return null;
  return el.p(
    { class: "panel", role: "status" },
    "A grant from this call lets later calls like it through. A denial of this call does not end it. ",
    el.a({ href: link("/access") }, "Look at the grant"),
  );
}

/** The last five calls of the same tool by the same key, each with the members that differ from this call. */
function LastFive({ approval, input }: { readonly approval: ApprovalDetailJson; readonly input: string }): JSX.Element {
  const { tool_name: tool, key, receipt } = approval;
  const { value, problem } = useAnswer<ReceiptPage>(
    `/receipts${queryText({ tool_name: tool, key, before: receipt, limit: 5 })}`,
  );
  const calls = value?.receipts ?? [];
  const now = useMemo(() => readValue(input), [input]);
  return panel(
    "The last five calls of this tool",
    problem !== undefined && h(ProblemNote, { of: problem }),
    value !== undefined && calls.length === 0 && el.p({ class: "quiet" }, "This key has not called this tool before."),
    calls.length > 0 &&
      table(
        "like",
        calls.map((call) => h(Like, { key: call.seq, call, now })),
        {
          caption: el.caption({ class: "quiet" }, "Bold: not the same as in this call."),
          heads: ["Answer", "Input"],
        },
      ),
  );
}

interface LikeProps {
  /** An earlier call. */
  readonly call: ReceiptJson;
  /** The input of this call. */
  readonly now: Json;
}

function Like({ call, now }: LikeProps): JSX.Element {
  return el.tr(
    el.td(
      h(Verdict, { of: call.answered ?? "" }),
      el.a({ href: link(`/receipts/${call.seq}`) }, `receipt ${call.seq}`),
      h(Ago, { at: call.at }),
    ),
    el.td(h(LikeInput, { call, now })),
  );
}

const likeMembers = 6;
const likeCharacters = 40;

function LikeInput({ call, now }: LikeProps): JSX.Element {
  const theirs = useMemo(() => recordedOf(call, "input"), [call]);
  const members = useMemo(() => (theirs === undefined ? [] : compareMembers(theirs.value, now)), [theirs, now]);
  if (theirs === undefined) return el.p({ class: "quiet" }, "Its input was erased.");
  if (Array.isArray(theirs.value)) return el.p({ class: "quiet" }, "Its input was not kept whole.");
  const others = members.filter(({ isSame }) => !isSame);
  if (others.length === 0) return el.p({ class: "quiet" }, "The same input.");
  const first = [...others, ...members.filter(({ isSame }) => isSame)].slice(0, likeMembers);
  return el.ul(
    first.map(({ node, before, isSame }) => {
      const path = pathOf(node);
      const name = pathText(path);
      const value = isErased(theirs, path) ? "was erased" : before === undefined ? "is absent" : cut(jsonText(before));
      return el.li(
        { key: name, class: isSame ? "same" : "other" },
        h(Text, { of: cut(name) }),
        " ",
        h(Text, { of: value }),
      );
    }),
    members.length > first.length && el.li({ class: "same" }, restText(others.length, members.length)),
  );
}

function isErased({ erased }: RecordedValue, path: ValuePath): boolean {
  return erased.some((each) => each.every((step, at) => path[at] === step));
}

function restText(others: number, all: number): string {
  const more = Math.max(0, others - likeMembers);
  const same = all - Math.max(others, likeMembers);
  const parts = [...(more > 0 ? [`${more} more differ`] : []), ...(same > 0 ? [`${same} more are the same`] : [])];
  return parts.join(", ");
}

function cut(text: string): string {
  const characters = Array.from(text.slice(0, 2 * likeCharacters + 2));
  return characters.length > likeCharacters ? `${characters.slice(0, likeCharacters).join("")}…` : text;
}

function Timeline({ approval }: { readonly approval: ApprovalDetailJson }): JSX.Element {
  const { session_id: session, key } = approval;
  const path = session === null ? undefined : `/receipts${queryText({ session_id: session, key, limit: 10 })}`;
  const { value, problem } = useAnswer<ReceiptPage>(path);
  return panel(
    "The session's last calls",
    session === null && el.p({ class: "quiet" }, "The call has no session."),
    problem !== undefined && h(ProblemNote, { of: problem }),
    el.ol(
      { class: "timeline" },
      (value?.receipts ?? []).map(({ seq, at, tool_name: sent, tool = sent, answered }) =>
        el.li(
          { key: seq, class: seq === approval.receipt ? "here" : "" },
          h(Verdict, { of: answered ?? "" }),
          " ",
          textLink(`/receipts/${seq}`, tool ?? ""),
          " ",
          h(Ago, { at }),
        ),
      ),
    ),
    h(Command, { text: `explain --receipt ${approval.receipt}` }),
  );
}

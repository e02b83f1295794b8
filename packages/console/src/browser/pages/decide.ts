import { Fragment, h, type JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApprovalDetailJson } from "../../../../core/src/approvals/mod.ts";
import type { SessionJson } from "../../../../core/src/wire/mod.ts";
import { el } from "../elements.ts";
import { Button, Choice } from "../fields.ts";
import { ask, gateNow, type Problem } from "../gate.ts";
import { panel, ProblemNote } from "../parts.ts";
import { Text } from "../text.ts";
import { momentText } from "../time.ts";
import { Comment, denialsText, noReason } from "./comment.ts";
import { opensText } from "../tree.ts";
import { GrantForm, grantText, readGrantForm, type GrantFields } from "./grant-form.ts";

interface DecideProps {
  readonly approval: ApprovalDetailJson;
  /** False if a person must open parts of the call to read them. */
  readonly isShownWhole: boolean;
  readonly session: SessionJson;
  /** True if the person came here to decide. */
  readonly opens: boolean;
  readonly onDecided: () => void;
}

type DecisionKind = "approve" | "deny";

/** The decision on a call, or why this person cannot decide it. */
export function Decide({ approval, isShownWhole, session, opens, onDecided }: DecideProps): JSX.Element {
  const [said, setSaid] = useState("");
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const send = async (decision: DecisionKind, body: string): Promise<boolean> => {
    const answer = await ask(`/approvals/${approval.id}/${decision}`, { body });
    setProblem(answer.ok ? undefined : answer.problem);
    setSaid(!answer.ok ? "" : decision === "approve" ? "Your yes is recorded. " : "Your denial is recorded. ");
    onDecided();
    return answer.ok;
  };
  const { status, may_decide: mayDecide } = approval;
  const isOpen = status === "pending" || status === "approved";
  const note = problem !== undefined && h(ProblemNote, { of: problem });
  if (isOpen && mayDecide)
    return h(DecideForm, { approval, isShownWhole, session, opens, said, note, onProblem: setProblem, onSend: send });
  const text = !isOpen
    ? (closedTexts[status] ?? status)
    : status === "approved"
      ? approvedText(approval)
      : describeNoDecider(session);
  return panel("Decision", el.p({ role: "status" }, said, text), note);
}

interface DecideFormProps extends Omit<DecideProps, "onDecided"> {
  readonly said: string;
  readonly note: JSX.Element | false;
  readonly onProblem: (problem: Problem) => void;
  /** Resolves to true if the gate has recorded the decision. */
  readonly onSend: (decision: DecisionKind, body: string) => Promise<boolean>;
}

const scopes = [
  ["call", "this call"],
  ["tool", "this tool in this session"],
  ["rule", "this rule for this key"],
] as const;

const hourMs = 3_600_000;
const lengths = [
  ["1", "one hour"],
  ["24", "one day"],
  ["168", "a week"],
] as const;

/** The comment that a person types. It stays in this tab if the session ends meanwhile. */
function useDraft(id: string): readonly [comment: string, setComment: (text: string) => void] {
  const name = `svc-gate draft ${id}`;
  const [comment, setComment] = useState(() => sessionStorage.getItem(name) ?? "");
  const keep = (text: string): void => {
    setComment(text);
    if (text === "") sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, text);
  };
  return [comment, keep];
}

/** One sentence that says what approving does, and two buttons of one size. No button is the default, and no key decides. */
function DecideForm(props: DecideFormProps): JSX.Element {
  const { approval, isShownWhole, session, opens, said, note, onProblem, onSend } = props;
  const [comment, setComment] = useDraft(approval.id);
  const [scope, setScope] = useState("call");
  const [hours, setHours] = useState("24");
  const [grant, setGrant] = useState<GrantFields | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLElement>(null);
  useEffect(() => {
    if (opens) form.current?.querySelector<HTMLElement>("#decide-title")?.focus();
  }, [opens]);
  const send = async (decision: DecisionKind): Promise<void> => {
    const body = bodyOf(decision, { hash: approval.hash, comment, scope, hours, grant });
    if (typeof body !== "string") return onProblem(body);
    setBusy(true);
    const isRecorded = await onSend(decision, body);
    setBusy(false);
    if (!isRecorded) return;
    // The words of a yes must not become the reason of a denial.
    setComment("");
    setGrant(undefined);
  };
  const deny = (): Promise<void> => {
    // The person sees where the words of a denial are missing.
    if (comment.trim() === "") form.current?.querySelector("textarea")?.focus();
    return send("deny");
  };
  const isMine = approval.decisions.some(({ decision, person }) => decision === "approve" && person === session.person);
  const isGiven = isMine || approval.status === "approved";
  const offer = approval.grants_allowed;
  const { only_deny: onlyDeny } = approval;
  const mayGrant = offer !== false && !isGiven && onlyDeny === undefined;
  const granted = mayGrant && grant !== undefined && grantText(grant, offer);
  return h(
    Fragment,
    null,
    el.section(
      { class: "panel decide", ref: form, "aria-labelledby": "decide-title" },
      el.header(el.h2({ id: "decide-title", tabIndex: -1 }, isMine ? "You approved this call" : "Your decision")),
      h(Comment, { id: "comment", value: comment, onText: setComment }),
      el.div(
        { class: "fields" },
        h(Choice, { id: "scope", label: "A denial is for", value: scope, onText: setScope, choices: scopes }),
        h(Choice, { id: "hours", label: "The denial applies for", value: hours, onText: setHours, choices: lengths }),
      ),
      el.p({ class: "quiet" }, denialsText),
      approval.no_grant !== undefined &&
        el.p({ class: "quiet" }, "No grant can be made from it: ", h(Text, { of: approval.no_grant }), "."),
      mayGrant && h(GrantForm, { approval, offer, fields: grant, onChange: setGrant }),
    ),
    el.section(
      { class: "panel verdict", "aria-label": "Deny or approve" },
      el.p({ role: "status" }, said, isGiven ? approvedText(approval) : effectText(approval), granted),
      onlyDeny !== undefined && el.p({ class: "note" }, h(Text, { of: `${onlyDeny}. You can deny it.` })),
      !isShownWhole && el.p({ class: "note" }, opensText),
      note,
      el.div(
        { class: "two" },
        h(Button, { kind: "deny", isOff: isBusy, onPress: deny }, isGiven ? "Take it back: deny" : "Deny"),
        h(
          Button,
          { kind: "approve", isOff: isBusy || isGiven || onlyDeny !== undefined, onPress: () => send("approve") },
          grant === undefined ? "Approve this call" : "Approve, and grant",
        ),
      ),
    ),
  );
}

interface DecisionFields {
  readonly hash: string;
  readonly comment: string;
  readonly scope: string;
  readonly hours: string;
  readonly grant: GrantFields | undefined;
}

/** The JSON text of a decision, or what is missing. The amounts of a grant keep the characters that the person typed. */
function bodyOf(decision: DecisionKind, { hash, comment, scope, hours, grant }: DecisionFields): string | Problem {
  if (decision === "deny" && comment.trim() === "") return noReason;
  const denial = {
    ...(scope !== "call" && { scope }),
    ...(hours !== "24" && { until: gateNow() + Number(hours) * hourMs }),
  };
  const body = JSON.stringify({ hash, comment, ...(decision === "deny" && denial) });
  if (decision === "deny" || grant === undefined) return body;
  const wanted = readGrantForm(grant);
  return wanted.startsWith("{") ? `${body.slice(0, -1)},"grant":${wanted}}` : { status: 0, code: "", detail: wanted };
}

function effectText({ needs, has, decide_by: until }: ApprovalDetailJson): string {
  const others = needs - has - 1;
  const more = others > 0 ? ` ${others} more ${others === 1 ? "person" : "people"} must approve too.` : "";
  const effect = "If you approve, this call may run once, soon after, if the rules and facts still allow it then.";
  return `${effect} Decide until ${momentText(until)}.${more}`;
}

function approvedText({ use_by: useBy, has, needs }: ApprovalDetailJson): string {
  if (useBy === null) return `${has} of ${needs} people have approved.`;
  const end = momentText(useBy);
  return `Approved, not used yet: this call may run once, until ${end}, if it is still allowed then. A denial takes the approval back.`;
}

function describeNoDecider({ key }: SessionJson): string {
  return `You see this call, but the key "${key}" may not decide it. The call waits for the people who may.`;
}

const closedTexts: Readonly<Record<string, string>> = {
  used: "The call was approved, and the agent has used the approval. It cannot use it again.",
  denied: "The call was denied. The agent gets the comment as its reason.",
  expired: "The time is over. Nobody denied the call; the agent may ask again.",
  cancelled: "The approval was cancelled. The agent may ask again.",
  superseded: "Another call or approval replaced it.",
};

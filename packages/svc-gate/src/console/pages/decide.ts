import { h, type JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApprovalDetail, Session } from "../answers.ts";
import { ask, type Problem } from "../gate.ts";
import { Panel, ProblemNote } from "../parts.ts";
import { momentText } from "../time.ts";
import { noReason } from "./batch.ts";
import { GrantForm, readGrantForm, type GrantFields } from "./grant-form.ts";

interface DecideProps {
  readonly approval: ApprovalDetail;
  readonly session: Session;
  /** True if the person came here to decide. */
  readonly opens: boolean;
  readonly onDecided: () => void;
}

/** The decision: one sentence that says what approving does, and two buttons of one size. No key decides. */
export function Decide({ approval, session, opens, onDecided }: DecideProps): JSX.Element {
  const [comment, setComment] = useState("");
  const [scope, setScope] = useState("call");
  const [grant, setGrant] = useState<GrantFields | undefined>(undefined);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [said, setSaid] = useState("");
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLElement>(null);
  const { id, hash, status, may_decide: mayDecide, decisions } = approval;
  useEffect(() => {
    if (opens) form.current?.querySelector<HTMLElement>("#decide-title")?.focus();
  }, [opens]);
  const send = async (decision: "approve" | "deny"): Promise<void> => {
    if (decision === "deny" && comment.trim() === "") return setProblem(noReason);
    const wanted = decision === "approve" && grant !== undefined ? readGrantForm(grant) : undefined;
    if (typeof wanted === "string") return setProblem({ status: 0, code: "", detail: wanted });
    setBusy(true);
    const body = {
      hash,
      comment,
      ...(decision === "deny" && scope !== "call" && { scope }),
    };
    // The amounts of a grant keep the characters that the person typed.
    const text =
      wanted === undefined ? JSON.stringify(body) : `${JSON.stringify(body).slice(0, -1)},"grant":${wanted}}`;
    const answer = await ask<{ readonly status: string }>(`/approvals/${id}/${decision}`, { body: text });
    setBusy(false);
    setProblem(answer.ok ? undefined : answer.problem);
    if (answer.ok) setSaid(decision === "approve" ? "Your yes is recorded." : "Your denial is recorded.");
    onDecided();
  };
  const isOpen = status === "pending" || status === "approved";
  const voted =
    session.person !== null &&
    decisions.some(({ decision, person }) => decision === "approve" && person === session.person);
  if (!isOpen)
    return h(
      Panel,
      { title: "Decision" },
      h("p", { role: "status" }, said, " ", closedText(approval)),
      problem !== undefined && h(ProblemNote, { of: problem }),
    );
  if (!mayDecide)
    return h(
      Panel,
      { title: "Decision" },
      h(
        "p",
        { role: "status" },
        said,
        " ",
        status === "approved"
          ? approvedText(approval)
          : `You see this call, but the key "${session.key}" may not decide it. It is held until one of the persons it needs decides.`,
      ),
      problem !== undefined && h(ProblemNote, { of: problem }),
    );
  return h(
    "section",
    { class: "panel decide", ref: form, "aria-labelledby": "decide-title" },
    h(
      "header",
      null,
      h("h2", { id: "decide-title", tabIndex: -1 }, voted ? "You approved this call" : "Your decision"),
    ),
    h(
      "p",
      { class: "does", role: "status" },
      said !== "" && `${said} `,
      status === "approved" || voted ? approvedText(approval) : effectText(approval),
    ),
    h("label", { for: "comment" }, "Comment (needed to deny: the agent reads it; it stays forever, so name no person)"),
    h("textarea", {
      id: "comment",
      rows: 2,
      maxLength: 1000,
      value: comment,
      onInput: ({ currentTarget }: { currentTarget: HTMLTextAreaElement }) => setComment(currentTarget.value),
    }),
    h("label", { for: "scope" }, "A denial is for"),
    h(
      "select",
      {
        id: "scope",
        value: scope,
        onChange: ({ currentTarget }: { currentTarget: HTMLSelectElement }) => setScope(currentTarget.value),
      },
      h("option", { value: "call" }, "this call"),
      h("option", { value: "tool" }, "this tool in this session"),
      h("option", { value: "rule" }, "this rule for this key"),
    ),
    approval.grants_allowed !== false &&
      !voted &&
      h(GrantForm, { approval, offer: approval.grants_allowed, fields: grant, onChange: setGrant }),
    problem !== undefined && h(ProblemNote, { of: problem }),
    h(
      "div",
      { class: "two" },
      h(
        "button",
        { type: "button", class: "deny", disabled: isBusy, onClick: () => void send("deny") },
        voted ? "Take it back: deny" : "Deny",
      ),
      h(
        "button",
        { type: "button", class: "approve", disabled: isBusy || voted, onClick: () => void send("approve") },
        grant === undefined ? "Approve this call" : "Approve, and grant",
      ),
    ),
  );
}

function effectText({ needs, has, decide_by: until }: ApprovalDetail): string {
  const others = needs - has - 1;
  const more = others > 0 ? ` ${others} more ${others === 1 ? "person" : "persons"} must approve too.` : "";
  return `If you approve, this call may run once, soon after, if the rules and facts still allow it then. Decide until ${momentText(until)}.${more}`;
}

function approvedText({ use_by: useBy, has, needs }: ApprovalDetail): string {
  if (useBy === null) return `${has} of ${needs} persons have approved.`;
  return `Approved, not used yet: this call may run once, until ${momentText(useBy)}, if it is still allowed then. A denial takes the yes back.`;
}

const closedTexts: Readonly<Record<string, string>> = {
  used: "The call was approved, and the agent has used the yes. It cannot run again with it.",
  denied: "The call was denied. The agent gets the comment as its reason.",
  expired: "The time is over. Nobody denied the call; the agent may ask again.",
  cancelled: "The approval was cancelled. The agent may ask again.",
  superseded: "Another call or approval took its place.",
};

function closedText({ status }: ApprovalDetail): string {
  return closedTexts[status] ?? status;
}

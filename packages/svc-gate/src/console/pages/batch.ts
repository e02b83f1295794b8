import { h, type JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Approval, ApprovalDetail } from "../answers.ts";
import { Area } from "../fields.ts";
import { ask, type Problem } from "../gate.ts";
import { Dialog, Loading, ProblemNote, useAnswer } from "../parts.ts";
import { reasonText, Text } from "../text.ts";
import { CallText } from "../tree.ts";

interface BatchProps {
  readonly approvals: readonly Approval[];
  readonly onClose: () => void;
}

const decisionsMax = 50;

/** Every whole call of a selection, then one confirmation that says how many. All are decided, or none. */
export function BatchDialog({ approvals, onClose }: BatchProps): JSX.Element {
  const [comment, setComment] = useState("");
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const [loaded, setLoaded] = useState<ReadonlySet<string>>(new Set());
  const [listed] = useState(approvals.slice(0, decisionsMax));
  const count = listed.length;
  const isComplete = listed.every(({ id }) => loaded.has(id));
  const decide = async (decision: "approve" | "deny"): Promise<void> => {
    if (decision === "deny" && comment.trim() === "") return setProblem(noReason);
    setBusy(true);
    const decisions = listed.map(({ id, hash }) => ({ id, hash, decision, comment }));
    const answer = await ask("/approvals/decide", { body: JSON.stringify({ decisions }) });
    setBusy(false);
    if (answer.ok) onClose();
    else setProblem(answer.problem);
  };
  return h(
    Dialog,
    { title: `${count} ${count === 1 ? "call" : "calls"}`, onClose },
    h(
      "p",
      null,
      "Read each call. Your decision is for all of them. If one has changed meanwhile, the gate decides none.",
    ),
    approvals.length > count &&
      h("p", { class: "quiet" }, `At most ${decisionsMax} calls are decided together; the rest stay selected.`),
    h(
      "ol",
      { class: "batch" },
      listed.map((approval) =>
        h(Whole, { key: approval.id, approval, onLoaded: () => setLoaded((old) => new Set(old).add(approval.id)) }),
      ),
    ),
    h(
      "div",
      { class: "decide" },
      h(Area, {
        id: "batch-comment",
        label: "Comment (needed to deny). The agent reads it. It stays forever, so do not name a person.",
        rows: 2,
        value: comment,
        onText: setComment,
        bytesMax: 1000,
      }),
      h("p", { class: "quiet" }, denialsText),
      problem !== undefined && h(ProblemNote, { of: problem }),
      h(
        "div",
        { class: "two" },
        h(
          "button",
          { type: "button", class: "deny", disabled: isBusy || !isComplete, onClick: () => void decide("deny") },
          `Deny all ${count}`,
        ),
        h(
          "button",
          { type: "button", class: "approve", disabled: isBusy || !isComplete, onClick: () => void decide("approve") },
          `Approve all ${count}`,
        ),
      ),
    ),
  );
}

/** Persons who deny several calls should know what follows (spec/approvals.md). */
export const denialsText =
  "After three denials under one rule within an hour, the gate blocks further calls of that key under the rule.";

export const noReason: Problem = { status: 0, code: "", detail: "Say why you deny it: the agent reads your words." };

function Whole({ approval, onLoaded }: { readonly approval: Approval; readonly onLoaded: () => void }): JSX.Element {
  const { value, raw, problem } = useAnswer<ApprovalDetail>(`/approvals/${approval.id}`, [
    "tool_input",
    "platform_state",
  ]);
  const isLoaded = value !== undefined;
  const { tool_name: tool } = approval;
  const facts = raw["platform_state"] ?? "null";
  useEffect(() => {
    if (isLoaded) onLoaded();
  }, [isLoaded]);
  return h(
    "li",
    null,
    h(
      "h3",
      null,
      h(Text, { of: tool }),
      h("span", { class: "quiet" }, " ", h(Text, { of: reasonText(approval.reason) })),
    ),
    problem !== undefined && h(ProblemNote, { of: problem }),
    value === undefined && problem === undefined && h(Loading, {}),
    value !== undefined &&
      h(CallText, {
        text: raw["tool_input"] ?? "null",
        label: `Input of ${tool}`,
        root: "input",
        mayDiffer: value.may_differ,
      }),
    value !== undefined && facts !== "null" && h("h4", null, "Facts from the platform"),
    value !== undefined &&
      facts !== "null" &&
      h(CallText, { text: facts, label: `Facts for ${tool}`, root: "platform" }),
  );
}

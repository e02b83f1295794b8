import { h, type JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ApprovalDetailJson, ApprovalJson } from "../../../../core/src/approvals/mod.ts";
import { el } from "../elements.ts";
import { Button } from "../fields.ts";
import { callMembers, Dialog, FactsSource, useAct, useAnswer } from "../parts.ts";
import { reasonText, Text } from "../text.ts";
import { callRoom, CallText, isCallShownWhole, opensText } from "../tree.ts";
import { Comment, denialsText, noReason } from "./comment.ts";

interface BatchProps {
  readonly approvals: readonly ApprovalJson[];
  readonly onClose: () => void;
}

const decisionsMax = 50;

/** Every whole call of a selection, then one confirmation that says how many. All are decided, or none. */
export default function BatchDialog({ approvals, onClose }: BatchProps): JSX.Element {
  const [comment, setComment] = useState("");
  const { act, refuse, isBusy, note } = useAct();
  /** The loaded calls, and whether the dialog shows them whole. */
  const [loaded, setLoaded] = useState<ReadonlyMap<string, boolean>>(new Map());
  const [listed] = useState(approvals.slice(0, decisionsMax));
  const count = listed.length;
  const isOff = isBusy || !listed.every(({ id }) => loaded.has(id));
  const decide = async (decision: "approve" | "deny"): Promise<void> => {
    if (decision === "deny" && comment.trim() === "") return refuse(noReason);
    const decisions = listed.map(({ id, hash }) => ({ id, hash, decision, comment }));
    return act("/approvals/decide", JSON.stringify({ decisions }), onClose);
  };
  return h(
    Dialog,
    { title: `${count} ${count === 1 ? "call" : "calls"}`, onClose },
    el.p("Read each call. Your decision is for all of them. If one has changed meanwhile, the gate decides none."),
    approvals.length > count &&
      el.p({ class: "quiet" }, `At most ${decisionsMax} calls are decided together; the rest stay selected.`),
    el.ol(
      { class: "batch" },
      listed.map((approval) =>
        h(Whole, {
          key: approval.id,
          approval,
          room: callRoom / count,
          onLoaded: (isWhole) => setLoaded((old) => new Map(old).set(approval.id, isWhole)),
        }),
      ),
    ),
    el.div(
      { class: "decide" },
      h(Comment, { id: "batch-comment", value: comment, onText: setComment }),
      el.p({ class: "quiet" }, denialsText),
      [...loaded.values()].includes(false) && el.p({ class: "note" }, opensText),
      note,
      el.div(
        { class: "two" },
        h(Button, { kind: "deny", isOff, onPress: () => decide("deny") }, `Deny all ${count}`),
        h(Button, { kind: "approve", isOff, onPress: () => decide("approve") }, `Approve all ${count}`),
      ),
    ),
  );
}

interface WholeProps {
  readonly approval: ApprovalJson;
  /** The most elements of its input, and of its facts. */
  readonly room: number;
  readonly onLoaded: (isWhole: boolean) => void;
}

function Whole({ approval, room, onLoaded }: WholeProps): JSX.Element {
  const { value, raw, note } = useAnswer<ApprovalDetailJson>(`/approvals/${approval.id}`, callMembers);
  const isLoaded = value !== undefined;
  const { tool_name: tool } = approval;
  const { tool_input: input = "null", platform_state: facts = "null" } = raw;
  useEffect(() => {
    if (isLoaded) onLoaded(isCallShownWhole(input, room) && isCallShownWhole(facts, room));
  }, [isLoaded]);
  return el.li(
    el.h3(h(Text, { of: tool }), el.span({ class: "quiet" }, " ", h(Text, { of: reasonText(approval.reason) }))),
    note,
    value !== undefined &&
      h(CallText, { text: input, label: `Input of ${tool}`, root: "input", mayDiffer: value.may_differ, room }),
    value !== undefined &&
      facts !== "null" &&
      el.h4("Facts from the platform ", h(FactsSource, { kind: value.key_kind })),
    value !== undefined &&
      facts !== "null" &&
      h(CallText, { text: facts, label: `Facts for ${tool}`, root: "platform", room }),
  );
}

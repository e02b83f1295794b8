import { h, type ComponentChildren, type JSX } from "preact";
import { useState } from "preact/hooks";
import type { ReceiptPage, SessionJson } from "../../../../core/src/wire/mod.ts";
import { el } from "../elements.ts";
import { useExample } from "../example.ts";
import { Area, Button } from "../fields.ts";
import { Command, empty, useAct, useAnswer, Verdict } from "../parts.ts";
import { link } from "../route.ts";
import { reasonText, Text } from "../text.ts";

/** An empty inbox: on a new gate it shows what to do next, else what would appear here. */
export default function FirstSteps({ session }: { readonly session: SessionJson }): JSX.Element {
  const mayRead = session.scopes.includes("receipts");
  const { value, again } = useAnswer<ReceiptPage>(mayRead ? "/receipts?limit=1" : undefined);
  const isNew = value?.receipts.length === 0;
  // A key of the root does not open a tenant's console.
  const of = session.tenant === null ? "" : ` --tenant ${session.tenant}`;
  if (!isNew && session.approvers)
    return empty(
      "No call waits for a person",
      session.mode === "observe"
        ? "The gate observes: it lets every call through and asks no person. In assist or enforce mode, calls wait here."
        : "A call appears here when a rule of the contract says ESCALATE. This page shows it within a second.",
    );
  return el.div(
    { class: "steps" },
    el.h2("The first minutes"),
    el.ol(
      h(
        Step,
        { title: "Send a check", isDone: value !== undefined && !isNew },
        h(SendCheck, { session, onSent: () => again(true) }),
      ),
      h(
        Step,
        { title: "Write a rule", isDone: false },
        el.p(
          "The file mandate.yaml names the contracts in force. Change a rule in a contract, try it on the page ",
          el.a({ href: link("/explain") }, "Explain"),
          ", then put it in force:",
        ),
        h(Command, { text: "reload" }),
      ),
      h(
        Step,
        { title: "Make a key for a person who decides", isDone: session.approvers },
        el.p("On the machine of the gate, add a person and make a key. Then sign in here with that key."),
        h(Command, { text: "persons add anna" }),
        h(Command, { text: `keys create anna-laptop --scopes approve,receipts,rules --person anna${of}` }),
      ),
      h(
        Step,
        { title: "Enforce", isDone: session.mode !== "observe" },
        el.p("When the verdicts on the page ", el.a({ href: link("/rollout") }, "Rollout"), " are right:"),
        h(Command, { text: "reload --mode enforce" }),
      ),
    ),
  );
}

interface StepProps {
  readonly title: string;
  readonly isDone: boolean;
  readonly children?: ComponentChildren;
}

function Step({ title, isDone, children }: StepProps): JSX.Element {
  return el.li(
    { class: isDone ? "done" : "" },
    el.h3(title, isDone && el.span({ class: "quiet" }, " (done)")),
    children,
  );
}

const emptyCall = '{\n  "tool_name": "",\n  "tool_input": {}\n}';

interface CheckAnswer {
  readonly verdict: string;
  readonly reason: string;
  readonly receipt: { readonly seq: number };
}

function SendCheck({ session, onSent }: { readonly session: SessionJson; readonly onSent: () => void }): JSX.Element {
  const { call } = useExample("", session.scopes.includes("rules"));
  const [typed, setTyped] = useState<string | undefined>(undefined);
  const body = typed ?? call ?? emptyCall;
  const [checked, setChecked] = useState<CheckAnswer | undefined>(undefined);
  const { act, note } = useAct<CheckAnswer>();
  const send = (): Promise<void> =>
    act("/check", body, (answer) => {
      setChecked(answer);
      onSent();
    });
  if (session.mode !== "observe" || !session.scopes.includes("check"))
    return el.p(
      "Send a check from the agent's code, with a key of scope check. In observe mode, a key of that scope can send one here too.",
    );
  return el.div(
    el.p("The gate observes: it records its verdict and lets every call through. Send a check as an agent would:"),
    h(Area, { id: "first-check", label: "The body of a check", rows: 7, value: body, onText: setTyped, isCode: true }),
    h(Button, { kind: "primary", onPress: send }, "Send the check"),
    note,
    checked !== undefined &&
      el.p(
        { role: "status" },
        h(Verdict, { of: checked.verdict }),
        " ",
        h(Text, { of: reasonText(checked.reason) }),
        " ",
        el.a({ href: link(`/receipts/${checked.receipt.seq}`) }, `Receipt ${checked.receipt.seq}`),
      ),
  );
}

import { h, type JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ExplainedJson, ReceiptJson, SessionJson } from "../../../../core/src/wire/mod.ts";
import { el } from "../elements.ts";
import { queryText } from "../gate.ts";
import { callMembers, Facts, FactsSource, LoadingNote, panel, Title, textLink, useAnswer, Verdict } from "../parts.ts";
import { findJudgement, prove, type Proof } from "../proof.ts";
import { link } from "../route.ts";
import { reasonText, Text } from "../text.ts";
import { Moment } from "../time.ts";
import { CallText } from "../tree.ts";
import { RuleList, RulesOf } from "./rules.ts";

interface ReceiptProps {
  readonly seq: number;
  readonly session: SessionJson;
}

/** One receipt: the call, the rules with their values, its proof, its outcome, and the story of its approval. */
export default function ReceiptPageOf({ seq, session }: ReceiptProps): JSX.Element {
  const { value, raw, note } = useAnswer<ReceiptJson>(`/receipts/${seq}`, callMembers);
  const title = `Receipt ${seq}`;
  if (value === undefined) return el.div(h(Title, { text: title }), note);
  const isCheck = value.act === undefined && typeof value.verdict === "string";
  return el.article(
    h(
      Title,
      { text: title },
      typeof value.answered === "string" && h(Verdict, { of: value.answered }),
      el.nav(
        { class: "pager", "aria-label": "Rows" },
        seq > 1 && el.a({ class: "small button", href: link(`/receipts/${seq - 1}`) }, "Row before"),
        el.a({ class: "small button", href: link(`/receipts/${seq + 1}`) }, "Row after"),
      ),
    ),
    el.p({ class: "sentence" }, h(Text, { of: reasonText(value.reason ?? null) })),
    el.div(
      { class: "columns" },
      el.div(
        { class: "main" },
        panel(
          isCheck ? "The call" : "The event",
          h(CallText, { text: raw["tool_input"] ?? "null", label: "Input", root: "input" }),
        ),
        isCheck &&
          panel(
            { title: "Facts from the platform", more: h(FactsSource, { kind: value.key_kind }) },
            h(CallText, { text: raw["platform_state"] ?? "null", label: "Facts", root: "platform" }),
          ),
        isCheck && h(RulesOf, { seq, fallback: [value.rule ?? ""] }),
        isCheck && h(AgainNow, { seq }),
      ),
      el.div(
        { class: "side" },
        h(About, { receipt: value }),
        isCheck && h(Story, { receipt: value }),
        isCheck && h(Outcome, { receipt: value }),
        h(ProofPanel, { receipt: value, raw, session }),
        h(Bytes, { receipt: value }),
      ),
    ),
  );
}

/** The bytes that the chain commits to, for those who hash them themselves. */
function Bytes({ receipt }: { readonly receipt: ReceiptJson }): JSX.Element {
  return panel(
    "Leaf and evidence",
    el.details(
      el.summary("The leaf, which is hashed"),
      el.pre({ class: "received", tabIndex: 0 }, h(Text, { of: receipt.leaf })),
    ),
    el.details(
      el.summary(`The ${receipt.evidence.length} parts of the evidence`),
      el.pre({ class: "received", tabIndex: 0 }, h(Text, { of: receipt.evidence.join("\n") })),
    ),
  );
}

function About({ receipt }: { readonly receipt: ReceiptJson }): JSX.Element {
  const {
    at,
    tool_name: sent,
    tool = sent,
    act,
    key,
    session_id: session,
    mode,
    verdict,
    answered,
    rule,
    contract,
  } = receipt;
  const rows: [string, JSX.Element | string][] = [["Time", h(Moment, { at })]];
  if (typeof tool === "string") rows.push(["Tool", h(Text, { of: tool })]);
  if (typeof sent === "string" && sent !== tool) rows.push(["Sent as", h(Text, { of: sent })]);
  if (act !== undefined) rows.push(["Event", h(Text, { of: act })]);
  if (typeof verdict === "string") rows.push(["Verdict", h(Verdict, { of: verdict })]);
  if (verdict !== answered && typeof answered === "string")
    rows.push(["Answered", el.span(h(Verdict, { of: answered }), ` in mode ${mode ?? ""}`)]);
  if (typeof rule === "string") rows.push(["Rule", h(Text, { of: rule })]);
  if (typeof key === "string") rows.push(["Key", textLink(`/receipts${queryText({ key })}`, key)]);
  if (typeof session === "string")
    rows.push(["Session", textLink(`/receipts${queryText({ session_id: session })}`, session)]);
  if (typeof mode === "string") rows.push(["Mode", mode]);
  if (typeof contract === "string")
    rows.push([
      "Contract",
      el.a({ href: link(`/contract${queryText({ contract })}`) }, el.code(contract.slice(0, 19))),
    ]);
  return panel("About", h(Facts, { of: rows }));
}

const hows: Readonly<Record<string, string>> = {
  opened: "This call opened an approval.",
  attached: "This call was attached to the open approval of an earlier call.",
  used: "This call used an approval.",
  grant: "A grant let this call through.",
  denied: "A person's denial blocked this call.",
  capped: "Too many calls waited already, so no approval was opened.",
  stopped: "A stop blocked this call.",
  closed: "The call named an approval that was closed.",
};

/** How a person took part in the decision. */
function Story({ receipt }: { readonly receipt: ReceiptJson }): JSX.Element | null {
  const judgement = findJudgement(receipt);
  if (judgement === undefined) return null;
  const { how = "", approval, stop, grant } = judgement;
  const row = how === "opened" ? receipt.seq : (approval ?? judgement.own);
  return panel(
    "Approval",
    el.p(hows[how] ?? how),
    row !== undefined && h(ApprovalLink, { row }),
    how === "opened" &&
      approval !== undefined &&
      el.p("It replaced the one of ", el.a({ href: link(`/receipts/${approval}`) }, `row ${approval}`), "."),
    stop !== undefined && el.p(el.a({ href: link(`/receipts/${stop}`) }, `The stop is row ${stop}.`)),
    grant !== undefined && el.p(el.a({ href: link(`/receipts/${grant}`) }, `The grant is row ${grant}.`)),
  );
}

function ApprovalLink({ row }: { readonly row: number }): JSX.Element | null {
  const { value } = useAnswer<ReceiptJson>(`/receipts/${row}`, callMembers);
  if (value === undefined) return null;
  return el.p(
    el.a(
      { href: link(`/approvals/apr_${row}_${value.hash.slice(0, 32)}`) },
      `The approval of row ${row}, with who said what`,
    ),
  );
}

const outcomes: Readonly<Record<string, string>> = {
  done: "done: the tool ran",
  failed: "failed: the tool did not do it",
  unknown: "unknown: the caller lost track of the tool",
};

/** The outcome that the calling code reported, with the row that says so. */
function Outcome({ receipt: { answered, outcome } }: { readonly receipt: ReceiptJson }): JSX.Element {
  const none = answered === "ALLOW" ? "nobody has reported one" : "the call was not let through";
  return panel(
    "Outcome",
    outcome === undefined
      ? el.p(none)
      : el.p(
          outcomes[outcome.status] ?? outcome.status,
          ", ",
          el.a({ href: link(`/receipts/${outcome.seq}`) }, `row ${outcome.seq}`),
        ),
  );
}

function AgainNow({ seq }: { readonly seq: number }): JSX.Element {
  const [isRequested, setRequested] = useState(false);
  const body = JSON.stringify({ receipt: seq });
  const { value, note } = useAnswer<ExplainedJson>(isRequested ? "/explain" : undefined, [], body);
  return panel(
    "Under the contract in force now",
    el.p(
      { class: "acts" },
      !isRequested && el.button({ type: "button", onClick: () => setRequested(true) }, "Decide again"),
      el.a({ class: "button", href: link(`/explain${queryText({ receipt: seq })}`) }, "Change the call and explain it"),
    ),
    note,
    value !== undefined &&
      el.div(
        el.p(h(Verdict, { of: value.verdict }), " ", h(Text, { of: reasonText(value.reason) })),
        h(RuleList, { explained: value }),
      ),
  );
}

/** The proof is made in the browser, when the page opens. */
function ProofPanel({ receipt, raw, session }: ReceiptProofProps): JSX.Element {
  const [proof, setProof] = useState<Proof | string | undefined>(undefined);
  useEffect(() => {
    setProof(undefined);
    prove(receipt, raw, session.vkeys).then(setProof, (error: unknown) =>
      setProof(error instanceof Error ? error.message : String(error)),
    );
  }, [receipt.hash]);
  if (proof === undefined) return panel("Proof", h(LoadingNote, null));
  if (typeof proof === "string")
    return panel("Proof", el.p({ class: "problem" }, "This browser could not make the proof. ", proof));
  const isValid = proof.steps.every((step) => step.isTrue);
  return panel(
    "Proof",
    el.p(
      { class: isValid ? "valid" : "problem", role: "status" },
      isValid
        ? "The proof is valid. This browser computed it."
        : "The proof is NOT valid: keep this page, and verify the ledger.",
    ),
    el.ol(
      { class: "proof" },
      proof.steps.map(({ what, isTrue }) =>
        el.li({ key: what, class: isTrue ? "yes" : "no" }, isTrue ? "✓ " : "✕ ", what),
      ),
    ),
    el.p(
      { class: "quiet" },
      "The row is unchanged, and it is in the ledger that this key signs. ",
      "The key came from this gate, so compare it with your own copy.",
    ),
    el.code({ class: "key" }, h(Text, { of: proof.signer })),
    el.p(
      el.button(
        { type: "button", class: "small", onClick: () => save(`row-${receipt.seq}.tlog-proof`, proof.file) },
        "Download the proof",
      ),
    ),
  );
}

interface ReceiptProofProps {
  readonly receipt: ReceiptJson;
  readonly raw: Readonly<Record<string, string>>;
  readonly session: SessionJson;
}

function save(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  URL.revokeObjectURL(url);
}

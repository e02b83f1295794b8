import { h, type JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { InForceJson, ReceiptJson, ReceiptPage, ReportJson } from "../../../../core/src/wire/mod.ts";
import { el } from "../elements.ts";
import { ask, commandText, queryText } from "../gate.ts";
import { diffLines, type DiffLine } from "../lines.ts";
import { empty, LoadingNote, panel, ProblemNote, table, Title, useAnswer } from "../parts.ts";
import { link, useRoute } from "../route.ts";
import { reasonText, Text } from "../text.ts";
import { Ago } from "../time.ts";

/** The contract in force, or the one of a receipt, with how often each rule spoke, and its changes. */
export default function ContractPage(): JSX.Element {
  const { query } = useRoute();
  const named = query.get("contract") ?? undefined;
  const { value, note } = useAnswer<string>(`/rules${queryText({ contract: named })}`);
  const report = useAnswer<ReportJson>("/report");
  const counts = new Map<string, number>();
  // A rule has a line for each verdict.
  for (const { rule, receipts } of report.value?.by_rule ?? []) counts.set(rule, (counts.get(rule) ?? 0) + receipts);
  return el.div(
    h(
      Title,
      { text: named === undefined ? "Contract in force" : "Contract of a receipt" },
      named !== undefined && el.a({ class: "small button", href: link("/contract") }, "In force"),
    ),
    el.p(
      { class: "sentence" },
      "To change it, edit the files on the gate's machine and run ",
      el.code(commandText("reload")),
      ".",
    ),
    note,
    value !== undefined && h(Lines, { text: value, counts, rule: query.get("rule") ?? "" }),
    h(Changes, null),
  );
}

interface LinesProps {
  readonly text: string;
  readonly counts: ReadonlyMap<string, number>;
  /** The rule that the person looks for, such as `payments.price-known`. */
  readonly rule: string;
}

function Lines({ text, counts, rule: wanted }: LinesProps): JSX.Element {
  const found = useRef<HTMLTableRowElement>(null);
  useEffect(() => found.current?.scrollIntoView({ block: "center" }), [wanted]);
  let contract = "";
  const rows = text.split("\n").map((line, at) => {
    contract = /^contract: *([\w.-]+)/.exec(line)?.[1] ?? contract;
    const rule = /^\s*-? *\{? *rule: *([\w-]+)/.exec(line)?.[1];
    const count = rule === undefined ? undefined : counts.get(`${contract}.${rule}`);
    const isWanted = rule !== undefined && `${contract}.${rule}` === wanted;
    return el.tr(
      isWanted ? { key: at, class: "here-line", ref: found } : { key: at },
      el.td({ class: "number" }, at + 1),
      el.td({ class: "line" }, h(SourceLine, { of: line })),
      el.td(
        { class: "times" },
        count !== undefined && el.a({ href: link("/rollout") }, `${count} ${count === 1 ? "call" : "calls"}`),
      ),
    );
  });
  return el.div(
    { class: "scroll", tabIndex: 0, role: "region", "aria-label": "The contract's text" },
    table("source", rows),
  );
}

/** A line of a file. Its indentation is shown as it is. */
function SourceLine({ of }: { readonly of: string }): JSX.Element {
  const [indent = ""] = /^ */.exec(of) ?? [];
  return el.span(indent, h(Text, { of: of.slice(indent.length) }));
}

function Changes(): JSX.Element {
  const { value, problem } = useAnswer<ReceiptPage>("/receipts?act=reload&limit=20");
  const rows = value?.receipts ?? [];
  return panel(
    "Changes",
    problem !== undefined && h(ProblemNote, { of: problem }),
    value !== undefined &&
      rows.length === 0 &&
      empty("The contract has not changed yet", "Each reload that changes it appears here with a text diff."),
    el.ul(
      { class: "changes" },
      rows.map((row) => h(Change, { key: row.seq, row })),
    ),
  );
}

function Change({ row }: { readonly row: ReceiptJson }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return el.li(
    el.a({ href: link(`/receipts/${row.seq}`) }, `Row ${row.seq}`),
    " ",
    h(Text, { of: reasonText(row.reason ?? null) }),
    " ",
    h(Ago, { at: row.at }),
    " ",
    el.button(
      { type: "button", class: "small", "aria-expanded": isOpen, onClick: () => setOpen(!isOpen) },
      isOpen ? "Hide the diff" : "Show the diff",
    ),
    isOpen && h(Diff, { seq: row.seq }),
  );
}

/** The texts before and after a change. The row names both digests. */
function Diff({ seq }: { readonly seq: number }): JSX.Element {
  const [lines, setLines] = useState<readonly DiffLine[] | string | undefined>(undefined);
  useEffect(() => {
    void loadDiff(seq).then(setLines);
  }, [seq]);
  if (lines === undefined) return h(LoadingNote, {});
  if (typeof lines === "string") return el.p({ class: "problem" }, lines);
  const marks = { same: " ", added: "+", removed: "−" };
  const near = lines.filter(
    (line, at) => line.kind !== "same" || lines.slice(Math.max(0, at - 3), at + 4).some(({ kind }) => kind !== "same"),
  );
  return el.div(
    { class: "scroll", tabIndex: 0, role: "region", "aria-label": "The change" },
    table(
      "source diff",
      near.map(({ kind, text, number }, at) =>
        el.tr(
          { key: at, class: kind },
          el.td({ class: "number" }, number),
          el.td({ class: "mark" }, marks[kind]),
          el.td({ class: "line" }, h(SourceLine, { of: text })),
        ),
      ),
    ),
  );
}

async function loadDiff(seq: number): Promise<readonly DiffLine[] | string> {
  type Reload = ReceiptJson & { readonly tool_input: Partial<Record<"before" | "now", InForceJson>> };
  const row = await ask<Reload>(`/receipts/${seq}`);
  if (!row.ok) return row.problem.detail;
  const { before, now } = row.value.tool_input;
  const [old, young] = await Promise.all([
    contractText(before?.contract),
    contractText(now?.contract ?? row.value.contract ?? undefined),
  ]);
  if (old === undefined || young === undefined) return "The ledger does not have the text of one of the two contracts.";
  return diffLines(old, young);
}

async function contractText(digest: string | undefined): Promise<string | undefined> {
  if (digest === undefined) return undefined;
  const contract = digest.startsWith("sha256:") ? digest : `sha256:${digest}`;
  const answer = await ask<string>(`/rules${queryText({ contract })}`);
  return answer.ok ? answer.value : undefined;
}

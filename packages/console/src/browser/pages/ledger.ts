import { h, type JSX } from "preact";
import { useState } from "preact/hooks";
import type { EndpointsJson, SessionJson, VerifiedJson } from "../../../../core/src/wire/mod.ts";
import { el } from "../elements.ts";
import { Button } from "../fields.ts";
import { Command, Facts, panel, ProblemNote, table, Title, useAct, useAnswer } from "../parts.ts";
import { Text } from "../text.ts";
import { Ago, Moment } from "../time.ts";

/** The ledger: its head, who vouches for it, and what it still has to deliver. */
export default function LedgerPage({ session }: { readonly session: SessionJson }): JSX.Element {
  return el.div(
    h(Title, { text: "Ledger" }),
    el.div(
      { class: "grid" },
      h(Head, { session }),
      h(Verify, null),
      session.scopes.includes("admin") && h(Deliveries, null),
    ),
  );
}

function Head({ session }: { readonly session: SessionJson }): JSX.Element {
  const { value, note } = useAnswer<string>("/checkpoint");
  const [origin = "", rows = "", root = ""] = (value ?? "").split("\n");
  return panel(
    "Signed head",
    note,
    value !== undefined &&
      h(Facts, {
        of: [
          ["Name", h(Text, { of: origin })],
          ["Rows", Number(rows).toLocaleString()],
          ["Root", el.code(h(Text, { of: root }))],
          ["Signed by", session.vkeys.map((key) => el.code({ key, class: "key" }, h(Text, { of: key })))],
        ],
      }),
    el.p(
      { class: "quiet" },
      "Keep a copy of this key elsewhere. With it, anyone can verify the ledger without trusting this gate.",
    ),
  );
}

function Verify(): JSX.Element {
  const [check, setCheck] = useState<VerifiedJson | undefined>(undefined);
  const [at, setAt] = useState(0);
  const { act, isBusy, note } = useAct<VerifiedJson>();
  const verify = (): Promise<void> =>
    act("/ledger/verify", undefined, (found) => {
      setCheck(found);
      setAt(Date.now());
    });
  return panel(
    "Verify",
    el.p("The gate reads every row and compares its hashes."),
    h(Button, { kind: "primary", isOff: isBusy, onPress: verify }, isBusy ? "Verifying …" : "Verify now"),
    note,
    check !== undefined && h(VerifyNote, { check, at }),
    el.p({ class: "quiet" }, "A deep verification also decides every call again. Run it on the gate's machine:"),
    h(Command, { text: "verify --deep" }),
  );
}

function VerifyNote({ check, at }: { readonly check: VerifiedJson; readonly at: number }): JSX.Element {
  const { ok, rows, anchors, note } = check;
  return el.div(
    { role: "status" },
    el.p(
      { class: ok ? "valid" : "problem" },
      ok
        ? `✓ ${rows.toLocaleString()} rows are valid.`
        : `✕ The ledger is broken: ${JSON.stringify(check.first_broken)}`,
    ),
    el.p({ class: "quiet" }, "Verified ", h(Ago, { at })),
    anchors.length > 0 &&
      table(
        "list",
        anchors.map(({ by, seq, at: when }) =>
          el.tr(
            { key: by },
            el.th({ scope: "row" }, h(Text, { of: by })),
            el.td(`up to row ${seq}`),
            el.td(when === null ? "" : h(Ago, { at: when })),
          ),
        ),
        { caption: el.caption("Who vouches for the rows") },
      ),
    note !== undefined && el.p({ class: "note" }, h(Text, { of: note })),
  );
}

function Deliveries(): JSX.Element {
  const { value, problem } = useAnswer<EndpointsJson>("/admin/notify");
  return panel(
    "Webhooks",
    problem !== undefined && h(ProblemNote, { of: problem }),
    value?.endpoints.length === 0 && el.p({ class: "quiet" }, "No endpoint is set (SVC_NOTIFY)."),
    (value?.endpoints ?? []).map(({ endpoint, row, waiting, died, dead }) =>
      el.div(
        { key: endpoint },
        el.h3(h(Text, { of: endpoint })),
        el.p(
          row === null ? "Another gate sends." : `Delivered up to row ${row} of ${value?.rows ?? 0}.`,
          ` ${waiting.length} wait for another attempt. ${died} could not be delivered.`,
        ),
        el.ul(
          dead.map(({ id, at, why }) => el.li({ key: id }, h(Moment, { at }), " ", h(Text, { of: `${id}: ${why}` }))),
        ),
      ),
    ),
  );
}

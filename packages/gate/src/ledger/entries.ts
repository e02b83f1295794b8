import type { Approval } from "../../../core/src/approvals/mod.ts";
import { canonical, type Canonical, type KeyKind, type Mode, type Verdict } from "../../../core/src/wire/mod.ts";
import type { Erasure } from "../../../core/src/record/entry/erasure.ts";
import type { SensitiveMember } from "../../../core/src/record/entry/evidence.ts";
import type { Leaf } from "../../../core/src/record/entry/leaf.ts";
import type { Outcome } from "../../../core/src/record/entry/outcome-rows.ts";
import { changeColumns, resultVerdict, type StoredRow } from "../../../core/src/record/entry/row.ts";
import { callText } from "../../../core/src/record/entry/verifier.ts";
import type { StoredEffect } from "./store/store.ts";

/** One decided and answered check. */
export interface CheckEntry {
  /** Milliseconds since the epoch, not less than in the previous row. */
  readonly at: number;
  readonly keyName: string;
  readonly mode: Mode;
  /** The tool's own name, if a contract routes the call; else the name that was sent. */
  readonly toolName: string;
  /** The alias that was sent instead; undefined for the tool's own name. */
  readonly alias?: string | undefined;
  /** True if a contract routes the tool. Only then does the leaf name the tool. */
  readonly routed: boolean;
  readonly sessionId: string | null;
  /** The received text, or its replacement from `cutInputText`. */
  readonly inputText: string;
  readonly platformText: string | null;
  /** Members of `inputText` and `platformText` that become separate parts of the evidence. */
  readonly sensitive?: readonly SensitiveMember[];
  readonly verdict: Verdict;
  readonly answered: Verdict;
  readonly reason: string;
  readonly rule: string;
  /** SHA-256 of the body of GET /rules, in hex. */
  readonly contract: string;
  readonly outcome: Canonical;
  /** The id of the approval that the caller named. */
  readonly approvalId?: string | undefined;
  /** Undefined for an ordinary key. */
  readonly keyKind?: KeyKind | undefined;
}

/** A person's act, which is a row of its own and not a check. */
export interface ChangeEntry {
  /** Milliseconds since the epoch, not less than in the previous row. */
  readonly at: number;
  /** The name of the key that the person used. */
  readonly by: string;
  /** For example `keys.create`. */
  readonly act: string;
  /** The details of the act: the row's `tool_input`. */
  readonly body: Canonical;
  /** One sentence for a person. */
  readonly reason: string;
  /** SHA-256 of the contract in force after the act, in hex. */
  readonly contract: string;
  readonly mode: Mode;
  /** The parts of earlier rows that this row reports as erased. */
  readonly erases?: Erasure | undefined;
  /** The open approvals that this row cancels. */
  readonly ends?: readonly Approval[] | undefined;
  /** The open approvals whose votes this row ends. */
  readonly reopens?: readonly Approval[] | undefined;
}

/** The outcome of a call, and what it does to counters. Counters and keys are digests. */
export interface OutcomeEntry extends Pick<ChangeEntry, "at" | "by" | "contract" | "mode" | "reason"> {
  readonly outcome: Outcome;
  /** Amounts that count from this row on. */
  readonly added: readonly Pick<StoredEffect, "amount" | "counter" | "key">[];
  /** Events of earlier rows that count no more. */
  readonly taken: readonly Omit<StoredEffect, "held" | "takenBy">[];
}

/** A tool's result for a check, as the calling code reports it. No gate accepts such reports yet. */
export interface ResultEntry extends Pick<
  CheckEntry,
  "at" | "contract" | "keyName" | "mode" | "routed" | "sessionId" | "toolName"
> {
  /** The row of the check, which has the same key, tool and session. */
  readonly check: number;
  /** The values of the result as plain texts. The row has only keyed digests of the values. */
  readonly values: readonly string[];
}

/** An event of a counter: `counter` is the digest of the counter's definition, `key` is the plain text of the key. */
export interface CounterEvent {
  readonly counter: string;
  readonly key: string;
  readonly amount: string;
  /** True if the amount is reserved until a person decides. */
  readonly held?: true;
}

export interface CounterLookup {
  readonly counter: string;
  readonly key: string;
  readonly after: number;
}

/** An event that a fold found in an existing row. */
export interface FoldedEvent extends CounterEvent {
  readonly seq: number;
  readonly at: number;
  /** The row of the outcome that takes the event back. */
  readonly takenBy?: number;
}

/** A row before it follows another in the chain. */
export interface UnlinkedRow {
  readonly leaf: Omit<Leaf, "engine" | "evidence" | "log" | "prev" | "seq" | "v">;
  /** The texts of its evidence, in their order. */
  readonly parts: readonly string[];
  readonly columns: Pick<StoredRow, "session" | "tool" | "verdict">;
  readonly sensitive?: readonly SensitiveMember[] | undefined;
}

/** The members of a leaf that only some kinds of rows have. */
const absent = { act: null, answered: null, check: null, rule: null, tool: null, verdict: null } as const;

/** @param effects their text */
export function checkRow(entry: CheckEntry, effects: string): UnlinkedRow {
  const { at, answered, mode, rule, sensitive, verdict } = entry;
  const tool = entry.routed ? entry.toolName : null;
  const contract = `sha256:${entry.contract}`;
  return {
    leaf: { ...absent, at, answered, contract, key: entry.keyName, kind: "check", mode, rule, tool, verdict },
    parts: [
      callText(entry.alias ?? entry.toolName, entry.sessionId, {
        approval: entry.approvalId,
        keyKind: entry.keyKind,
      }),
      entry.inputText,
      entry.platformText ?? "null",
      JSON.stringify(entry.reason),
      canonical(entry.outcome),
      effects,
    ],
    columns: { session: entry.sessionId, tool: entry.toolName, verdict: entry.verdict },
    sensitive,
  };
}

/** @param effects their text */
export function changeRow(
  { at, by, act, body, reason, contract, mode }: Omit<ChangeEntry, "ends" | "erases" | "reopens">,
  effects: string,
): UnlinkedRow {
  return {
    leaf: { ...absent, act, at, contract: `sha256:${contract}`, key: by, kind: "change", mode },
    parts: ["null", canonical(body), "null", JSON.stringify(reason), "{}", effects],
    columns: changeColumns,
  };
}

/** A prefix of values, so that a value and a counter's key never have the same digest. */
const resultDomain = "svc-gate/result/1\n";

/** @param digest makes keyed digests */
export function resultRow(entry: ResultEntry, digest: (text: string) => string): UnlinkedRow {
  const { at, check, mode, routed, sessionId: session, toolName: tool } = entry;
  const contract = `sha256:${entry.contract}`;
  const digests = new Set(entry.values.map((value) => digest(`${resultDomain}${value}`)));
  return {
    leaf: { ...absent, at, check, contract, key: entry.keyName, kind: "result", mode, tool: routed ? tool : null },
    parts: [callText(tool, session), canonical({ digests: [...digests].toSorted() }), "null", "null", "{}", "[]"],
    columns: { session, tool, verdict: resultVerdict },
  };
}

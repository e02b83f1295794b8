import { leafHash, parseLeaf, outcomeRows } from "../../../../core/src/record/entry/mod.ts";
import type { AppendTransaction } from "../../ledger/mod.ts";
import { addDecimals, bad, good, quote, refuse, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";
import type { Exclusive, TimedTransaction } from "../policy/active-ledger.ts";
import { outcomeIn } from "./events.ts";
import { settleCounters, settledBy, type SettledCounter, type TotalSource } from "./settle-call.ts";
import type { OutcomeAtRow } from "./settle.ts";

/** What a caller says about a call. */
export interface OutcomeReport {
  /** The row of the check, and its hash. */
  readonly seq: number;
  readonly hash: string;
  readonly status: outcomeRows.Outcome["status"];
  /** A decimal that is not negative. */
  readonly amount?: string | undefined;
  /** The caller's own reference. Only its keyed digest is stored. */
  readonly ref?: string | undefined;
}

export interface Reporter {
  readonly name: string;
  /** True if it has the scope `outcome` and cannot ask for calls. */
  readonly mayLower: boolean;
}

/** An outcome that was recorded, now or before. */
export interface ReportedOutcome {
  readonly outcome: Pick<outcomeRows.Outcome, "status">;
  /** The row of the outcome. */
  readonly receipt: { readonly seq: number; readonly hash: string };
  /** What the report does not do, and may be thought to do. */
  readonly warnings: readonly string[];
}

export interface OutcomeDeskOptions {
  readonly ledger: { readonly rows: TotalSource };
  readonly policy: () => ActivePolicy;
  readonly exclusive: Exclusive;
}

/** Where the outcomes of one ledger's calls are reported. Every outcome is a row, in a transaction like that of a check. */
export class OutcomeDesk {
  readonly #options: OutcomeDeskOptions;

  constructor(options: OutcomeDeskOptions) {
    this.#options = options;
  }

  /** Records an outcome. The same outcome again adds no row. */
  report(reporter: Reporter, given: OutcomeReport): Promise<Result<ReportedOutcome, Refusal>> {
    return this.#options.exclusive(async (timed) => {
      const { transaction } = timed;
      const report = await this.#reportIn(timed, reporter, given);
      if (!report.ok) return report;
      if ("receipt" in report.value) return good(report.value);
      const { contract, mode } = this.#options.policy();
      const { warnings, ...row } = report.value;
      transaction.outcome({ ...row, at: timed.at, by: reporter.name, contract, mode });
      const { seq, hash } = transaction.head;
      return good({ outcome: row.outcome, receipt: { seq, hash }, warnings });
    });
  }

  /** @returns the outcome that is there already, or the row to add */
  async #reportIn(
    { transaction, at }: TimedTransaction,
    reporter: Reporter,
    given: OutcomeReport,
  ): Promise<Result<ReportedOutcome | NewOutcome, Refusal>> {
    const [row] = await transaction.rowsAt([given.seq]);
    const leaf = row && parseLeaf(row.leaf);
    if (row === undefined || leaf === undefined || leafHash(row.leaf) !== given.hash) return bad(noSuchCheck);
    if (!reporter.mayLower && leaf.key !== reporter.name) return bad(notTheReporter(reporter.name));
    const mayLower = reporter.mayLower && leaf.key !== reporter.name;
    if (!outcomeRows.hasOutcome(leaf))
      return bad(refuseOutcome(`row ${given.seq} let no call through, so it has no outcome`));
    const earlier = await outcomesOf(transaction, given.seq);
    const standing = earlier.at(-1);
    const policy = this.#options.policy();
    const call = { leaf, evidence: row.evidence, outcomes: earlier.map((each) => each.outcome) };
    const settled = settledBy(policy.policySet, call, (key) => transaction.digest(key));
    const warnings = warningsOf(settled, given, mayLower);
    const same = sameAmong(earlier, given, mayLower);
    if (same !== undefined) return good({ ...same, warnings });
    if (earlier.length >= outcomesMax)
      return bad(refuseOutcome(`row ${given.seq} has ${outcomesMax} outcomes already: nothing was changed`));
    if (!outcomeRows.mayFollow(standing?.outcome, { ...given, may_lower: mayLower }))
      return bad(
        refuseOutcome(`the outcome of row ${given.seq} is ${standing?.outcome.status} already: nothing was changed`),
      );
    const { outcomeWithinMs } = policy.policySet.approvals;
    if (at > leaf.at + outcomeWithinMs)
      return bad(refuseOutcome(`row ${given.seq} is too old: an outcome is taken for ${hours(outcomeWithinMs)}`));
    const outcome: outcomeRows.Outcome & { readonly seq: number; readonly at: number } = {
      row: given.seq,
      hash: given.hash,
      status: given.status,
      may_lower: mayLower,
      rules: outcomeRows.outcomeRules,
      before: earlier.map(({ receipt }) => receipt.seq),
      ...(given.amount !== undefined && { amount: addDecimals(given.amount, "0") }),
      ...(given.ref !== undefined && { ref: transaction.digest(`${refDomain}${given.ref}`) }),
      seq: transaction.head.seq + 1,
      at,
    };
    const made = await this.#settle(settled, call.outcomes, outcome);
    return made.ok ? good({ ...made.value, warnings }) : made;
  }

  /** Computes what the outcome does to counters. */
  async #settle(
    settled: readonly SettledCounter[],
    earlier: readonly OutcomeAtRow[],
    { seq, at, ...outcome }: OutcomeAtRow,
  ): Promise<Result<Omit<NewOutcome, "warnings">, Refusal>> {
    const of = outcome.amount === undefined ? undefined : memberOf(settled);
    if (of?.ok === false) return of;
    const whole: outcomeRows.Outcome = { ...outcome, ...(of?.value !== undefined && { of: of.value }) };
    const moves = await settleCounters(settled, [...earlier, { ...whole, seq, at }], this.#options.ledger.rows);
    return good({ outcome: whole, reason: `Svc: the outcome of row ${outcome.row} is ${outcome.status}`, ...moves });
  }
}

type NewOutcome = Pick<Parameters<AppendTransaction["outcome"]>[0], "added" | "outcome" | "reason" | "taken"> &
  Pick<ReportedOutcome, "warnings">;

/** How many outcomes a call may have, because each names all before it. */
const outcomesMax = 100;

const refDomain = "svc-gate/outcome-ref/1\n";

const noSuchCheck = refuse("not-found", "no receipt has this number and this hash");

function refuseOutcome(sentence: string): Refusal {
  return refuse("outcome-refused", sentence);
}

function notTheReporter(name: string): Refusal {
  return refuse(
    "forbidden",
    `the key ${quote(name)} did not ask for this call: use the key that did, or one with the scope "outcome" and without "check"`,
  );
}

interface EarlierOutcome extends Pick<ReportedOutcome, "receipt"> {
  readonly outcome: OutcomeAtRow;
}

/** Reads the outcomes of a call with the receipts of their rows, in order. */
async function outcomesOf(transaction: AppendTransaction, seq: number): Promise<readonly EarlierOutcome[]> {
  const [last] = await transaction.store.tables.where("outcomes", "seq", [seq]);
  if (last === undefined) return [];
  const [row] = await transaction.rowsAt([last.outcome]);
  const outcome = row && outcomeIn(row);
  if (outcome?.row !== seq) throw new Error(`the outcome of row ${seq} is not in row ${last.outcome}`);
  const rows = [...(await transaction.rowsAt(outcome.before)), row];
  return rows.flatMap((each) => {
    const earlier = each && outcomeIn(each);
    return each === undefined || earlier === undefined
      ? []
      : [{ outcome: earlier, receipt: { seq: earlier.seq, hash: leafHash(each.leaf) } }];
  });
}

/** Finds the same outcome among the earlier ones. A key that cannot ask confirms with a row what the asking key said. */
function sameAmong(
  earlier: readonly EarlierOutcome[],
  { amount, status }: OutcomeReport,
  mayLower: boolean,
): EarlierOutcome | undefined {
  const standing = earlier.at(-1);
  const claim = mayLower ? undefined : earlier.findLast(({ outcome }) => !outcome.may_lower);
  const text = amount === undefined ? undefined : addDecimals(amount, "0");
  return [claim, standing].find((each) => {
    if (each?.outcome.status !== status) return false;
    const isSameAmount = text === each.outcome.amount || (text === undefined && !mayLower);
    return isSameAmount && (status === "unknown" || !mayLower || each.outcome.may_lower);
  });
}

/** Says which counters a report does not change, although the caller may expect it. */
function warningsOf(
  settled: readonly SettledCounter[],
  { seq, status }: OutcomeReport,
  mayLower: boolean,
): readonly string[] {
  const counted = settled.filter(({ called }) => called.length > 0).map(({ owned }) => owned.counter);
  const settling = counted.filter(({ settles }) => settles);
  const names = (counters: typeof counted): string => counters.map(({ name }) => name).join(", ");
  if (status === "failed" && (mayLower ? counted : settling).length === 0)
    return [`no counter takes back what row ${seq} added: none that counted it has "settles: outcome"`];
  if (status === "failed" && !mayLower)
    return [`${names(settling)} still counts row ${seq}: only a key that cannot ask for calls takes an amount back`];
  const silent = counted.filter(({ claims, settles }) => !settles && !claims);
  return status === "done" && !mayLower && silent.length > 0
    ? [`${names(silent)} counts row ${seq} when a key that cannot ask for calls reports it`]
    : [];
}

/** The member of the input that an amount replaces. It must be clear which one that is. */
function memberOf(settled: readonly SettledCounter[]): Result<string | undefined, Refusal> {
  const changed = settled.filter(({ owned, called }) => owned.counter.settles && called.length > 0);
  const members = new Set(changed.map(({ owned }) => owned.counter.sumOf));
  const [only] = members;
  if (members.size === 0) return good(undefined);
  if (members.size === 1 && only !== undefined) return good(only);
  const names = changed.map(({ owned }) => owned.counter.name).join(", ");
  return bad(
    refuseOutcome(
      `it is not clear which number "amount" replaces, because ${names} do not add up one member: leave it out`,
    ),
  );
}

function hours(ms: number): string {
  const found = ms / 3_600_000;
  return found === 1 ? "1 hour" : `${Number(found.toFixed(2))} hours`;
}

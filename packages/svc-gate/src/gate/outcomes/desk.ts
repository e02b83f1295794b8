import { leafHash, parseLeaf, outcomeRows } from "../../ledger/entry/mod.ts";
import type { AppendTransaction, Ledger } from "../../ledger/mod.ts";
import { addDecimals, bad, good, quote, refuse, type Refusal, type Result } from "../../wire/mod.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";
import type { TimedTransaction } from "../policy/active-ledger.ts";
import { outcomeIn, type ReportedCall } from "./events.ts";
import { settleCounters, settledBy, type SettledCounter } from "./settle-call.ts";
import type { PlacedOutcome } from "./settle.ts";

/** What a caller says about a call. */
export interface AskedOutcome {
  /** The row of the check, and its hash. */
  readonly seq: number;
  readonly hash: string;
  readonly status: outcomeRows.Outcome["status"];
  /** A decimal that is not negative. */
  readonly amount?: string | undefined;
  /** The caller's own reference. Only its keyed digest is stored. */
  readonly ref?: string | undefined;
}

/** The key that reports. */
export interface Reporter {
  readonly name: string;
  /** True if it has the scope `outcome` and cannot ask for calls. */
  readonly mayLower: boolean;
}

/** The outcome that stands after a report. */
export interface Reported {
  readonly outcome: Pick<outcomeRows.Outcome, "status">;
  /** The row of the outcome. */
  readonly receipt: { readonly seq: number; readonly hash: string };
}

export interface OutcomeDeskOptions {
  readonly ledger: Pick<Ledger, "totals">;
  readonly policy: () => ActivePolicy;
  /** Runs work in a transaction of its own. */
  readonly exclusive: (work: (timed: TimedTransaction) => Promise<void>) => Promise<Result<void, Refusal>>;
}

/** Where the outcomes of one ledger's calls are reported. Every outcome is a row, in a transaction like that of a check. */
export class OutcomeDesk {
  readonly #options: OutcomeDeskOptions;

  constructor(options: OutcomeDeskOptions) {
    this.#options = options;
  }

  /** Records an outcome. The same outcome again adds no row. */
  async report(reporter: Reporter, asked: AskedOutcome): Promise<Result<Reported, Refusal>> {
    let found: Result<Reported, Refusal> = bad(noSuchCheck);
    const done = await this.#options.exclusive(async (timed) => {
      const { transaction } = timed;
      const report = await this.#reportIn(timed, reporter, asked);
      if (!report.ok) {
        found = report;
        return transaction.abort();
      }
      if ("receipt" in report.value) {
        found = good(report.value);
        return transaction.abort();
      }
      const { contract, mode } = this.#options.policy();
      transaction.outcome({ ...report.value, at: timed.at, by: reporter.name, contract, mode });
      const [receipt] = await transaction.commit();
      if (receipt !== undefined) found = good({ outcome: report.value.outcome, receipt });
    });
    return done.ok ? found : done;
  }

  /** @returns the outcome that is there already, or the row to add */
  async #reportIn(
    { transaction, at }: TimedTransaction,
    reporter: Reporter,
    asked: AskedOutcome,
  ): Promise<Result<Reported | NewOutcome, Refusal>> {
    const [row] = await transaction.rowsAt([asked.seq]);
    const leaf = row && parseLeaf(row.leaf);
    if (row === undefined || leaf === undefined || leafHash(row.leaf) !== asked.hash) return bad(noSuchCheck);
    if (!reporter.mayLower && leaf.key !== reporter.name) return bad(notTheReporter(reporter.name));
    const mayLower = reporter.mayLower && leaf.key !== reporter.name;
    if (!outcomeRows.hasOutcome(leaf))
      return bad(refused(`row ${asked.seq} let no call through, so it has no outcome`));
    const earlier = await outcomesOf(transaction, asked.seq);
    const standing = earlier.at(-1);
    if (standing !== undefined && isSame(standing.outcome, asked, mayLower)) return good(standing);
    if (!outcomeRows.mayFollow(standing?.outcome, { ...asked, may_lower: mayLower }))
      return bad(
        refused(`the outcome of row ${asked.seq} is ${standing?.outcome.status} already: nothing was changed`),
      );
    const policy = this.#options.policy();
    const { outcomeWithinMs } = policy.policySet.approvals;
    if (at > leaf.at + outcomeWithinMs)
      return bad(refused(`row ${asked.seq} is too old: an outcome is taken for ${hours(outcomeWithinMs)}`));
    const outcome: outcomeRows.Outcome & { readonly seq: number; readonly at: number } = {
      row: asked.seq,
      hash: asked.hash,
      status: asked.status,
      may_lower: mayLower,
      before: earlier.map(({ receipt }) => receipt.seq),
      ...(asked.amount !== undefined && { amount: addDecimals(asked.amount, "0") }),
      ...(asked.ref !== undefined && { ref: transaction.digest(`${refDomain}${asked.ref}`) }),
      seq: transaction.head.seq + 1,
      at,
    };
    const outcomes = earlier.map((each) => each.outcome);
    return this.#settle(transaction, policy, { leaf, evidence: row.evidence, outcomes }, outcome);
  }

  /** Computes what the outcome does to counters. */
  async #settle(
    transaction: AppendTransaction,
    { policySet }: ActivePolicy,
    call: ReportedCall,
    { seq, at, ...outcome }: PlacedOutcome,
  ): Promise<Result<NewOutcome, Refusal>> {
    const settled = settledBy(policySet, call, (key) => transaction.digest(key));
    const of = outcome.amount === undefined ? undefined : memberOf(settled);
    if (of?.ok === false) return of;
    const whole: outcomeRows.Outcome = { ...outcome, ...(of?.value !== undefined && { of: of.value }) };
    const moves = await settleCounters(settled, [...call.outcomes, { ...whole, seq, at }], this.#options.ledger);
    return good({ outcome: whole, reason: `Svc: the outcome of row ${outcome.row} is ${outcome.status}`, ...moves });
  }
}

type NewOutcome = Pick<Parameters<AppendTransaction["outcome"]>[0], "added" | "outcome" | "reason" | "taken">;

const refDomain = "svc-gate/outcome-ref/1\n";

const noSuchCheck = refuse("not-found", "no receipt has this number and this hash");

function refused(sentence: string): Refusal {
  return refuse("outcome-refused", sentence);
}

function notTheReporter(name: string): Refusal {
  return refuse(
    "forbidden",
    `the key ${quote(name)} did not ask for this call: use the key that did, or one with the scope "outcome" and without "check"`,
  );
}

/** Reads the outcomes of a call with the receipts of their rows, in order. */
async function outcomesOf(
  transaction: AppendTransaction,
  seq: number,
): Promise<readonly (Reported & { readonly outcome: PlacedOutcome })[]> {
  const [last] = await transaction.outcomes([seq]);
  if (last === undefined) return [];
  const [row] = await transaction.rowsAt([last.row]);
  const outcome = row && outcomeIn(row);
  if (outcome?.row !== seq) throw new Error(`the outcome of row ${seq} is not in row ${last.row}`);
  const rows = [...(await transaction.rowsAt(outcome.before)), row];
  return rows.flatMap((each) => {
    const placed = each && outcomeIn(each);
    return each === undefined || placed === undefined
      ? []
      : [{ outcome: placed, receipt: { seq: placed.seq, hash: leafHash(each.leaf) } }];
  });
}

/** Returns true for the same outcome again. A key that cannot ask confirms with a row what the asking key said. */
function isSame(standing: outcomeRows.Outcome, { status, amount }: AskedOutcome, mayLower: boolean): boolean {
  if (standing.status !== status) return false;
  if (amount !== undefined && addDecimals(amount, "0") !== standing.amount) return false;
  return status === "unknown" || !mayLower || standing.may_lower;
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
    refused(`it is not clear which number "amount" replaces, because ${names} do not add up one member: leave it out`),
  );
}

function hours(ms: number): string {
  const found = ms / 3_600_000;
  return found === 1 ? "1 hour" : `${Number(found.toFixed(2))} hours`;
}

import { windowStart, type PolicySet, type Counter } from "../../../../core/src/contract/mod.ts";
import { LedgerRefused } from "../../ledger/errors.ts";
import {
  openPastPin,
  resetThroughOf,
  resumeAct,
  resumeBody,
  resumeOf,
  type AskOthers,
  type InForce,
  type Ledger,
  type LedgerOptions,
  type PastPin,
  type AppendTransaction,
} from "../../ledger/mod.ts";
import { didYouMean, good, visible, type Canonical } from "../../../../core/src/wire/mod.ts";
import { recordedPolicy } from "../policy/active-policy.ts";
import { counterDigest } from "../policy/owned-counters.ts";
import { recompileContracts } from "../policy/contracts.ts";
import { openOffline, openOfflineBy, type Offline, type OfflineLedger } from "./offline.ts";

export interface ResumeTarget extends OfflineLedger {
  /** Asks the witnesses and sinks how far they have seen the ledger. */
  readonly askOthers: AskOthers;
}

/** The operator who resumes a ledger, and the reason. */
export interface ResumeRequest {
  readonly by: string;
  /** The operator's sentence. */
  readonly reason: string;
  /** Names of counters, `contract.counter`, that start from zero with this row. */
  readonly reset: readonly string[];
}

/** A counter that was in force in the last row, with its state after the resume. */
export interface ResumedCounter {
  readonly name: string;
  readonly window: Counter["window"];
  readonly isReset: boolean;
}

export interface ResumeResult {
  /** The row that records it. */
  readonly seq: number;
  /** The time of the row, in milliseconds. */
  readonly at: number;
  readonly counters: readonly ResumedCounter[];
}

export interface RestoreResumeResult extends ResumeResult {
  readonly lost: readonly [from: number, to: number | null];
  /** The first row that differs from the row that was seen; undefined if rows are only missing. */
  readonly forked: number | undefined;
  /** The mode in the last row. If the lost rows changed the mode, that change is lost too. */
  readonly mode: string;
}

/**
 * Resumes a ledger after a restore. One row records the loss, every counter is unknown up to its time unless it is
 * reset, and the pin moves to the row.
 *
 * @returns undefined if that row was written before, and only the pin had to be moved
 * @throws {LedgerRefused} if nothing is lost, the ledger is damaged, or a gate serves it
 */
export function resumeAfterRestore(
  target: ResumeTarget,
  request: ResumeRequest,
): Promise<RestoreResumeResult | undefined> {
  const { askOthers, ...offline } = target;
  const open = (options: LedgerOptions): Promise<PastPin> => openPastPin(options, askOthers);
  return openOfflineBy(open, offline, async (past) => {
    if (!past.recorded) return appendResume(past, request);
    if (request.reset.length > 0)
      throw new LedgerRefused(
        "a row already records this loss: run this command without --reset, then run `resume --reset`",
      );
    await past.putAside();
    past.settle();
    return undefined;
  });
}

async function appendResume(
  { ledger, adminEvents, loss, putAside }: PastPin & Offline,
  request: ResumeRequest,
): Promise<RestoreResumeResult> {
  const before = await recordedPolicy(ledger);
  const { live, reset } = await prepare(ledger, before, request);
  await putAside();
  const append = async (transaction: AppendTransaction, now: number): Promise<Canonical> => {
    const unknown: string[] = [];
    for (const { definition, through, unknownThrough } of (await ledger.tables.counters()).kept) {
      const digest = counterDigest(definition);
      if (reset.has(digest)) continue;
      unknown.push(digest);
      await transaction.keepCounter({ definition, through, unknownThrough: Math.max(unknownThrough, now) }, []);
    }
    await resetAll(transaction, reset, now);
    return resumeBody(loss, { reset: mapDigestsToNames(reset), unknown });
  };
  const done = await appendRow(adminEvents, request, append, true);
  const { lost, forked } = loss;
  return { ...done, lost, forked, mode: before.mode, counters: toResumedCounters(live, reset) };
}

/**
 * Resets counters that a loss made unknown. One more row records it, and they count from zero after it.
 *
 * @throws {LedgerRefused} if no row records a loss, or a counter is not unknown because of one
 */
export function resetCounters(target: OfflineLedger, request: ResumeRequest): Promise<ResumeResult> {
  return openOffline(target, (offline) => resetIn(offline, request));
}

async function resetIn({ ledger, adminEvents }: Offline, request: ResumeRequest): Promise<ResumeResult> {
  const changes = await ledger.rows.changes(0);
  const losses = new Set(changes.filter((change) => resumeOf(change.act, change.body)?.lost).map(({ at }) => at));
  if (losses.size === 0)
    throw new LedgerRefused("no row of the ledger records a loss, so every counter is known and none can be reset");
  const { reset } = await prepare(ledger, await recordedPolicy(ledger), request);
  const done = await appendRow(adminEvents, request, async (transaction, now) => {
    for (const { definition, unknownThrough } of (await ledger.tables.counters()).kept) {
      const counter = reset.get(counterDigest(definition));
      if (counter === undefined) continue;
      // A reset weakens a limit, so only unknown counters can be reset.
      if (!losses.has(unknownThrough) || windowStart(counter.window, now) >= unknownThrough)
        throw new LedgerRefused(
          `the counter ${counter.name} is known, or is not unknown because of a loss: nothing is reset`,
        );
    }
    await resetAll(transaction, reset, now);
    return resumeBody(undefined, { reset: mapDigestsToNames(reset), unknown: [] });
  });
  return { ...done, counters: toResumedCounters([...reset.values()], reset) };
}

async function resetAll(transaction: AppendTransaction, reset: CountersToReset, now: number): Promise<void> {
  for (const { identity: definition } of reset.values())
    await transaction.keepCounter(
      { definition, through: null, unknownThrough: -1, resetThrough: resetThroughOf(now) },
      [],
    );
}

/** The counters to reset, by digest. */
type CountersToReset = ReadonlyMap<string, Counter>;

/** The counters before the operator's row. */
interface ResetPlan {
  /** Counters in force that every row updates. */
  readonly live: readonly Counter[];
  readonly reset: CountersToReset;
}

async function prepare(ledger: Ledger, { contract }: InForce, { reset }: ResumeRequest): Promise<ResetPlan> {
  const policySet = await recompileContracts(ledger.rows, contract);
  const kept = new Set(
    (await ledger.tables.counters()).kept.filter(({ through }) => through === null).map(({ definition }) => definition),
  );
  const live = (policySet?.counters ?? []).filter(({ identity }) => kept.has(identity));
  if (reset.length > 0 && policySet === undefined)
    throw new LedgerRefused(
      `the contract sha256:${contract} of the last row does not compile under this version, so nothing can be reset`,
    );
  const found = reset.map((name) => live.find((counter) => counter.name === name) ?? refuse(name, live, policySet));
  return { live, reset: new Map(found.map((counter) => [counterDigest(counter.identity), counter])) };
}

/** Throws the reason why a counter cannot be reset. */
function refuse(name: string, live: readonly Counter[], policySet: PolicySet | undefined): never {
  if (policySet?.counters.some((counter) => counter.name === name) === true)
    throw new LedgerRefused(
      `the counter ${name} is not kept in this ledger: another contract was put in force after its last row`,
    );
  const names = live.map((counter) => counter.name);
  const hint = didYouMean(name, names, `there are ${names.join(", ") || "none"}`, "");
  throw new LedgerRefused(`no counter in force in the last row is called ${visible(name)}; ${hint}`);
}

function mapDigestsToNames(reset: CountersToReset): ReadonlyMap<string, string> {
  return new Map([...reset].map(([digest, { name }]) => [digest, name]));
}

function toResumedCounters(counters: readonly Counter[], reset: CountersToReset): readonly ResumedCounter[] {
  return counters.map(({ identity, name, window }) => ({ name, window, isReset: reset.has(counterDigest(identity)) }));
}

/**
 * Appends the operator's row. `body` changes the counters and returns the body of the row.
 *
 * @param endsApprovals cancels every open approval
 */
async function appendRow(
  adminEvents: Offline["adminEvents"],
  { by, reason }: ResumeRequest,
  body: (transaction: AppendTransaction, now: number) => Promise<Canonical>,
  endsApprovals = false,
): Promise<Pick<ResumeResult, "at" | "seq">> {
  let at = 0;
  const done = await adminEvents.appendAdminEvent(async (transaction, now) => {
    at = now;
    const ends = endsApprovals ? await transaction.dueApprovals(Number.MAX_SAFE_INTEGER) : [];
    return good({ ends, by, act: resumeAct, body: await body(transaction, now), reason: `Svc: ${by}: ${reason}` });
  }, true);
  if (!done.ok) throw new LedgerRefused(done.problem.detail);
  return { seq: done.value.seq, at };
}

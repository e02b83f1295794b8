import { hash } from "node:crypto";
import type { ContractInForce, Counter } from "../contract/mod.ts";
import {
  enterBody,
  LedgerRefused,
  openPastPin,
  resumeAct,
  resumeBody,
  resumeOf,
  type AskOthers,
  type Change,
  type CounterMove,
  type InForce,
  type Ledger,
  type PastPin,
  type Turn,
} from "../ledger/mod.ts";
import type { Canonical, Mode } from "../wire/mod.ts";
import { Clock, systemTime } from "./clock.ts";
import { keptContracts } from "./contracts.ts";
import { countersOf } from "./counters.ts";
import { openIdle, type IdlePlace } from "./idle.ts";
import { lastInForce } from "./keys/idle.ts";
import { signerAct } from "./signer-act.ts";
import { isLater } from "./standing.ts";

export interface ResumePlace extends IdlePlace {
  /** How far others have seen the ledger. */
  readonly askOthers: AskOthers;
}

/** All that was lost of one counter, as the operator states it. */
export interface EnteredCounter {
  readonly counter: Counter;
  /** Keys as texts; amounts as decimals. One move for each key. */
  readonly moves: readonly Pick<CounterMove, "amount" | "key">[];
}

/** Who goes on, and why. */
export interface Resuming {
  readonly by: string;
  /** The operator's sentence. */
  readonly reason: string;
  /**
   * What was lost of some counters, once it is known what was in force in the last row. What it throws ends the command.
   */
  readonly enter: ((force: ContractInForce) => readonly EnteredCounter[]) | undefined;
}

/** A counter that was in force in the last row, as the row that goes on leaves it. */
export interface ResumedCounter {
  readonly name: string;
  readonly window: Counter["window"];
  readonly isEntered: boolean;
}

export interface Resumed {
  /** The row that records it. */
  readonly seq: number;
  /** Milliseconds: its moment. */
  readonly at: number;
  readonly counters: readonly ResumedCounter[];
}

/** What a row that goes on after a restore came to. */
export interface ResumedPast extends Resumed {
  readonly lost: readonly [from: number, to: number | null];
  /** The row that is another than the one that was seen; undefined where rows are merely missing. */
  readonly parted: number | undefined;
  /** As it was in the last row; one that was put in force in the lost rows is lost too. */
  readonly mode: string;
}

/**
 * Goes on after a restore: one row records what is lost, every counter that was kept is unknown through its moment, but
 * for those whose lost amounts are entered, and the pin moves to it.
 *
 * @returns undefined where that row was written before, and only the pin had to be moved
 * @throws {LedgerRefused} where nothing is lost, the ledger is not whole, or a gate serves it
 */
export async function resumeAfterRestore(place: ResumePlace, resuming: Resuming): Promise<ResumedPast | undefined> {
  const { askOthers, ...idle } = place;
  const past = await openIdle(idle, (options) => openPastPin(options, askOthers));
  try {
    if (!past.recorded) return await goOn(past, resuming);
    await past.putAside();
    past.settle();
    return undefined;
  } finally {
    await past.close();
  }
}

async function goOn({ ledger, loss, putAside }: PastPin, resuming: Resuming): Promise<ResumedPast> {
  const before = await lastInForce(ledger);
  const { live, force, given } = await prepare(ledger, before, resuming);
  await putAside();
  const done = await act(
    ledger,
    { before, resuming },
    async (turn, now) => {
      const [entered, unknown] = [new Map<string, number>(), new Map<string, number>()];
      for (const { definition, through, unknownThrough } of await ledger.counters()) {
        const digest = digestOf(definition);
        (given.has(digest) ? entered : unknown).set(digest, unknownThrough);
        if (!given.has(digest))
          await turn.keepCounter({ definition, through, unknownThrough: Math.max(unknownThrough, now) }, []);
      }
      return resumeBody(loss, { entered, unknown });
    },
    movesOf(given),
  );
  const { lost, parted } = loss;
  return { ...done, lost, parted, mode: before.mode, counters: named(force, live, given) };
}

/**
 * Enters what a restore lost, later: one row more, with which the counters that it names are known again.
 *
 * @throws {LedgerRefused} where no row records a loss, or a counter is not unknown because of it
 */
export async function enterLost(place: IdlePlace, resuming: Resuming): Promise<Resumed> {
  const { ledger, close } = await openIdle(place);
  try {
    return await enterInto(ledger, resuming);
  } finally {
    await close();
  }
}

async function enterInto(ledger: Ledger, resuming: Resuming): Promise<Resumed> {
  const loss = (await ledger.changes(0)).findLast((change) => rowOf(change)?.lost !== undefined);
  const lost = loss && rowOf(loss);
  if (loss === undefined || lost === undefined)
    throw new LedgerRefused("no row of the ledger records a loss, so there is nothing to enter amounts for");
  const before = await lastInForce(ledger);
  const { live, force, given } = await prepare(ledger, before, resuming);
  const entered = new Map<string, number>();
  const kept = new Map((await ledger.counters()).map((counter) => [digestOf(counter.definition), counter]));
  for (const [digest, { counter }] of given) {
    const through = lost.unknown.get(digest);
    if (through === undefined || kept.get(digest)?.unknownThrough !== loss.at)
      throw new LedgerRefused(
        `the counter ${counter.name} is not unknown because of row ${loss.seq}, which records the loss: its amounts were ` +
          "entered already, or it came into force later",
      );
    entered.set(digest, through);
  }
  const done = await act(
    ledger,
    { before, resuming },
    async (turn) => {
      for (const [digest, unknownThrough] of entered) {
        const definition = kept.get(digest)?.definition ?? "";
        await turn.keepCounter({ definition, through: null, unknownThrough }, []);
      }
      return enterBody([loss.seq, loss.at], entered);
    },
    movesOf(given),
  );
  return { ...done, counters: named(force, live, given).filter(({ isEntered }) => isEntered) };
}

function rowOf({ act: what, body }: Change): ReturnType<typeof resumeOf> {
  return resumeOf(what, body);
}

/** What the row before the act left. */
interface Prepared {
  readonly force: ContractInForce | undefined;
  /** Digests of the counters that are kept up with every row. */
  readonly live: ReadonlySet<string>;
  /** What is entered, by the counter's digest. */
  readonly given: ReadonlyMap<string, EnteredCounter>;
}

async function prepare(ledger: Ledger, { contract }: InForce, { enter }: Resuming): Promise<Prepared> {
  const force = await keptContracts(ledger, contract);
  const live = new Set(
    (await ledger.counters()).filter(({ through }) => through === null).map(({ definition }) => digestOf(definition)),
  );
  if (enter === undefined) return { force, live, given: new Map() };
  if (force === undefined)
    throw new LedgerRefused(
      `the contract sha256:${contract} of the last row does not compile under this version, so nothing can be entered`,
    );
  const given = new Map(enter(force).map((entered) => [digestOf(entered.counter.identity), entered]));
  for (const [digest, { counter }] of given) {
    if (!live.has(digest))
      throw new LedgerRefused(
        `the counter ${counter.name} is not kept in this ledger: another contract was put in force after its last row`,
      );
  }
  return { force, live, given };
}

function movesOf(given: Prepared["given"]): readonly CounterMove[] {
  return [...given].flatMap(([counter, { moves }]) => moves.map((move) => ({ ...move, counter })));
}

function named(
  force: ContractInForce | undefined,
  live: Prepared["live"],
  given: Prepared["given"],
): readonly ResumedCounter[] {
  return (force === undefined ? [] : countersOf(force))
    .filter(({ counter }) => live.has(digestOf(counter.identity)))
    .map(({ counter: { identity, name, window } }): ResumedCounter => {
      return { name, window, isEntered: given.has(digestOf(identity)) };
    });
}

function digestOf(definition: string): string {
  return hash("sha256", definition, "hex");
}

interface Acting {
  readonly before: InForce;
  readonly resuming: Resuming;
}

/** Appends the operator's row. `body` says what of the counters changes with it. */
async function act(
  ledger: Ledger,
  { before, resuming: { by, reason } }: Acting,
  body: (turn: Turn, now: number) => Promise<Canonical>,
  moves: readonly CounterMove[],
): Promise<Pick<Resumed, "at" | "seq">> {
  const turn = await ledger.begin();
  try {
    const time = new Clock(systemTime).read(turn.head.at, turn.sharedTime);
    if (!time.ok) throw new LedgerRefused(`${time.problem}: set it right first`);
    const { contract, mode, engine: writer } = turn.inForce ?? before;
    if (isLater(writer)) throw new LedgerRefused(`a later gate (${writer}) wrote this ledger: use its version`);
    const { signerChange } = ledger;
    const entry = { at: time.value, contract, mode: mode as Mode };
    if (signerChange !== undefined) turn.change({ ...entry, ...signerAct(signerChange, by) });
    const stated = { by, act: resumeAct, body: await body(turn, time.value), reason: `Svc: ${by}: ${reason}` };
    turn.change({ ...entry, ...stated }, moves);
    await turn.commit(undefined, signerChange?.to);
    return { seq: turn.head.seq, at: time.value };
  } catch (error) {
    await turn.abort();
    throw error;
  }
}

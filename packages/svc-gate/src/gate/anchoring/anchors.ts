import { join } from "node:path";
import type { Logger } from "pino";
import { dataFolder, LedgerRefused, replaceFile, type Divergence } from "../../ledger/mod.ts";
import type { Broken } from "../../ledger/entry/mod.ts";
import { rootAt } from "../../ledger/tree/mod.ts";
import { collectedDivergence, strangeFile, type Collected } from "./collected.ts";
import { Cosignatures, type CosignedHead } from "./cosignatures.ts";
import { HeadPublisher, usualPace, type Pace } from "./head-publisher.ts";
import { hashesOf, readHead, type AnchoredLog, type Head } from "./head.ts";
import { kindOf, observedIn, unstatedDivergence } from "./observed.ts";
import type { WitnessPolicy } from "./policy.ts";
import { refusalOf } from "./refusal.ts";
import type { Sink } from "./sink.ts";
import { AnchorStatus, type Vouched } from "./anchor-status.ts";
import { Witnesses } from "./witnesses.ts";

/** Who anchors the ledgers of a gate, and how often: the same for the root and for every tenant. */
export interface AnchorSites {
  readonly policy: WitnessPolicy | undefined;
  readonly sinks: readonly Sink[];
  /** Checkpoints that somebody outside has collected, for this start; undefined if no file is named. */
  readonly collected?: Collected | undefined;
  /** They are told after so many checkpoints. */
  readonly every: number;
  /** What somebody says to have seen at this start, and does not show, is a mistake: the operator answers for that. */
  readonly acceptClaims: boolean;
}

export interface AnchorsOptions extends AnchorSites {
  readonly ledger: AnchoredLog;
  /** Keeps the latest cosigned checkpoint. */
  readonly folder: string;
  /** Null is the root. */
  readonly tenant: string | null;
  readonly log: Logger;
  /** Called each time one of them could not be told of a head, or did not take it. */
  readonly onFailure: (by: string) => void;
  readonly pace?: Pace;
  readonly patience?: Patience;
}

/** What is waited for at most, in milliseconds. */
interface Patience {
  /** By a start. */
  readonly startMs: number;
  /** For the last head at an end. */
  readonly endMs: number;
}

/** A sink, and how it stands with it. */
interface Given {
  readonly sink: Sink;
  readonly status: AnchorStatus;
}

/** How it stands with one anchor. */
export interface AnchorReading {
  readonly by: string;
  /** Rows that it does not vouch for yet. */
  readonly lagRows: number;
  /** Milliseconds for which there have been such rows. */
  readonly behindMs: number;
  /** It knows another history than this gate. */
  readonly isDiverged: boolean;
}

const usualPatience: Patience = { startMs: 3000, endMs: 2000 };
/** Rows are anchored after so long, however few they are. */
const latestMs = 10_000;

/**
 * All who anchor one ledger. They are told behind the answers, at most once a second and one delivery at a time; nothing
 * that they do or leave undone reaches a check.
 */
export class Anchors {
  readonly #options: AnchorsOptions;
  readonly #cosignatures: Cosignatures | undefined;
  readonly #witnesses: Witnesses | undefined;
  readonly #sinks: readonly Given[];
  readonly #statuses: readonly AnchorStatus[];
  readonly #publishers: readonly HeadPublisher[];
  readonly #patience: Patience;
  /** Rows, as far as is known. */
  #size = 0;
  /** Heads since the last that they were told of. */
  #untold = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: AnchorsOptions) {
    const { policy, sinks, folder, pace = usualPace, patience = usualPatience } = options;
    this.#options = options;
    this.#patience = patience;
    this.#cosignatures = policy && new Cosignatures(join(folder, dataFolder.files.cosigned), policy);
    const latest = (): number => this.#size;
    this.#witnesses =
      policy &&
      this.#cosignatures &&
      new Witnesses({ ...options, policy, cosignatures: this.#cosignatures, latest, pace });
    this.#sinks = sinks.map((sink) => ({ sink, status: new AnchorStatus({ ...options, ...sink }) }));
    this.#statuses = [...this.#sinks.map(({ status }) => status), ...(this.#witnesses?.statuses ?? [])];
    const deliveries = this.#sinks.map((given) => () => this.#give(given));
    const asked = this.#witnesses;
    this.#publishers = [
      ...deliveries,
      ...(asked === undefined ? [] : [(signal: AbortSignal) => asked.ask(signal)]),
    ].map((deliver) => new HeadPublisher(deliver, pace));
  }

  /** There is a new signed head, and it is durable. Costs next to nothing; work begins when the caller is done. */
  follow({ size }: { readonly size: number }): void {
    this.#size = Math.max(this.#size, size);
    for (const status of this.#statuses) status.follow();
    this.#untold += 1;
    if (this.#untold >= this.#options.every) return this.#tell();
    this.#timer ??= setTimeout(() => this.#tell(), latestMs).unref();
  }

  #tell(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#untold = 0;
    for (const publisher of this.#publishers) publisher.publish();
  }

  /** The latest checkpoint with cosignatures of a quorum; undefined where there is none. */
  get cosigned(): CosignedHead | undefined {
    return this.#cosignatures?.latest;
  }

  /** How it stands with each of them, for metrics. */
  get readings(): readonly AnchorReading[] {
    return this.#statuses.map(({ by, vouched, behindMs, isDiverged }) => ({
      by,
      lagRows: Math.max(0, this.#size - (vouched?.size ?? 0)),
      behindMs,
      isDiverged,
    }));
  }

  /** Who vouches for rows, and through which; the quorum of witnesses first, then those that vouch for most. */
  get vouched(): readonly Vouched[] {
    return this.#heads().map(({ by, size, at }) => ({ by, seq: size, at }));
  }

  #heads(): readonly (Pick<Head, "root" | "size"> & Pick<Vouched, "at" | "by">)[] {
    const { cosigned } = this;
    const quorum = cosigned === undefined ? [] : [{ ...cosigned, by: "quorum of witnesses" }];
    const single = this.#statuses.flatMap(({ by, vouched }) => (vouched === undefined ? [] : [{ ...vouched, by }]));
    return [...quorum, ...single.toSorted((a, b) => b.size - a.size)].filter(({ size }) => size > 0);
  }

  /** Holds the tree against what they vouch for. @returns the first row through which it is another one */
  async diverged(): Promise<Broken | undefined> {
    for (const { by, size, root } of this.#heads().toSorted((a, b) => a.size - b.size)) {
      const found = await rootAt(hashesOf(this.#options.ledger), size);
      if (!found.equals(root))
        return {
          seq: size,
          problem: `the tree through this row is not the one that the ${by} has seen`,
          expected: root.toString("base64"),
          found: found.toString("base64"),
        };
    }
    return undefined;
  }

  /**
   * Takes up where an earlier run has left off, and begins to tell them of heads.
   *
   * @param isStart asks all that can be asked in a bounded time what they know, before anything is served
   * @throws {LedgerRefused} where one of them has seen what is not in the ledger
   */
  async begin(isStart: boolean): Promise<void> {
    const { ledger, folder, acceptClaims, log, tenant } = this.#options;
    const head = await readHead(ledger);
    this.#size = head.size;
    for (const status of this.#statuses) status.follow();
    this.#compareKeys();
    const { collected } = this.#options;
    const strange = isStart ? collected && strangeFile(collected, ledger.name, tenant) : undefined;
    if (strange !== undefined) {
      if (!acceptClaims) throw new LedgerRefused(strange);
      log.warn({ tenant }, `accepted at this start: ${strange}`);
    }
    for (const divergence of await this.#divergences(head, isStart)) {
      const { proof } = divergence.head;
      const refusal = refusalOf(divergence, head.size);
      // For `svc-gate resume`, which must be shown what was lost.
      if (proof !== undefined) await replaceFile(join(folder, dataFolder.files.seen), proof);
      if (proof !== undefined || !acceptClaims) throw new LedgerRefused(refusal);
      log.warn({ tenant }, `accepted at this start: ${refusal}`);
    }
    this.#tell();
  }

  #compareKeys(): void {
    const { policy, ledger, log, tenant } = this.#options;
    const named = policy?.logs.filter(({ name }) => name === ledger.name) ?? [];
    const isOurs = named.some(({ text }) => ledger.verifiers.some((key) => key.text === text));
    if (named.length > 0 && !isOurs)
      log.warn({ tenant }, `the policy of witnesses names another key of the log ${ledger.name} than signs now`);
  }

  async #divergences(head: Head, isStart: boolean): Promise<readonly Divergence[]> {
    const { ledger } = this.#options;
    const kept = await this.#cosignatures?.load(ledger);
    const cosigned = kept && observedIn(kept.note, ledger, "file checkpoint.cosigned", kept.at);
    const divergence = cosigned && (await unstatedDivergence(ledger, head, cosigned));
    if (divergence !== undefined) return [divergence];
    if (!isStart) return [];
    const collected = this.#options.collected && (await collectedDivergence(this.#options.collected, ledger, head));
    if (collected !== undefined && collected.length > 0) return collected;
    const enough = AbortSignal.timeout(this.#patience.startMs);
    const inSinks = await Promise.all(this.#sinks.map((given) => this.#look(given, head, enough)));
    // A witness that has seen nothing yet cosigns what it is asked: not a history that a sink has disproved.
    return inSinks.flat().length > 0 ? inSinks.flat() : ((await this.#witnesses?.askAtStart(enough)) ?? []);
  }

  /** What a sink was given last, where it can be read. */
  async #look({ sink, status }: Given, head: Head, enough: AbortSignal): Promise<readonly Divergence[]> {
    const { ledger, tenant } = this.#options;
    try {
      const kept = await inTime(sink.read(tenant, ledger.name), enough);
      const observed = kept && observedIn(kept.note, ledger, status.by, kept.at);
      if (observed === undefined) return [];
      const divergence = await unstatedDivergence(ledger, head, observed);
      if (divergence !== undefined) return [divergence];
      const { at = Date.now(), root = "", seq: size } = observed;
      if ((await kindOf(ledger, head, observed)) === undefined)
        status.reached({ size, root: Buffer.from(root, "base64") }, at, head.size);
    } catch (error) {
      status.failed((error as Error).message);
    }
    return [];
  }

  async #give({ sink, status }: Given): Promise<undefined> {
    const { ledger, tenant } = this.#options;
    try {
      const head = await readHead(ledger);
      if (head.size > 0 && !status.has(head)) await sink.write(tenant, head.note);
      status.reached(head, Date.now(), this.#size);
    } catch (error) {
      status.failed((error as Error).message);
      throw error;
    }
  }

  /** Tells them the last head, unless they are away, and ends within a bounded time. */
  async close(): Promise<void> {
    if (this.#timer !== undefined) this.#tell();
    await Promise.all(this.#publishers.map((publisher) => publisher.close(this.#patience.endMs)));
  }
}

/** A file system that hangs must not hold up a start. */
function inTime<Value>(value: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const late = Promise.withResolvers<never>();
  const tooLate = (): void => late.reject(new Error("it cannot be read in time"));
  if (signal.aborted) tooLate();
  signal.addEventListener("abort", tooLate, { once: true });
  return Promise.race([value, late.promise]).finally(() => signal.removeEventListener("abort", tooLate));
}

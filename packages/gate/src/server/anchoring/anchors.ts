import { join } from "node:path";
import type { Logger } from "pino";
import { dataFolder, replaceFile, type Divergence } from "../../ledger/mod.ts";
import { LedgerRefused } from "../../ledger/errors.ts";
import type { Mistake } from "../../../../core/src/record/entry/mod.ts";
import { rootAt } from "../../../../core/src/record/tree/mod.ts";
import { collectedDivergence, strangeFile, type CollectedCheckpoints } from "./collected.ts";
import { Cosignatures, type CosignedHead } from "./cosignatures.ts";
import { HeadPublisher, usualPace, type DeliveryPace } from "./head-publisher.ts";
import { hashesOf, readHead, type AnchoredLog, type Head } from "./head.ts";
import { isStatedLost, findDivergenceKind, observedIn, unstatedDivergence } from "./observed.ts";
import type { WitnessPolicy } from "./policy.ts";
import { refusalOf } from "./refusal.ts";
import type { Sink } from "./sink.ts";
import { AnchorStatus, type VouchedRow } from "./anchor-status.ts";
import { Witnesses } from "./witnesses.ts";

/** The anchors of a gate, and how often they receive heads. They are the same for the root and every tenant. */
export interface AnchorSites {
  readonly policy: WitnessPolicy | undefined;
  readonly sinks: readonly Sink[];
  /** Checkpoints that somebody outside has collected, for this start; undefined if no file is set. */
  readonly collected?: CollectedCheckpoints | undefined;
  /** The number of checkpoints after which the anchors receive a head. */
  readonly every: number;
  /** Accepts claims of anchors that show no proof, at this start. The operator takes responsibility for that. */
  readonly acceptClaims: boolean;
}

export interface AnchorsOptions extends AnchorSites {
  readonly ledger: AnchoredLog;
  /** Keeps the latest cosigned checkpoint. */
  readonly folder: string;
  /** Null is the root. */
  readonly tenant: string | null;
  readonly log: Logger;
  /** Called each time an anchor could not be reached or did not accept a head. */
  readonly onFailure: (by: string) => void;
  readonly pace?: DeliveryPace;
  readonly patience?: Patience;
}

/** The longest waits, in milliseconds. */
interface Patience {
  /** At a start, for the answers of the anchors. */
  readonly startMs: number;
  /** At a stop, for the last head. */
  readonly endMs: number;
}

interface SinkEntry {
  readonly sink: Sink;
  readonly status: AnchorStatus;
}

/** The status of one anchor, for metrics. */
export interface AnchorReading {
  readonly by: string;
  /** The number of rows that it does not vouch for yet. */
  readonly lagRows: number;
  /** The time for which such rows have existed, in milliseconds. */
  readonly behindMs: number;
  /** True if the anchor knows a history that is not this gate's. */
  readonly isDiverged: boolean;
}

const usualPatience: Patience = { startMs: 3000, endMs: 2000 };
/** Rows are anchored after this time, even if there are few. */
const latestMs = 10_000;

/**
 * All anchors of one ledger. They receive heads after the answers, at most once a second and one delivery at a time. A
 * slow or failing anchor never affects a check.
 */
export class Anchors {
  readonly #options: AnchorsOptions;
  readonly #cosignatures: Cosignatures | undefined;
  readonly #witnesses: Witnesses | undefined;
  readonly #sinks: readonly SinkEntry[];
  readonly #statuses: readonly AnchorStatus[];
  readonly #publishers: readonly HeadPublisher[];
  readonly #patience: Patience;
  /** The number of rows that is known here. */
  #size = 0;
  /** The number of heads since the last delivery. */
  #unpublished = 0;
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
    const deliveries = this.#sinks.map((entry) => () => this.#deliverTo(entry));
    const witnesses = this.#witnesses;
    this.#publishers = [
      ...deliveries,
      ...(witnesses === undefined ? [] : [(signal: AbortSignal) => witnesses.ask(signal)]),
    ].map((deliver) => new HeadPublisher(deliver, pace));
  }

  /** Notes a new signed head, which is durable. This is cheap; deliveries start after the caller is done. */
  follow({ size }: { readonly size: number }): void {
    this.#size = Math.max(this.#size, size);
    for (const status of this.#statuses) status.follow();
    this.#unpublished += 1;
    if (this.#unpublished >= this.#options.every) return this.#publish();
    this.#timer ??= setTimeout(() => this.#publish(), latestMs).unref();
  }

  #publish(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#unpublished = 0;
    for (const publisher of this.#publishers) publisher.publish();
  }

  /** The latest checkpoint with cosignatures of a quorum; undefined if there is none. */
  get cosigned(): CosignedHead | undefined {
    return this.#cosignatures?.latest;
  }

  /** The status of each anchor, for metrics. */
  get readings(): readonly AnchorReading[] {
    return this.#statuses.map(({ by, vouched, behindMs, isDiverged }) => ({
      by,
      lagRows: Math.max(0, this.#size - (vouched?.size ?? 0)),
      behindMs,
      isDiverged,
    }));
  }

  /**
   * The anchors and the last rows that they vouch for: first the quorum of witnesses, then by row, the latest first.
   */
  get vouched(): readonly VouchedRow[] {
    return this.#heads().map(({ by, size, at }) => ({ by, seq: size, at }));
  }

  #heads(): readonly (Pick<Head, "root" | "size"> & Pick<VouchedRow, "at" | "by">)[] {
    const { cosigned } = this;
    const quorum = cosigned === undefined ? [] : [{ ...cosigned, by: "quorum of witnesses" }];
    const single = this.#statuses.flatMap(({ by, vouched }) => (vouched === undefined ? [] : [{ ...vouched, by }]));
    return [...quorum, ...single.toSorted((a, b) => b.size - a.size)].filter(({ size }) => size > 0);
  }

  /**
   * Compares the tree with the heads that the anchors vouch for.
   *
   * @returns the first row through which the tree differs
   */
  async findDivergence(): Promise<Mistake | undefined> {
    for (const { by, size, root } of this.#heads().toSorted((a, b) => a.size - b.size)) {
      const found = await rootAt(hashesOf(this.#options.ledger), size);
      if (!found.equals(root))
        return {
          seq: size,
          problem: `the tree through this row differs from the tree that the ${by} has seen`,
          expected: root.toString("base64"),
          found: found.toString("base64"),
        };
    }
    return undefined;
  }

  /**
   * Loads the state of an earlier run, and starts to deliver heads.
   *
   * @param isStart asks all anchors in a bounded time about their heads, before the gate serves
   * @throws {LedgerRefused} if an anchor has seen rows that are not in the ledger
   */
  async start(isStart: boolean): Promise<void> {
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
      // `svc-gate resume` needs this file as evidence of the loss.
      if (proof !== undefined) await replaceFile(join(folder, dataFolder.files.seen), proof);
      if (proof !== undefined || !acceptClaims) throw new LedgerRefused(refusal);
      log.warn({ tenant }, `accepted at this start: ${refusal}`);
    }
    this.#publish();
  }

  #compareKeys(): void {
    const { policy, ledger, log, tenant } = this.#options;
    const named = policy?.logs.filter(({ name }) => name === ledger.name) ?? [];
    const isOurs = named.some(({ text }) => ledger.verifiers.some((key) => key.text === text));
    if (named.length > 0 && !isOurs)
      log.warn({ tenant }, `the witness policy has a key of the log ${ledger.name} that does not sign now`);
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
    const inSinks = await Promise.all(this.#sinks.map((entry) => this.#compareSink(entry, head, enough)));
    // A witness that has seen nothing yet cosigns any history. It must not get a history that a sink has disproved.
    return inSinks.flat().length > 0 ? inSinks.flat() : ((await this.#witnesses?.askAtStart(enough)) ?? []);
  }

  /** Compares the ledger with the last checkpoint in a sink, if it can be read. */
  async #compareSink({ sink, status }: SinkEntry, head: Head, enough: AbortSignal): Promise<readonly Divergence[]> {
    const { ledger, tenant } = this.#options;
    try {
      const kept = await inTime(sink.read(tenant, ledger.name), enough);
      const observed = kept && observedIn(kept.note, ledger, status.by, kept.at);
      if (observed === undefined) return [];
      const kind = await findDivergenceKind(ledger, head, observed);
      if (kind !== undefined) return (await isStatedLost(ledger, observed)) ? [] : [{ kind, head: observed }];
      const { at = Date.now(), root = "", seq: size } = observed;
      status.recordHead({ size, root: Buffer.from(root, "base64") }, at, head.size);
    } catch (error) {
      status.recordFailure((error as Error).message);
    }
    return [];
  }

  async #deliverTo({ sink, status }: SinkEntry): Promise<undefined> {
    const { ledger, tenant } = this.#options;
    try {
      const head = await readHead(ledger);
      if (head.size > 0 && !status.has(head)) await sink.write(tenant, head.note);
      status.recordHead(head, Date.now(), this.#size);
    } catch (error) {
      status.recordFailure((error as Error).message);
      throw error;
    }
  }

  /** Delivers the last head to all reachable anchors, and ends within a bounded time. */
  async close(): Promise<void> {
    if (this.#timer !== undefined) this.#publish();
    await Promise.all(this.#publishers.map((publisher) => publisher.close(this.#patience.endMs)));
  }
}

/** A file system that hangs must not delay a start. */
function inTime<Value>(value: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const late = Promise.withResolvers<never>();
  const tooLate = (): void => late.reject(new Error("its file cannot be read in time"));
  if (signal.aborted) tooLate();
  signal.addEventListener("abort", tooLate, { once: true });
  return Promise.race([value, late.promise]).finally(() => signal.removeEventListener("abort", tooLate));
}

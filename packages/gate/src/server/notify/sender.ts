import { setTimeout as wait } from "node:timers/promises";
import type { Logger } from "pino";
import type { Ledger } from "../../ledger/mod.ts";
import type { Result } from "../../../../core/src/wire/mod.ts";
import { readEventId, type LedgerEvent } from "../events/event.ts";
import type { EventFeed } from "../events/feed.ts";
import type { GateObserver } from "../telemetry/observer.ts";
import type { Endpoint } from "./endpoints.ts";
import { formatWebhookMessage, signedHeaders, type Origin } from "./message.ts";
import {
  startAt,
  dueNow,
  recordFailure,
  nextDue,
  queue,
  readProgress,
  replayedFrom,
  removeEvent,
  waitingMax,
  type DeliveryProgress,
  type WaitingEvent,
} from "./progress.ts";
import { post, type WebhookRequest } from "./send.ts";

export interface SenderOptions {
  readonly endpoint: Endpoint;
  readonly origin: Origin;
  readonly feed: EventFeed;
  readonly deliveries: Ledger["deliveries"];
  /** Names this process to other gates that share the ledger. */
  readonly owner: string;
  readonly log: Logger;
  readonly observer?: GateObserver | undefined;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  readonly send?: (endpoint: Endpoint, posting: WebhookRequest) => Promise<Result<void, string>>;
}

/** How long a gate has the right to send to an endpoint, if it does not extend it. */
const leaseMs = 30_000;
const renewMs = leaseMs / 3;
/** How often the progress is stored while events are sent. After a crash, the events of this time are sent again. */
const storeEveryMs = 1000;

/** What `svc-gate notify list` shows of an endpoint. It has no address. */
export interface SenderState extends Pick<DeliveryProgress, "dead" | "died"> {
  readonly endpoint: string;
  /** Every event up to this row was taken, waits, or is dead; null if another gate sends. */
  readonly row: number | null;
  readonly waiting: readonly WaitingEvent[];
}

/** Sends the events of one ledger to one endpoint: at least once, and in the order of the rows for each approval. */
export class Sender {
  readonly #options: SenderOptions;
  readonly #now: () => number;
  readonly #stop = new AbortController();
  /** Ends a pause, so that a replay starts at once. */
  #nudge = new AbortController();
  #progress: DeliveryProgress | undefined;
  #leasedAt = -Infinity;
  #isStored = true;
  #storedAt = 0;
  #hasStarted = false;
  #running: Promise<void> | undefined;
  /** One step or replay at a time. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: SenderOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Reads how far the endpoint has got, without sending anything. Has no effect if another gate sends. */
  async look(): Promise<void> {
    await this.#serially(() => this.#renewLease());
  }

  /** Stops, and stores how far it has got. */
  async end(): Promise<void> {
    this.#stop.abort();
    await (this.#running ?? this.#release());
  }

  /** True until everything was taken or is dead, if this gate sends. */
  get isBusy(): boolean {
    if (this.#progress === undefined) return !this.#hasStarted;
    return this.#progress.waiting.length > 0 || this.#progress.row < this.#options.feed.through;
  }

  get state(): SenderState {
    const { endpoint } = this.#options;
    const { row = null, waiting = [], dead = [], died = 0 } = this.#progress ?? {};
    return { endpoint: endpoint.name, row, waiting, dead, died };
  }

  async #run(): Promise<void> {
    const { feed } = this.#options;
    const { signal } = this.#stop;
    let isListening = false;
    while (!signal.aborted && !feed.isClosed) {
      try {
        if (!(await this.#serially(() => this.#renewLease()))) {
          await this.#pause(renewMs);
          continue;
        }
        if (!isListening) await feed.listen();
        isListening = true;
        if (await this.step()) continue;
        const ms = Math.min(renewMs, Math.max(1, nextDue(this.#progress ?? startAt(0)) - this.#now()));
        await feed.wait(ms, AbortSignal.any([signal, this.#nudge.signal]));
      } catch (error) {
        if (signal.aborted || feed.isClosed) break;
        const { endpoint, log, origin } = this.#options;
        log.warn(
          { tenant: origin.tenant, endpoint: endpoint.name, err: error },
          "webhooks wait: the ledger does not answer",
        );
        await this.#pause(renewMs);
      }
    }
    if (isListening) feed.leave();
    await this.#release().catch(() => undefined); // Another gate takes over when the right ends.
  }

  async #pause(ms: number): Promise<void> {
    const signal = AbortSignal.any([this.#stop.signal, this.#nudge.signal]);
    await wait(ms, undefined, { signal, ref: false }).catch(() => undefined);
  }

  /** Lets another gate send at once. */
  async #release(): Promise<void> {
    if (this.#progress === undefined) return;
    await this.#store();
    const { deliveries, endpoint, owner } = this.#options;
    await deliveries.take(endpoint.name, owner, 0);
  }

  /** Takes or extends the right to send. Returns false if another gate has it. */
  async #renewLease(byForce = false): Promise<boolean> {
    if (this.#progress !== undefined && !byForce && this.#now() - this.#leasedAt < renewMs) return true;
    const { deliveries, endpoint, feed, owner } = this.#options;
    const note = await deliveries.take(endpoint.name, owner, leaseMs, byForce);
    this.#hasStarted = true;
    if (note === undefined) {
      this.#progress = undefined;
      return false;
    }
    this.#leasedAt = this.#now();
    if (this.#progress !== undefined && !byForce) return true;
    const { row } = await feed.end();
    const known = readProgress(note);
    // A new endpoint gets no earlier events. After a restore the ledger may end before the note.
    this.#progress = known === undefined ? startAt(row) : { ...known, row: Math.min(known.row, row) };
    this.#isStored = known !== undefined;
    return true;
  }

  /** Makes one attempt, or reads some new events. Returns false if there is nothing to do now. */
  step(): Promise<boolean> {
    return this.#serially(() => this.#step());
  }

  async #step(): Promise<boolean> {
    if (!(await this.#renewLease()) || this.#progress === undefined) return false;
    const due = dueNow(this.#progress, this.#now());
    const did = due === undefined ? await this.#read() : await this.#attempt(due);
    if (!did || performance.now() - this.#storedAt > storeEveryMs) await this.#store();
    return did;
  }

  /** Queues the events of the next rows, and reminders. */
  async #read(): Promise<boolean> {
    const { endpoint, feed } = this.#options;
    const before = this.#current;
    let progress = before;
    if (progress.waiting.length >= waitingMax) return false;
    for await (const found of feed.log.after({ row: progress.row, index: Infinity }, feed.through)) {
      progress = { ...progress, row: found.through };
      for (const event of found.events) if (wants(endpoint, event)) progress = queueEvent(progress, event);
      if (progress.waiting.length > before.waiting.length) break;
    }
    const reminded = progress.reminded.filter((row) => feed.isOpen(row));
    progress = reminded.length === progress.reminded.length ? progress : { ...progress, reminded };
    for (const event of feed.reminders()) {
      const row = event.subject?.row ?? 0;
      if (row > progress.row || progress.reminded.includes(row) || !wants(endpoint, event)) continue;
      progress = { ...queueEvent(progress, event), reminded: [...progress.reminded, row] };
    }
    if (progress === before) return false;
    this.#change(progress);
    return progress.waiting.length > before.waiting.length;
  }

  async #attempt({ id, tries }: WaitingEvent): Promise<boolean> {
    const { endpoint, origin, observer, log, send = post } = this.#options;
    const event = await this.#find(id);
    if (event === undefined) {
      this.#change(removeEvent(this.#current, id)); // It was erased, or a reminder is not needed any more.
      return true;
    }
    const message = formatWebhookMessage(event, endpoint, origin);
    const headers = signedHeaders(message, endpoint, this.#now());
    const sent = await send(endpoint, { body: message.body, headers, signal: this.#stop.signal });
    if (this.#stop.signal.aborted && !sent.ok) return false;
    if (sent.ok) {
      observer?.countDelivery(endpoint.name, "delivered");
      this.#change(removeEvent(this.#current, id));
      return true;
    }
    const { died } = this.#current;
    this.#change(recordFailure(this.#current, id, this.#now(), sent.problem));
    const isDead = this.#current.died > died;
    observer?.countDelivery(endpoint.name, isDead ? "dead" : "failed");
    const of = { tenant: origin.tenant, endpoint: endpoint.name, event: message.id, attempt: tries + 1 };
    if (isDead)
      log.error(
        of,
        `a webhook was not taken within three days: ${sent.problem}; run \`svc-gate notify replay\` when it can be`,
      );
    else if (tries === 0) log.warn(of, `a webhook was not taken and is sent again later: ${sent.problem}`);
    return true;
  }

  get #current(): DeliveryProgress {
    return this.#progress ?? startAt(0);
  }

  /** Finds an event by its id, so that no text of an event is stored. */
  async #find(id: string): Promise<LedgerEvent | undefined> {
    const { feed } = this.#options;
    if (id.endsWith("-expiring")) return feed.reminders().find((event) => event.id === id);
    const position = readEventId(id);
    const events = position === undefined ? [] : await feed.log.at(position.row);
    return events.find((event) => event.id === id);
  }

  /** Sends all events from a row on again. This gate takes over the endpoint. */
  async replay(row: number): Promise<void> {
    await this.#serially(async () => {
      await this.#store();
      await this.#renewLease(true);
      this.#change(replayedFrom(this.#current, row));
      await this.#store();
    });
    this.#nudge.abort();
    this.#nudge = new AbortController();
  }

  #change(progress: DeliveryProgress): void {
    this.#progress = progress;
    this.#isStored = false;
  }

  async #store(): Promise<void> {
    if (this.#isStored || this.#progress === undefined) return;
    const { deliveries, endpoint, owner } = this.#options;
    this.#storedAt = performance.now();
    const isOurs = await deliveries.keep(endpoint.name, owner, JSON.stringify(this.#progress));
    this.#isStored = true;
    if (!isOurs) this.#progress = undefined; // Another gate sends now. It may send some events again.
  }

  #serially<Value>(work: () => Promise<Value>): Promise<Value> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => undefined);
    return done;
  }
}

function wants({ events }: Endpoint, { type }: LedgerEvent): boolean {
  return events === undefined || events.includes(type);
}

function queueEvent(progress: DeliveryProgress, { id, position, subject }: LedgerEvent): DeliveryProgress {
  const about = subject?.row ?? null;
  return queue(progress, { id, row: position?.row ?? about ?? 0, about });
}

import { setTimeout as pause } from "node:timers/promises";
import { endsAt, type Approval } from "../../../../core/src/approvals/mod.ts";
import type { InTurn, Ledger } from "../../ledger/mod.ts";
import { isAfter, reminderOf, remindsAt, type FeedPosition, type LedgerEvent, type EventSubject } from "./event.ts";
import { EventLog, type FoundEvents } from "./event-log.ts";

export interface EventFeedOptions {
  readonly ledger: Pick<Ledger, "head" | "isShared" | "rows" | "signedSize" | "tables">;
  /** Writes the row that ends approvals whose time is over. */
  readonly endDue: () => Promise<unknown>;
  /** How often a gate asks for new rows if other gates may write them, in milliseconds. */
  readonly askEveryMs: number;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

/** Passes on what it gets, and may make it wait for its turn. */
export type Replay = (found: AsyncIterable<FoundEvents>) => AsyncIterable<FoundEvents>;

/** How often a gate looks for its own new rows. */
const lookEveryMs = 100;
/** The least time between two rows that end approvals because somebody listens. */
const endEveryMs = 1000;
/** The latest events, for listeners that have read all earlier ones. */
const recentMax = 1024;
/** Approvals that a slice reads. */
const sliceMax = 16;
const openStatuses = ["pending", "approved"];

/** An approval that waits for a person or for its call. */
interface OpenApproval {
  readonly subject: EventSubject;
  readonly decideBy: number;
  /** Null after a person has approved it. */
  readonly remindsAt: number | null;
  readonly ends: number;
  isReminded: boolean;
}

/**
 * The events of one ledger, for everyone who listens. It reads new rows only while somebody listens, and never in a
 * transaction. A listener has a position in the ledger and no queue, so a slow one costs no memory.
 */
export class EventFeed {
  readonly log: EventLog;
  readonly #options: EventFeedOptions;
  readonly #now: () => number;
  /** Aborts when there are new events. */
  #woken = new AbortController();
  readonly #open = new Map<number, OpenApproval>();
  #recent: LedgerEvent[] = [];
  /** The number of events that were recent before. */
  #dropped = 0;
  #through = 0;
  #listeners = 0;
  #starting: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #endedAt = 0;
  #isStarted = false;
  #closed = false;

  constructor(options: EventFeedOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.log = new EventLog(options.ledger.rows);
  }

  /** The last row whose events were read. */
  get through(): number {
    return this.#through;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** True if an approval waits for a person or for its call, as far as a listener needs to know. */
  get hasOpen(): boolean {
    return this.#open.size > 0;
  }

  isOpen(row: number): boolean {
    return this.#open.has(row);
  }

  /** The position after the last row of the ledger now. */
  async end(): Promise<FeedPosition> {
    return { row: await this.#head(), index: Infinity };
  }

  /** Starts to read new rows. Call `leave` once afterwards. */
  async listen(inTurn: InTurn = (slice) => slice()): Promise<void> {
    this.#listeners += 1;
    this.#starting ??= this.#start(inTurn);
    try {
      await this.#starting;
    } catch (error) {
      this.#starting = undefined;
      this.leave();
      throw error;
    }
  }

  leave(): void {
    this.#listeners -= 1;
    if (this.#listeners === 0) this.#stop();
  }

  /** Ends all listeners. */
  close(): void {
    this.#closed = true;
    this.#stop();
    this.#wake();
  }

  async #start(inTurn: InTurn): Promise<void> {
    const { ledger, askEveryMs } = this.#options;
    const timer = setInterval(() => void this.look(), ledger.isShared ? askEveryMs : lookEveryMs).unref();
    this.#timer = timer;
    this.#open.clear();
    this.#through = await this.#head();
    for (let before = Number.MAX_SAFE_INTEGER; ;) {
      const slice = await inTurn(() => ledger.tables.approvals({ before, limit: sliceMax, statuses: openStatuses }));
      for (const approval of slice) this.#keep(approval);
      before = slice.at(-1)?.row ?? 0;
      if (slice.length < sliceMax) break;
    }
    this.#isStarted = true;
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#starting = undefined;
    this.#isStarted = false;
    this.#dropped += this.#recent.length;
    this.#recent = [];
  }

  #keep(approval: Approval): void {
    const { row, hash, at, tool, status, asking } = approval;
    const { decide_by: decideBy, needs, causes } = asking;
    const subject = { row, hash, at, tool, rules: Object.keys(causes), asking: { decideBy, needs } };
    const reminds = status === "pending" ? remindsAt(at, decideBy) : null;
    // Each listener asks for the reminders of this moment itself.
    const isReminded = this.#now() >= (reminds ?? 0);
    this.#open.set(row, { subject, decideBy, remindsAt: reminds, ends: endsAt(approval), isReminded });
  }

  async #head(): Promise<number> {
    const { ledger } = this.#options;
    if (!ledger.isShared) return ledger.head.seq;
    return Math.max(ledger.head.seq, await ledger.signedSize());
  }

  /** Reads new rows, and reminds of approvals whose time is nearly over. One look runs at a time. */
  look(): Promise<void> {
    // A database that does not answer now is queried again.
    this.#looking ??= this.#look()
      .catch(() => undefined)
      .finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  async #look(): Promise<void> {
    if (!this.#isStarted) return;
    const head = await this.#head();
    const before = this.#dropped + this.#recent.length;
    const through = this.#through;
    if (head > through) {
      for await (const found of this.log.after({ row: through, index: Infinity }, head)) {
        for (const event of found.events) this.#add(event);
        this.#through = found.through;
      }
    }
    this.#remind();
    if (this.#dropped + this.#recent.length > before) this.#wake();
    await this.#endDue();
  }

  #add(event: LedgerEvent): void {
    const known = event.subject === null ? undefined : this.#open.get(event.subject.row);
    // The row that asked may have lost its parts since. Listeners that saw the approval hear how it ends.
    const subject = event.subject?.asking === undefined && known !== undefined ? known.subject : event.subject;
    this.#push({ ...event, subject });
    if (subject === null) return;
    const { status, use_by: useBy } = event.data as { readonly status?: string; readonly use_by?: number };
    const { row, asking, at } = subject;
    if (event.type === "approval.opened" && asking !== undefined) {
      const { decideBy } = asking;
      const reminds = remindsAt(at, decideBy);
      this.#open.set(row, { subject, decideBy, remindsAt: reminds, ends: decideBy, isReminded: false });
    } else if (status === "approved" && known !== undefined && useBy !== undefined)
      this.#open.set(row, { ...known, remindsAt: null, ends: useBy });
    else this.#open.delete(row);
  }

  #push(event: LedgerEvent): void {
    this.#recent.push(event);
    if (this.#recent.length <= recentMax) return;
    this.#dropped += this.#recent.length - recentMax;
    this.#recent = this.#recent.slice(-recentMax);
  }

  #remind(): void {
    const now = this.#now();
    for (const open of this.#open.values()) {
      if (open.isReminded || open.remindsAt === null || now < open.remindsAt || now >= open.decideBy) continue;
      open.isReminded = true;
      this.#push(reminderOf(open.subject, open.decideBy));
    }
  }

  /** Without checks, no batch would write the row that ends them, and no listener would hear of it. */
  async #endDue(): Promise<void> {
    const now = this.#now();
    const isDue = this.#open.values().some(({ ends }) => now >= ends);
    if (!isDue || now - this.#endedAt < endEveryMs) return;
    this.#endedAt = now;
    await this.#options.endDue();
  }

  /** Reminders of all approvals whose time is nearly over now. */
  reminders(): readonly LedgerEvent[] {
    const now = this.#now();
    return [...this.#open.values()]
      .filter(({ remindsAt: from, decideBy }) => from !== null && from <= now && now < decideBy)
      .map(({ subject, decideBy }) => reminderOf(subject, decideBy));
  }

  /**
   * Yields the events after a position, also those that come later, until the signal aborts or the gate closes. After a
   * pause it yields undefined, so that the reader can say that it is still there. Between `listen` and `leave` only.
   *
   * @param replay reads the events of rows that are in the ledger already; by default as fast as it can
   */
  async *follow(
    from: FeedPosition,
    pauseMs: number,
    signal: AbortSignal,
    replay: Replay = (found) => found,
  ): AsyncGenerator<LedgerEvent | undefined, void, undefined> {
    let position = from;
    while (!this.#isOver(signal)) {
      // The rows that come while the replay runs have their events among the recent ones, from here on.
      let next = this.#dropped + this.#recent.length;
      for await (const found of replay(this.log.after(position, this.#through))) {
        for (const event of found.events) {
          yield event;
          if (this.#isOver(signal)) return;
        }
        position = { row: found.through, index: Infinity };
      }
      let hasReminded = false;
      while (next >= this.#dropped && !this.#isOver(signal)) {
        const event = this.#recent[next - this.#dropped];
        if (event === undefined && hasReminded) {
          if (!(await this.wait(pauseMs, signal))) yield undefined;
        } else if (event === undefined) {
          hasReminded = true;
          yield* this.reminders();
        } else {
          next += 1;
          if (event.position === null ? !hasReminded : !isAfter(event.position, position)) continue;
          yield event;
          position = event.position ?? position;
        }
      }
    }
  }

  #isOver(signal: AbortSignal): boolean {
    return signal.aborted || this.#closed;
  }

  /** Waits for new events. Returns false if none came in time. */
  async wait(ms: number, signal: AbortSignal): Promise<boolean> {
    if (this.#isOver(signal)) return true;
    const ended = AbortSignal.any([signal, this.#woken.signal]);
    return pause(ms, false, { signal: ended }).catch(() => true);
  }

  #wake(): void {
    this.#woken.abort();
    this.#woken = new AbortController();
  }
}

import { bad, good, limits, refuse, type Refusal, type Result } from "../../wire/mod.ts";
import { Holdings, type Holder } from "./holdings.ts";

/** How many requests have a place at once. */
export interface LineOptions {
  readonly ofKeyMax: number;
  readonly ofTenantMax: number;
  /** Of all tenants. */
  readonly max?: number;
}

/** A place in a line, or the claim to one. */
export interface Ticket {
  readonly holder: Holder;
  /** Tickets of equal right go in this order. */
  readonly number: number;
}

interface Waiting {
  readonly ticket: Ticket;
  /** Called when it has a place, or is refused one. */
  readonly settle: (refusal?: Refusal) => void;
}

/**
 * Requests that wait for one of few places. The next place goes to the tenant that has the fewest, and to its key that has
 * the fewest. So a key with many requests delays only its own.
 */
export class Line {
  readonly #options: LineOptions;
  readonly #placed = new Holdings<Ticket>();
  readonly #waiting = new Holdings<Waiting>();
  #tickets = 0;
  #isClosed = false;

  constructor(options: LineOptions) {
    this.#options = options;
  }

  /** The number of requests that wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Waits for a place.
   *
   * @param signal aborts if nobody waits for the answer any more; then the ticket has no place
   * @returns a ticket to give back with `leave`, or a refusal if too many wait
   */
  async enter(holder: Holder, signal: AbortSignal): Promise<Result<Ticket, Refusal>> {
    const waiting = this.#waiting;
    const ofKey = waiting.of(holder);
    const isFull = waiting.size >= limits.readsWaitingMax && ofKey >= limits.readsWaitingMax / (waiting.holders + 1);
    if (ofKey >= limits.readsWaitingOfKeyMax || isFull)
      return bad(
        refuse("too-many-waiting", `${ofKey} reads of this key and ${waiting.size} in all wait: ask again soon`),
      );
    if (this.#isClosed && !this.#hasPlace(holder)) return bad(stopping);
    const ticket = { holder, number: (this.#tickets += 1) };
    const refusal = await this.#wait(ticket, signal);
    return refusal === undefined ? good(ticket) : bad(refusal);
  }

  /** Waits for a place for a ticket that has given its place back. It is not refused. */
  async again(ticket: Ticket, signal: AbortSignal): Promise<void> {
    while ((await this.#wait(ticket, signal)) !== undefined);
  }

  #wait(ticket: Ticket, signal: AbortSignal): Promise<Refusal | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    if (this.#hasPlace(ticket.holder)) {
      this.#placed.add(ticket, ticket.holder);
      return Promise.resolve(undefined);
    }
    return new Promise((settle) => {
      const waiting: Waiting = { ticket, settle };
      this.#waiting.add(waiting, ticket.holder);
      signal.addEventListener("abort", () => this.#settle(waiting), { once: true });
    });
  }

  /** Gives a place back. A ticket without one changes nothing. */
  leave(ticket: Ticket): void {
    this.#placed.delete(ticket);
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      this.#placed.add(next.ticket, next.ticket.holder);
      this.#settle(next);
    }
  }

  /** Refuses the requests that wait, from now on. */
  close(): void {
    this.#isClosed = true;
    for (const waiting of this.#waiting.all) this.#settle(waiting, stopping);
  }

  #settle(waiting: Waiting, refusal?: Refusal): void {
    this.#waiting.delete(waiting);
    waiting.settle(refusal);
  }

  #hasPlace(holder: Holder): boolean {
    const { ofKeyMax, ofTenantMax, max = Infinity } = this.#options;
    const placed = this.#placed;
    return placed.of(holder) < ofKeyMax && placed.ofTenant(holder.tenant) < ofTenantMax && placed.size < max;
  }

  #next(): Waiting | undefined {
    const candidates = this.#waiting.oldest.filter(({ ticket }) => this.#hasPlace(ticket.holder));
    return candidates.reduce<Waiting | undefined>(
      (first, each) => (first === undefined || this.#isBefore(each.ticket, first.ticket) ? each : first),
      undefined,
    );
  }

  #isBefore(a: Ticket, b: Ticket): boolean {
    const placed = this.#placed;
    const ofTenant = placed.ofTenant(a.holder.tenant) - placed.ofTenant(b.holder.tenant);
    const ofKey = placed.of(a.holder) - placed.of(b.holder);
    return (ofTenant || ofKey || a.number - b.number) < 0;
  }
}

const stopping = refuse("stopping", "the gate is stopping; ask again in a moment");

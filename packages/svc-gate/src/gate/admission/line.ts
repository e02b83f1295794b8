import { bad, good, limits, refuse, type Refusal, type Result } from "../../wire/mod.ts";
import { stopping } from "./batcher.ts";
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
  /** Those of one key go in this order. */
  readonly number: number;
}

interface Waiting {
  readonly ticket: Ticket;
  /** Called when it has a place, or is refused one. */
  readonly settle: (refusal?: Refusal) => void;
}

/**
 * Requests that wait for one of few places. The next place goes to the tenant that has the fewest, among equals to the one
 * that has waited longest for one; and so to one of its keys. So a key with many requests delays only its own.
 */
export class Line {
  readonly #options: LineOptions;
  readonly #placed = new Holdings<Ticket>();
  readonly #waiting = new Holdings<Waiting>();
  /** Those that have given their place back for a while. */
  readonly #returning = new Holdings<Waiting>();
  /** When each tenant and each key last got a place, as a number that only grows. */
  readonly #served = new Map<string, number>();
  #places = 0;
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
    const refusal = await this.#wait(this.#waiting, ticket, signal);
    return refusal === undefined ? good(ticket) : bad(refusal);
  }

  /** Waits for a place for a ticket that has given its place back. It is not refused, and later ones of its key wait for it. */
  async again(ticket: Ticket, signal: AbortSignal): Promise<void> {
    await this.#wait(this.#returning, ticket, signal);
  }

  /** Do requests of other keys wait? */
  isWanted({ tenant, id }: Holder): boolean {
    return this.#candidates.some(({ ticket: { holder } }) => holder.tenant !== tenant || holder.id !== id);
  }

  get #candidates(): readonly Waiting[] {
    return [...this.#returning.oldest, ...this.#waiting.oldest];
  }

  #wait(among: Holdings<Waiting>, ticket: Ticket, signal: AbortSignal): Promise<Refusal | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    if (this.#hasPlace(ticket.holder)) {
      this.#place(ticket);
      return Promise.resolve(undefined);
    }
    return new Promise((settle) => {
      const leave = (): void => this.#settle(waiting);
      const waiting: Waiting = {
        ticket,
        settle: (refusal) => {
          signal.removeEventListener("abort", leave);
          settle(refusal);
        },
      };
      among.add(waiting, ticket.holder);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  #place(ticket: Ticket): void {
    const { tenant, id } = ticket.holder;
    this.#placed.add(ticket, ticket.holder);
    this.#places += 1;
    for (const served of [[tenant], [tenant, id]]) this.#served.set(JSON.stringify(served), this.#places);
  }

  #servedAt(...of: readonly (string | null)[]): number {
    return this.#served.get(JSON.stringify(of)) ?? 0;
  }

  /** Gives a place back. A ticket without one changes nothing. */
  leave(ticket: Ticket): void {
    this.#placed.delete(ticket);
    if (this.#placed.size + this.#waiting.size + this.#returning.size === 0) this.#served.clear();
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      this.#place(next.ticket);
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
    this.#returning.delete(waiting);
    waiting.settle(refusal);
  }

  #hasPlace(holder: Holder): boolean {
    const { ofKeyMax, ofTenantMax, max = Infinity } = this.#options;
    const placed = this.#placed;
    return placed.of(holder) < ofKeyMax && placed.ofTenant(holder.tenant) < ofTenantMax && placed.size < max;
  }

  #next(): Waiting | undefined {
    const candidates = this.#candidates.filter(({ ticket }) => this.#hasPlace(ticket.holder));
    return candidates.reduce<Waiting | undefined>(
      (first, each) => (first === undefined || this.#isBefore(each.ticket, first.ticket) ? each : first),
      undefined,
    );
  }

  #isBefore(a: Ticket, b: Ticket): boolean {
    const [ofA, ofB] = [this.#rank(a), this.#rank(b)];
    const at = ofA.findIndex((value, index) => value !== ofB[index]);
    return at !== -1 && (ofA[at] as number) < (ofB[at] as number);
  }

  /** The places of its tenant, and when that last got one; the same of its key; its number. */
  #rank({ holder, number }: Ticket): readonly number[] {
    const { tenant, id } = holder;
    const placed = this.#placed;
    const ofTenant = [placed.ofTenant(tenant), this.#servedAt(tenant)];
    return [...ofTenant, placed.of(holder), this.#servedAt(tenant, id), number];
  }
}

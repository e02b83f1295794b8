import { bad, good, limits, refuse, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import { stopping } from "./batcher.ts";
import { Shares, type KeyOwner } from "./shares.ts";

/** How many requests have a place at once. */
export interface RequestQueueOptions {
  readonly ofKeyMax: number;
  readonly ofTenantMax: number;
  /** Of all tenants. */
  readonly max?: number;
  /** How many requests of one key may wait. */
  readonly waitingOfKeyMax?: number;
  /** Makes the refusal of a request from the numbers of those that wait: of its key, and all. */
  readonly refusal?: (ofKey: number, all: number) => Refusal;
}

/** A place in a line, or the claim to one. */
export interface Ticket {
  readonly owner: KeyOwner;
  /** Those of one key go in this order. */
  readonly number: number;
}

interface WaitingTicket {
  readonly ticket: Ticket;
  /** Called when it has a place, or is refused one. */
  readonly settle: (refusal?: Refusal) => void;
}

/**
 * Requests that wait for one of few places. The next place goes to the tenant that has the fewest, among equals to the one
 * that has waited longest for one; and so to one of its keys. So a key with many requests delays only its own.
 */
export class RequestQueue {
  readonly #options: RequestQueueOptions;
  readonly #placed = new Shares<Ticket>();
  readonly #waiting = new Shares<WaitingTicket>();
  /** Those that have given their place back for a while. */
  readonly #returning = new Shares<WaitingTicket>();
  /** When each tenant and each key last got a place, as a number that only grows. */
  readonly #served = new Map<string, number>();
  #places = 0;
  #tickets = 0;
  #isClosed = false;

  constructor(options: RequestQueueOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Waits for a place.
   *
   * @param signal aborts if nobody waits for the answer any more; then the ticket has no place
   * @returns a ticket to give back with `leave`, or a refusal if too many wait
   */
  async enter(owner: KeyOwner, signal: AbortSignal): Promise<Result<Ticket, Refusal>> {
    const waiting = this.#waiting;
    const { waitingOfKeyMax = limits.readsWaitingOfKeyMax, refusal: full = tooManyReads } = this.#options;
    const ofKey = waiting.of(owner);
    const isFull = waiting.size >= limits.readsWaitingMax && ofKey >= limits.readsWaitingMax / (waiting.owners + 1);
    if (ofKey >= waitingOfKeyMax || isFull) return bad(full(ofKey, waiting.size));
    if (this.#isClosed && !this.#hasPlace(owner)) return bad(stopping);
    const ticket = { owner, number: (this.#tickets += 1) };
    const refusal = await this.#wait(this.#waiting, ticket, signal);
    return refusal === undefined ? good(ticket) : bad(refusal);
  }

  /** Waits for a place for a ticket that has given its place back. It is not refused, and later ones of its key wait for it. */
  async again(ticket: Ticket, signal: AbortSignal): Promise<void> {
    await this.#wait(this.#returning, ticket, signal);
  }

  /** Do requests of other keys wait? */
  isWanted({ tenant, id }: KeyOwner): boolean {
    return this.#candidates.some(({ ticket: { owner } }) => owner.tenant !== tenant || owner.id !== id);
  }

  get #candidates(): readonly WaitingTicket[] {
    return [...this.#returning.oldest, ...this.#waiting.oldest];
  }

  #wait(among: Shares<WaitingTicket>, ticket: Ticket, signal: AbortSignal): Promise<Refusal | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    if (this.#hasPlace(ticket.owner)) {
      this.#place(ticket);
      return Promise.resolve(undefined);
    }
    return new Promise((settle) => {
      const leave = (): void => this.#settle(waiting);
      const waiting: WaitingTicket = {
        ticket,
        settle: (refusal) => {
          signal.removeEventListener("abort", leave);
          settle(refusal);
        },
      };
      among.add(waiting, ticket.owner);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  #place(ticket: Ticket): void {
    const { tenant, id } = ticket.owner;
    this.#placed.add(ticket, ticket.owner);
    this.#places += 1;
    if (this.#served.size > servedMax) this.#served.clear();
    for (const name of [formatOwnerKey(tenant), formatOwnerKey(tenant, id)]) this.#served.set(name, this.#places);
  }

  #servedAt(...of: Parameters<typeof formatOwnerKey>): number {
    return this.#served.get(formatOwnerKey(...of)) ?? 0;
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

  #settle(waiting: WaitingTicket, refusal?: Refusal): void {
    this.#waiting.delete(waiting);
    this.#returning.delete(waiting);
    waiting.settle(refusal);
  }

  #hasPlace(owner: KeyOwner): boolean {
    const { ofKeyMax, ofTenantMax, max = Infinity } = this.#options;
    const placed = this.#placed;
    return placed.size < max && placed.ofTenant(owner.tenant) < ofTenantMax && placed.of(owner) < ofKeyMax;
  }

  #next(): WaitingTicket | undefined {
    let [first, least]: [WaitingTicket | undefined, readonly number[]] = [undefined, []];
    for (const each of this.#candidates) {
      if (!this.#hasPlace(each.ticket.owner)) continue;
      const rank = this.#rank(each.ticket);
      if (first === undefined || isBefore(rank, least)) [first, least] = [each, rank];
    }
    return first;
  }

  /** The places of its tenant, and when that last got one; the same of its key; its number. */
  #rank({ owner, number }: Ticket): readonly number[] {
    const { tenant, id } = owner;
    const placed = this.#placed;
    return [placed.ofTenant(tenant), this.#servedAt(tenant), placed.of(owner), this.#servedAt(tenant, id), number];
  }
}

/** Past so many names, the line forgets who was served when: then some may wait a little longer once. */
const servedMax = 10_000;

/** A tenant, or one of its keys. An id of a tenant has no line break. */
function formatOwnerKey(tenant: string | null, id?: string): string {
  const of = tenant === null ? "root" : `tenant ${tenant}`;
  return id === undefined ? of : `${of}\n${id}`;
}

function isBefore(rank: readonly number[], other: readonly number[]): boolean {
  const at = rank.findIndex((value, index) => value !== other[index]);
  return at !== -1 && (rank[at] ?? 0) < (other[at] ?? 0);
}

function tooManyReads(ofKey: number, all: number): Refusal {
  return refuse("too-many-waiting", `${ofKey} reads of this key and ${all} in all wait: ask again soon`);
}

import { workerOf, type Figures, type Plan, type Question } from "./plan.ts";

export interface Run {
  readonly seed: number;
  readonly seconds: number;
  /** The simulated time before which calls are served but not reported. */
  readonly warmUpSeconds: number;
}

/** The results for the calls of some tenants. */
export interface Met {
  readonly checks: number;
  /** From arriving at a gate to the answer, in milliseconds. */
  readonly mean: number;
  readonly p50: number;
  readonly p99: number;
  readonly rowsPerBatch: number;
}

export interface Simulated {
  readonly classes: readonly Met[];
  readonly batchesPerSecond: number;
}

/** A waiting call: its arrival, and the end of its gate's work. */
interface Waiting {
  readonly cameAt: number;
  readonly readyAt: number;
}

interface LedgerState {
  /** One queue for each gate that serves it. */
  readonly queues: readonly Waiting[][];
  readonly perMs: number;
  readonly class: number;
  readonly worker: number;
  /** The queue of the last call. */
  transaction: number;
  /** Whether its head is locked, or about to be locked. */
  taken: boolean;
}

/**
 * Simulates the plan under load; returns the calls' results by the ranks of their tenants: up to each bound, after the
 * previous one.
 */
export function simulate(
  plan: Plan,
  question: Question,
  figures: Figures,
  run: Run,
  ranks: readonly number[],
): Simulated {
  const load = new Load(plan, question, figures, run, ranks);
  load.run();
  return { classes: load.met(), batchesPerSecond: load.batchesPerSecond() };
}

/**
 * Simulates event by event. Calls arrive at random (Poisson) at their ledger's gate, wait for its processor, then for
 * the ledger. A batch contains all calls that are ready when the head's lock is granted, waits for a core of the node
 * with its rows, and takes the measured time. Locks are granted in the order of the requests.
 */
class Load {
  readonly #plan: Plan;
  readonly #question: Question;
  readonly #figures: Figures;
  readonly #run: Run;
  readonly #random: () => number;
  /** An event of a ledger: `id` is an arriving call; `id` plus the number of ledgers is the release of its lock. */
  readonly #agenda = new Agenda();
  readonly #ledgers: readonly LedgerState[];
  readonly #gateFreeAt: Float64Array;
  readonly #coresFreeAt: readonly Float64Array[];
  readonly #found: readonly { readonly waits: number[]; batches: number }[];

  constructor(plan: Plan, question: Question, figures: Figures, run: Run, ranks: readonly number[]) {
    this.#plan = plan;
    this.#question = question;
    this.#figures = figures;
    this.#run = run;
    this.#random = randomFrom(run.seed);
    this.#gateFreeAt = new Float64Array(plan.gates);
    this.#coresFreeAt = Array.from({ length: plan.workers }, () => new Float64Array(question.coresPerNode));
    this.#found = ranks.map(() => ({ waits: [], batches: 0 }));
    this.#ledgers = plan.ledgers.map(({ id, rank, checksPerSecond }) => ({
      queues: Array.from({ length: Math.min(question.gatesPerLedger, plan.gates) }, () => []),
      perMs: checksPerSecond / 1000,
      class: ranks.findIndex((bound) => rank <= bound),
      worker: workerOf(id, plan.shards, plan.workers),
      transaction: 0,
      taken: false,
    }));
  }

  run(): void {
    for (const [id, ledger] of this.#ledgers.entries()) this.#callLater(id, ledger, 0);
    const count = this.#ledgers.length;
    for (let next = this.#agenda.take(); next.time < this.#run.seconds * 1000; next = this.#agenda.take()) {
      const id = next.what % count;
      const ledger = this.#ledgers[id];
      if (ledger === undefined) return;
      if (next.what < count) this.#arrive(id, ledger, next.time);
      else this.#turnOver(id, ledger, next.time);
    }
  }

  met(): readonly Met[] {
    return this.#found.map(({ waits, batches }) => {
      const sorted = Float64Array.from(waits).toSorted();
      const below = (part: number): number => sorted[Math.floor(sorted.length * part)] ?? Number.NaN;
      const mean = sorted.reduce((sum, wait) => sum + wait, 0) / sorted.length;
      return { checks: sorted.length, mean, p50: below(0.5), p99: below(0.99), rowsPerBatch: sorted.length / batches };
    });
  }

  batchesPerSecond(): number {
    const all = this.#found.reduce((sum, { batches }) => sum + batches, 0);
    return all / (this.#run.seconds - this.#run.warmUpSeconds);
  }

  #callLater(id: number, { perMs }: LedgerState, now: number): void {
    this.#agenda.add(now - Math.log(1 - this.#random()) / perMs, id);
  }

  #arrive(id: number, ledger: LedgerState, now: number): void {
    this.#callLater(id, ledger, now);
    ledger.transaction = (ledger.transaction + 1) % ledger.queues.length;
    const gate = ((this.#plan.gateOf[id] ?? 0) + ledger.transaction) % this.#plan.gates;
    const readyAt = Math.max(now, this.#gateFreeAt[gate] ?? 0) + this.#figures.gateMsPerCheck;
    this.#gateFreeAt[gate] = readyAt;
    ledger.queues[ledger.transaction]?.push({ cameAt: now, readyAt });
    if (ledger.taken) return;
    ledger.taken = true;
    this.#freeAt(id, readyAt);
  }

  #freeAt(id: number, time: number): void {
    this.#agenda.add(time, this.#ledgers.length + id);
  }

  /** Gives the free lock to the first requester, with all calls that its gate has ready. */
  #turnOver(id: number, ledger: LedgerState, now: number): void {
    const [queue] = ledger.queues.filter(({ length }) => length > 0).toSorted((a, b) => arrivalOf(a) - arrivalOf(b));
    ledger.taken = queue !== undefined;
    if (queue === undefined) return;
    if (arrivalOf(queue) > now) return this.#freeAt(id, arrivalOf(queue));
    const ready = queue.findIndex(({ readyAt }) => readyAt > now);
    const batch = queue.splice(0, Math.min(this.#question.batchMax, ready === -1 ? queue.length : ready));
    const until = this.#endOf(batch.length, this.#coresFreeAt[ledger.worker], now);
    this.#freeAt(id, until);
    this.#note(ledger.class, batch, until);
  }

  /** Returns the time at which a batch that starts now is durable. */
  #endOf(rows: number, coresFreeAt: Float64Array | undefined, now: number): number {
    const { cycleMs, cycleMsPerRow, databaseMsPerBatch, databaseMsPerRow } = this.#figures;
    const work = databaseMsPerBatch + databaseMsPerRow * rows;
    const core = coresFreeAt?.indexOf(Math.min(...coresFreeAt)) ?? 0;
    const done = Math.max(now, coresFreeAt?.[core] ?? 0) + work;
    if (coresFreeAt !== undefined) coresFreeAt[core] = done;
    return done + Math.max(0, cycleMs + cycleMsPerRow * rows - work);
  }

  #note(at: number, batch: readonly Waiting[], until: number): void {
    const found = this.#found[at];
    const warmFrom = this.#run.warmUpSeconds * 1000;
    if (found === undefined || (batch[0]?.cameAt ?? 0) < warmFrom) return;
    found.batches += 1;
    for (const { cameAt } of batch) found.waits.push(until - cameAt);
  }
}

function arrivalOf(queue: readonly Waiting[]): number {
  return queue[0]?.readyAt ?? Number.POSITIVE_INFINITY;
}

/** Numbers in [0, 1) from a seed: mulberry32 (Ettinger, public domain). */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The next events: a binary heap by time. */
class Agenda {
  readonly #times: number[] = [];
  readonly #whats: number[] = [];

  add(time: number, what: number): void {
    let at = this.#times.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = this.#times[parent] ?? 0;
      if (above <= time) break;
      this.#set(at, above, this.#whats[parent] ?? 0);
      at = parent;
    }
    this.#set(at, time, what);
  }

  take(): { readonly time: number; readonly what: number } {
    const first = { time: this.#times[0] ?? Number.POSITIVE_INFINITY, what: this.#whats[0] ?? 0 };
    const time = this.#times.pop() ?? 0;
    const what = this.#whats.pop() ?? 0;
    const { length } = this.#times;
    if (length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= length) break;
      if ((this.#times[child + 1] ?? Number.POSITIVE_INFINITY) < (this.#times[child] ?? 0)) child += 1;
      const below = this.#times[child] ?? 0;
      if (below >= time) break;
      this.#set(at, below, this.#whats[child] ?? 0);
      at = child;
    }
    this.#set(at, time, what);
    return first;
  }

  #set(at: number, time: number, what: number): void {
    this.#times[at] = time;
    this.#whats[at] = what;
  }
}

import type { Rows } from "../../ledger/mod.ts";
import { leafHash, type StoredRow } from "../../../../core/src/record/entry/mod.ts";
import {
  eventsOf,
  isAfter,
  subjectOf,
  subjectsOf,
  type EventId,
  type FeedPosition,
  type LedgerEvent,
  type EventSubject,
} from "./event.ts";

/** Rows that one search reads: only their numbers stay in memory. */
const windowRows = 65_536;

/** The rows that may have events. Both searches use an index, so that a ledger full of ALLOWs costs nothing. */
const searches = [{ verdict: "CHANGE" }, { refused: true, leafHas: ['"answered":"ESCALATE"'] }] as const;

/** The events of the rows up to `through`. */
export interface FoundEvents {
  readonly events: readonly LedgerEvent[];
  readonly through: number;
}

/** Reads events from the rows of a ledger. It keeps no transaction open. */
export class EventLog {
  readonly #rows: Pick<Rows, "find">;

  constructor(rows: Pick<Rows, "find">) {
    this.#rows = rows;
  }

  /** Yields the events after a position, up to a row, in the order of the ledger. */
  async *after(position: FeedPosition, through: number): AsyncGenerator<FoundEvents> {
    const first = Math.max(1, position.index === Infinity ? position.row + 1 : position.row);
    for (let from = first; from <= through; from += windowRows) {
      const to = Math.min(through, from + windowRows - 1);
      const numbers: number[] = [];
      for (const search of searches) {
        const query = { ...search, from, before: to + 1, limit: Number.MAX_SAFE_INTEGER };
        for await (const rows of this.#rows.find(query)) {
          for (const { seq } of rows) numbers.push(seq);
          yield { events: [], through: from - 1 }; // A reader that takes turns pauses here.
        }
      }
      for (const row of numbers.toSorted((a, b) => a - b)) {
        const events = (await this.at(row)).filter(
          (event) => event.position !== null && isAfter(event.position, position),
        );
        yield { events, through: row };
      }
      yield { events: [], through: to };
    }
  }

  async at(number: number): Promise<readonly LedgerEvent[]> {
    const row = await this.#row(number);
    if (row === undefined) return [];
    const subjects = new Map<number, EventSubject>();
    for (const about of subjectsOf(row)) {
      const askingRow = await this.#row(about);
      const subject = askingRow && subjectOf(askingRow);
      if (subject !== undefined) subjects.set(about, subject);
    }
    return eventsOf(row, subjects);
  }

  /** Returns true if the ledger has the row that an event's id names. */
  async has({ row, digits }: EventId): Promise<boolean> {
    const found = await this.#row(row);
    return found !== undefined && leafHash(found.leaf).startsWith(digits);
  }

  async #row(number: number): Promise<StoredRow | undefined> {
    for await (const [row] of this.#rows.find({ from: number, before: number + 1, limit: 1 }))
      if (row !== undefined) return row;
    return undefined;
  }
}

import { readApprovals } from "../../../../../core/src/record/entry/approval-rows.ts";
import { LedgerRefused } from "../../errors.ts";
import { countersOf } from "../checksums.ts";
import { type Description, type RowQuery, type RowSlice, type Tables, type TablesHead } from "../tables.ts";
import { keptApproval } from "./approvals.ts";
import { entriesOf, type StatementSender } from "./entries.ts";
import { frontierOf, headRow, ledgerSeal, storedRow } from "./rows.ts";
import { ask, readRows, sliceCharacters, type BoundStatement } from "./sql.ts";

/** Rows of one slice of a search. */
const sliceRows = 512;
/** Rows that one statement searches for matches of a filter. */
const windowRows = 65_536;

type PostgresRow = readonly unknown[];

/** Sends statements together, and returns the rows of each. No statement sees an older state than the one before it. */
export type PipelineReader = (...statements: readonly BoundStatement[]) => Promise<readonly (readonly PostgresRow[])[]>;

/** The tables of a ledger in a database. */
export function postgresTables(read: PipelineReader, ledger: string): Tables {
  const ofTick = together(read);
  const head = async (): Promise<TablesHead> => {
    const [columns = []] = await ofTick(ask("readHead", ledger));
    const row = headRow(columns);
    const { seq, leaf, changed, checkpoint, signer } = row;
    const last = leaf === null ? undefined : { seq, leaf };
    const signed = { checkpoint: checkpoint ?? undefined, signer: signer ?? undefined };
    return { rows: seq, record: { head: last, changed, frontier: frontierOf(row), ...signed } };
  };
  return {
    description: async () => describedIn(ledger, await ofTick(ask("findLedger", ledger))),
    head,
    counters: async () => countersOf(await ofTick(ask("counters", ledger))),
    ...entriesOf(ofTick, ledger),
    find: searchOf(read, ledger),
    approvals: async ({ before, limit, statuses, key, session, rows: numbers }) => {
      const filters = [statuses ?? null, key ?? null, session ?? null, numbers ?? null];
      const [rows = []] = await read(ask("listApprovals", ledger, before, ...filters, limit));
      return readApprovals(rows.map(keptApproval));
    },
    countWaiting: async (at) => {
      const [rows = []] = await read(ask("waitingApprovals", ledger, at));
      const [calls, late] = rows[0] ?? [];
      return { calls: Number(calls ?? 0), late: Number(late ?? 0) };
    },
  };
}

/** Sends the reads that are requested without a wait between them together, in their order: they take one round trip. */
function together(read: PipelineReader): StatementSender {
  let waiting: (PromiseWithResolvers<readonly PostgresRow[]> & { readonly statement: BoundStatement })[] = [];
  const flush = (): void => {
    const batch = waiting;
    waiting = [];
    read(...batch.map(({ statement }) => statement)).then(
      (rows) => batch.forEach(({ resolve }, index) => resolve(rows[index] ?? [])),
      (error: unknown) => batch.forEach(({ reject }) => reject(error)),
    );
  };
  return (statement) => {
    if (waiting.length === 0) queueMicrotask(flush);
    const answer = Promise.withResolvers<readonly PostgresRow[]>();
    waiting.push({ ...answer, statement });
    return answer.promise;
  };
}

/** The description of a ledger from its row. @throws {LedgerRefused} if it was changed */
export function describedIn(ledger: string, [found]: readonly PostgresRow[]): Description {
  const [log = "", counterSecret = "", checksum, ...head] = (found ?? []) as readonly string[];
  if (checksum === ledgerSeal(ledger, log, counterSecret))
    return { log, counterSecret, signer: headRow(head).signer ?? undefined };
  throw new LedgerRefused(
    `the description of the ledger "${ledger}" (its name, or the secret of its counters) is damaged: restore it from a backup`,
  );
}

/** Searches rows, newest first, in one window of rows after another. */
function searchOf(read: PipelineReader, ledger: string): Tables["find"] {
  /** A row that was the last one. */
  let known = 0;
  return async ({ before, from = 1, limit, ...filters }: RowQuery): Promise<RowSlice> => {
    const [head] = before > known + 1 ? await read(ask("readHead", ledger)) : [];
    if (head !== undefined) known = headRow(head[0] ?? []).seq;
    const top = Math.min(before, known + 1);
    if (top <= from) return { rows: [], next: 0 };
    const floor = Math.max(from, top - windowRows);
    const { statement, values } = readRows(filters);
    const bounds = [top, Math.min(limit, sliceRows), sliceCharacters, floor];
    const [found = []] = await read({ statement, values: [ledger, ...bounds, ...values] });
    const rows = found.map(storedRow);
    return { rows, next: rows.at(-1)?.seq ?? floor };
  };
}

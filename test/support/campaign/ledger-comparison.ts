import { createHash } from "node:crypto";
import pg from "pg";
import { callsMaxOf, hasty, budget, sha256 } from "./contract.ts";

/** A client's result of one call. Clients never repeat a call. */
export type ClientResult =
  | {
      readonly kind: "answered";
      readonly id: string;
      readonly seq: number;
      readonly hash: string;
      readonly verdict: string;
    }
  | { readonly kind: "refused"; readonly id: string; readonly status: number; readonly code: string }
  /** The connection broke, or there was none: the row may or may not exist. */
  | { readonly kind: "cut"; readonly id: string }
  /** Neither an answer nor an end within a minute. */
  | { readonly kind: "hung"; readonly id: string };

/** The faults found, and how much was checked. */
export interface LedgerFindings {
  readonly rows: number;
  readonly checks: number;
  readonly changes: number;
  /** Rows without an answer: stored, and lawful. */
  readonly unanswered: number;
  /** Answers that differ from the ledger or are not in it. */
  readonly lost: readonly string[];
  /** Calls that are in the ledger more than once. */
  readonly twice: readonly string[];
  /** Calls refused with the promise that nothing was stored, but in the ledger. */
  readonly keptThoughRefused: readonly string[];
  /** All other faults: the chain, evidence, counters, verdicts, time. */
  readonly problems: readonly string[];
}

interface Row {
  readonly seq: number;
  readonly leaf: string;
  readonly evidence: string;
  readonly session: string | null;
  readonly tool: string;
  readonly verdict: string;
}

/** The moments between which every row was written, in milliseconds by the database's clock. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

const slice = 5000;
const problemsMax = 20;

/**
 * Reads a ledger as the superuser and checks it without the gate's own code: chain, evidence, counters, verdicts, and
 * the clients' answers.
 */
export async function compareWithLedger(
  url: string,
  ledger: string,
  results: readonly ClientResult[],
  span: Span,
): Promise<LedgerFindings> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`SET svc.ledger TO '${ledger}'`);
    const comparison = new LedgerComparison(span, await contractsOf(client, ledger));
    for (let from = 1; ; from += slice) {
      const { rows } = await client.query<Row>(
        `SELECT seq::float8 AS seq, leaf, evidence, session, tool, verdict FROM svc_gate.receipts
         WHERE ledger = $1 AND seq >= $2 AND seq < $3 ORDER BY seq`,
        [ledger, from, from + slice],
      );
      const { rows: events } = await client.query<CounterEvent>(
        `SELECT e.seq::float8 AS seq, c.definition, encode(e.key, 'hex') AS key, e.at::float8 AS at, e.total
         FROM svc_gate.effects e JOIN svc_gate.counters c ON c.ledger = e.ledger AND c.id = e.counter
         WHERE e.ledger = $1 AND e.seq >= $2 AND e.seq < $3 ORDER BY e.seq`,
        [ledger, from, from + slice],
      );
      if (rows.length === 0) break;
      const ofRow = Map.groupBy(events, ({ seq }) => seq);
      for (const row of rows) comparison.row(row, ofRow.get(row.seq) ?? []);
    }
    const { rows: heads } = await client.query<Head>(
      "SELECT seq::float8 AS seq, leaf, contract, mode FROM svc_gate.ledgers WHERE ledger = $1",
      [ledger],
    );
    comparison.head(heads[0]);
    return comparison.sum(results);
  } finally {
    await client.end();
  }
}

async function contractsOf(client: pg.Client, ledger: string): Promise<ReadonlyMap<string, number>> {
  const { rows } = await client.query<{ digest: string; text: string }>(
    "SELECT digest, text FROM svc_gate.contracts WHERE ledger = $1",
    [ledger],
  );
  return new Map(rows.map(({ text }) => [`sha256:${sha256(text)}`, callsMaxOf(text)]));
}

interface CounterEvent {
  readonly seq: number;
  readonly definition: string;
  readonly key: string;
  readonly at: number;
  readonly total: string;
}

interface Head {
  readonly seq: number;
  readonly leaf: string;
  readonly contract: string;
  readonly mode: string;
}

interface Call {
  readonly session: string;
  readonly id: string;
  readonly account: string;
  /** In hundredths. */
  readonly amount: number;
}

/** The ledger during the walk. */
class LedgerComparison {
  readonly #span: Span;
  readonly #contracts: ReadonlyMap<string, number>;
  readonly #problems: string[] = [];
  readonly #rows: { readonly seq: number; readonly hash: string; readonly id: string; readonly answered: string }[] =
    [];
  #prev = "0".repeat(64);
  #seq = 0;
  #at = 0;
  #log: string | undefined;
  #changes = 0;
  #last: { readonly leaf: string; readonly contract: string; readonly mode: string } | undefined;
  readonly #uses = new Map<string, number>();
  readonly #spent = new Map<string, number>();
  readonly #recent = new Map<string, number[]>();
  /** The value of each counter's key, by its events. */
  readonly #totals = new Map<string, number>();

  constructor(span: Span, contracts: ReadonlyMap<string, number>) {
    this.#span = span;
    this.#contracts = contracts;
  }

  row({ seq, leaf, evidence, session, tool, verdict }: Row, events: readonly CounterEvent[]): void {
    const said = JSON.parse(leaf);
    const parts = this.#chain(seq, said, evidence);
    const { at, contract, mode } = said;
    this.#prev = createHash("sha256").update("\0").update(leaf).digest("hex");
    this.#log ??= said.log;
    this.#require(said.log === this.#log, `row ${seq} is of another ledger`);
    this.#require(at >= this.#at, `row ${seq} lies ${this.#at - at} ms before the row before it`);
    this.#require(
      at >= this.#span.from && at <= this.#span.to,
      `row ${seq} has a time that is not the database's: ${at}`,
    );
    this.#at = at;
    if (said.kind === "change") {
      this.#changes += 1;
      this.#require(verdict === "CHANGE" && events.length === 0, `row ${seq} is a person's act, and counted`);
    } else {
      this.#require(
        this.#last === undefined || (contract === this.#last.contract && mode === this.#last.mode),
        `row ${seq} was decided under what was not in force`,
      );
      const { tool_name: toolName, session_id: sessionId } = parts.get("call") as Record<string, string>;
      this.#require(
        tool === toolName && session === sessionId && verdict === said.verdict,
        `row ${seq} has columns that it does not say`,
      );
      const { id, account, amount } = parts.get("input") as { id: string; account: string; amount: number };
      const call = { session: sessionId ?? "", id, account, amount: Math.round(amount * 100) };
      this.#check({ seq, at, contract, verdict: said.verdict, answered: said.answered }, call, parts, events);
      this.#rows.push({ seq, hash: this.#prev, id, answered: said.answered });
    }
    this.#last = { leaf, contract, mode };
  }

  /** Checks that the row follows the previous one, and that its evidence has the committed digests. */
  #chain(seq: number, said: Record<string, unknown>, evidence: string): ReadonlyMap<string, unknown> {
    this.#require(seq === this.#seq + 1 && said["seq"] === seq, `row ${seq} comes after row ${this.#seq}`);
    this.#seq = seq;
    this.#require(said["prev"] === this.#prev, `row ${seq} does not follow the row before it`);
    const disclosed = evidence.split("~");
    const digests = disclosed.map((part) => createHash("sha256").update(part, "ascii").digest("base64url"));
    this.#require(
      said["evidence"] === createHash("sha256").update(digests.toSorted().join("")).digest("hex"),
      `row ${seq} has other evidence than it commits to`,
    );
    return new Map(
      disclosed.map((part) => JSON.parse(Buffer.from(part, "base64url").toString()).slice(1) as [string, unknown]),
    );
  }

  /**
   * Checks that counters equal the sum of earlier rows, whichever gate wrote them, and that the verdict is the
   * contract's.
   */
  #check(
    row: {
      readonly seq: number;
      readonly at: number;
      readonly contract: string;
      readonly verdict: string;
      readonly answered: string;
    },
    { session, account, amount }: Call,
    parts: ReadonlyMap<string, unknown>,
    events: readonly CounterEvent[],
  ): void {
    const { seq, at, verdict, answered } = row;
    const uses = this.#uses.get(account) ?? 0;
    const spent = this.#spent.get(account) ?? 0;
    const recent = (this.#recent.get(session) ?? []).filter((before) => before > at - hasty.withinMs);
    const { counters } = parts.get("outcome") as { counters: Record<string, string> };
    const read = [counters["campaign.uses"], counters["campaign.spent"], counters["campaign.recent"]].map(Number);
    const expected = [uses, spent / 100, recent.length];
    this.#require(read.join() === expected.join(), `row ${seq} read ${read.join()} and not ${expected.join()}`);
    const isOver = uses >= (this.#contracts.get(row.contract) ?? 0) || spent + amount > budget.hundredthsMax;
    const due = isOver ? "BLOCK" : recent.length >= hasty.calls ? "ESCALATE" : "ALLOW";
    this.#require(
      verdict === due && answered === due,
      `row ${seq} says ${verdict}, answered ${answered}, and not ${due}`,
    );
    this.#recent.set(session, [...recent, at]);
    const moved = answered === "ALLOW" ? [1, amount / 100, 1] : [1];
    if (answered === "ALLOW") {
      this.#uses.set(account, uses + 1);
      this.#spent.set(account, spent + amount);
    }
    this.#require(
      ordered(events.map((event) => this.#movedBy(event))) === ordered(moved),
      `row ${seq} moved its counters otherwise`,
    );
    this.#require(
      events.every((event) => event.at === at),
      `row ${seq} counted at another time`,
    );
  }

  #movedBy({ definition, key, total }: CounterEvent): number {
    const id = `${definition} ${key}`;
    const before = this.#totals.get(id) ?? 0;
    this.#totals.set(id, Number(total));
    return Math.round((Number(total) - before) * 100) / 100;
  }

  head(head: Head | undefined): void {
    const { leaf, contract, mode } = this.#last ?? {};
    this.#require(head?.seq === this.#seq && head.leaf === leaf, "the ledger's head is not its last row");
    this.#require(
      `sha256:${head?.contract}` === contract && head?.mode === mode,
      "what is in force is not what rows say",
    );
  }

  sum(results: readonly ClientResult[]): LedgerFindings {
    const bySeq = new Map(this.#rows.map((row) => [row.seq, row]));
    const ids = Map.groupBy(this.#rows, ({ id }) => id);
    const lost: string[] = [];
    const kept: string[] = [];
    const allowed = new Map<string, number>();
    let answers = 0;
    for (const each of results) {
      if (each.kind === "hung") this.#require(false, `the call ${each.id} had neither an answer nor an end`);
      if (each.kind === "refused" && ids.has(each.id)) kept.push(each.id);
      if (each.kind === "refused" && each.status !== 503)
        this.#require(false, `the call ${each.id} was refused with ${each.status} ${each.code}`);
      if (each.kind !== "answered") continue;
      answers += 1;
      const row = bySeq.get(each.seq);
      if (row?.hash !== each.hash || row.id !== each.id || row.answered !== each.verdict) lost.push(each.id);
      const account = accountOf(each.id);
      if (each.verdict === "ALLOW") allowed.set(account, (allowed.get(account) ?? 0) + 1);
    }
    for (const [account, count] of allowed)
      this.#require(count <= budget.callsMax, `${count} calls of the account ${account} were answered ALLOW`);
    return {
      rows: this.#seq,
      checks: this.#rows.length,
      changes: this.#changes,
      unanswered: this.#rows.length - answers,
      lost,
      twice: [...ids].filter(([, rows]) => rows.length > 1).map(([id]) => id),
      keptThoughRefused: kept,
      problems: this.#problems,
    };
  }

  #require(isTrue: boolean, problem: string): void {
    if (!isTrue && this.#problems.length < problemsMax) this.#problems.push(problem);
  }
}

/** A call's id starts with its account's name. */
export function accountOf(id: string): string {
  return id.slice(0, id.indexOf("."));
}

function ordered(amounts: readonly number[]): string {
  return amounts.toSorted((one, other) => one - other).join();
}

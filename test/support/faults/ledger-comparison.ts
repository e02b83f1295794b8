import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import type { Answered } from "./load.ts";

/** Reads the ledger from its file and checks it without the gate's own code. */
export class LedgerComparison {
  #seq = 0;
  #hash = "0".repeat(64);
  readonly #calls = new Map<string, number>();
  #spent = 0;
  readonly #totals = new Map<string, number>();
  readonly #rows = new Map<number, Pick<Answered, "hash" | "verdict">>();

  /** Reads the new rows, and checks each against all earlier ones. */
  follow(file: string): void {
    const database = new DatabaseSync(file, { readOnly: true });
    const events = Map.groupBy(
      database.prepare("SELECT counter, hex(key) AS key, seq, total FROM effects WHERE seq > ?").all(this.#seq),
      ({ seq }) => Number(seq),
    );
    for (const { seq, leaf, evidence } of database
      .prepare("SELECT seq, leaf, evidence FROM receipts WHERE seq > ? ORDER BY seq")
      .iterate(this.#seq)) {
      this.#row({
        seq: Number(seq),
        leaf: String(leaf),
        evidence: String(evidence),
        events: events.get(Number(seq)) ?? [],
      });
    }
    database.close();
  }

  #row({
    seq,
    leaf,
    evidence,
    events,
  }: {
    seq: number;
    leaf: string;
    evidence: string;
    events: readonly Record<string, unknown>[];
  }): void {
    const { prev, answered, seq: named } = JSON.parse(leaf);
    assert.equal(seq, this.#seq + 1, "rows without a gap");
    assert.equal(named, seq);
    assert.equal(prev, this.#hash, `row ${seq} follows the row before`);
    const parts = new Map(
      evidence
        .split("~")
        .map((part) => JSON.parse(Buffer.from(part, "base64url").toString()).slice(1) as [string, never]),
    );
    const { session_id: session } = parts.get("call") ?? assert.fail();
    const { amount } = parts.get("input") ?? assert.fail();
    const { counters } = parts.get("outcome") ?? assert.fail();
    const calls = this.#calls.get(session) ?? 0;
    assert.deepEqual(
      counters,
      { "load.calls": String(calls), "load.spent": String(this.#spent / 100) },
      `row ${seq} read its counters`,
    );
    const moves = answered === "ALLOW" ? [100, Math.round(amount * 100)] : [100];
    const moved = events.map(({ counter, key, total }) => {
      const id = `${String(counter)} ${String(key)}`;
      const before = this.#totals.get(id) ?? 0;
      this.#totals.set(id, Math.round(Number(total) * 100));
      return Math.round(Number(total) * 100) - before;
    });
    assert.deepEqual(
      moved.toSorted((a, b) => a - b),
      moves.toSorted((a, b) => a - b),
      `row ${seq} moved its counters`,
    );
    this.#calls.set(session, calls + 1);
    if (answered === "ALLOW") this.#spent += Math.round(amount * 100);
    this.#seq = seq;
    this.#hash = createHash("sha256").update("\0").update(leaf).digest("hex");
    this.#rows.set(seq, { hash: this.#hash, verdict: answered });
  }

  get rows(): number {
    return this.#seq;
  }

  /** Returns whether the row exists, with the hash and the verdict that the client received. */
  isKept({ seq, hash, verdict }: Answered): boolean {
    const row = this.#rows.get(seq);
    return row?.hash === hash && row.verdict === verdict;
  }
}

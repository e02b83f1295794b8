import type { ClientConfig } from "pg";
import { serveCalls } from "../calls.ts";
import { makePool, readOne } from "./session.ts";
import { verifyPostgres, type PostgresWalk } from "./verify.ts";

/** Of a ledger that is broken, every event is counted. */
const patience = { statement_timeout: 300_000, query_timeout: 330_000 } as const;

// A thread with one connection of its own: hashes of a long history are no business of the thread that answers checks.
serveCalls({
  verify: async (config: ClientConfig, walk: PostgresWalk) => {
    const pool = makePool({ ...config, ...patience }, 1);
    try {
      return await verifyPostgres((...asked) => readOne(pool, walk.ledger, ...asked), walk);
    } finally {
      await pool.end();
    }
  },
});

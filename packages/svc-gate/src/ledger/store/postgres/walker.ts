import type { ClientConfig } from "pg";
import { serveCalls } from "../calls.ts";
import { makePool, readOne } from "./session.ts";
import { verifyPostgres, type PostgresWalk } from "./verify.ts";

/** Long timeouts, because a walk counts every event of a broken ledger. */
const patience = { statement_timeout: 300_000, query_timeout: 330_000 } as const;

// A separate thread with one connection: hashing a long history would delay the thread that answers checks.
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

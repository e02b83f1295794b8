import type { ClientConfig } from "pg";
import { serveCalls } from "./calls.ts";
import { makePool, readOne } from "./postgres-session.ts";
import { verifyPostgres, type Walk } from "./postgres-verify.ts";

// A thread with one connection of its own: hashes of a long history are no business of the thread that answers checks.
serveCalls({
  verify: async (config: ClientConfig, walk: Walk) => {
    const pool = makePool(config, 1);
    try {
      return await verifyPostgres((...asked) => readOne(pool, walk.ledger, ...asked), walk);
    } finally {
      await pool.end();
    }
  },
});

import type { ClientConfig } from "pg";
import { serveCalls } from "../calls.ts";
import { Steps, type Pause } from "../steps.ts";
import type { Verification } from "../store.ts";
import { makePool, readOne } from "./session.ts";
import { verifyPostgres, type PostgresWalk } from "./verify.ts";

/** Long timeouts, because a walk counts every event of a broken ledger. */
const patience = { statement_timeout: 300_000, query_timeout: 330_000 } as const;

let steps: Steps<Verification> | undefined;

// A separate thread with one connection: hashing a long history would delay the thread that answers checks.
serveCalls({
  begin: (config: ClientConfig, walk: PostgresWalk) => {
    steps = new Steps((pause) => verify(config, walk, pause));
  },
  goOn: () => steps?.next(),
});

async function verify(config: ClientConfig, walk: PostgresWalk, pause: Pause): Promise<Verification> {
  const pool = makePool({ ...config, ...patience }, 1);
  try {
    return await verifyPostgres((...asked) => readOne(pool, walk.ledger, ...asked), walk, pause);
  } finally {
    await pool.end();
  }
}

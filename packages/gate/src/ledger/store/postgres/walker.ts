import type { ClientConfig } from "pg";
import { serveCalls } from "../calls.ts";
import { Steps } from "../steps.ts";
import type { Verification } from "../store.ts";
import { makePool, transact } from "./session.ts";
import { postgresTables } from "./tables.ts";
import { walkStore, type WalkOptions } from "../../history/walk.ts";

/** Long timeouts, because a walk counts every event of a broken ledger. */
const patience = { statement_timeout: 300_000, query_timeout: 330_000 } as const;

let steps: Steps<Verification> | undefined;

// A separate thread with one connection: hashing a long history would delay the thread that answers checks.
serveCalls({
  start: (config: ClientConfig, ledger: string, walk: WalkOptions) => {
    steps = new Steps(async (pause) => {
      const pool = makePool({ ...config, ...patience }, 1);
      try {
        return await walkStore(
          postgresTables((...statements) => transact(pool, ledger, statements, true), ledger),
          walk,
          pause,
        );
      } finally {
        await pool.end();
      }
    });
  },
  goOn: () => steps?.next(),
});

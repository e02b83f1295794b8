import type { Figures } from "./plan.ts";

/**
 * `npm run distributed -- measure` on 2026-11-21: 2 x AMD EPYC (two threads of one core, which other work shared), 24 GiB,
 * Linux 6.18, Node 26.10.0; Citus 13.2 on PostgreSQL 15, a coordinator and two workers on loopback.
 */
export const onCitus: Figures = {
  gateMsPerCheck: 0.181,
  cycleMs: 6.43,
  cycleMsPerRow: 0.14,
  databaseMsPerBatch: 1.38,
  databaseMsPerRow: 0.0789,
  coordinatorMsPerBatch: 1.47,
  coordinatorMsPerRow: 0.03,
  bytesPerCheck: 2813,
};

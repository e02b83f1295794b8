import type { Figures } from "./plan.ts";

/**
 * The output of `npm run distributed -- measure` on 2026-11-21: 2 x AMD EPYC, 24 GiB, Linux 6.18, Node 26.10.0; Citus
 * 13.2 on PostgreSQL 15. Gate, load, coordinator and two workers shared the two processors, so all figures are somewhat
 * higher than on separate machines.
 */
export const onCitus: Figures = {
  gateMsPerCheck: 0.197,
  cycleMs: 3.73,
  cycleMsPerRow: 0.13,
  databaseMsPerBatch: 1.19,
  databaseMsPerRow: 0.0742,
  coordinatorMsPerBatch: 1.31,
  coordinatorMsPerRow: 0.0282,
  bytesPerCheck: 2807,
};

import type { Figures } from "./plan.ts";

export const onCitus: Figures = {
  gateMsPerCheck: 0.08,
  cycleMs: 1.7,
  cycleMsPerRow: 0.08,
  databaseMsPerBatch: 0.7,
  databaseMsPerRow: 0.04,
  coordinatorMsPerBatch: 0.5,
  coordinatorMsPerRow: 0.02,
  bytesPerCheck: 3000,
};

import type { ServeHooks } from "../../gate/src/server/mod.ts";

/** What routes of the gate need from the commands. It is loaded with the first request. */
export const routeHooks: Pick<ServeHooks, "explain" | "report"> = {
  explain: async (...asked) => (await import("../../records/src/explain/for-gate.ts")).explainForGate(...asked),
  report: async (...asked) => (await import("../../records/src/report/for-gate.ts")).reportForGate(...asked),
};

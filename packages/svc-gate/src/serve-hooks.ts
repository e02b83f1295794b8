import type { ServeHooks } from "../../gate/src/server/mod.ts";

/** What routes of the gate need from the commands. It is loaded with the first request. */
export const routeHooks: Pick<ServeHooks, "explain" | "report"> = {
  explain: async (...given) => (await import("../../records/src/explain/for-gate.ts")).explainForGate(...given),
  report: async (...given) => (await import("../../records/src/report/for-gate.ts")).reportForGate(...given),
};

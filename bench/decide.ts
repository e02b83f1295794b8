import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { compileContracts, planLookups, count, decide, prepare } from "../packages/readers/src/contract.ts";
import { parseCheckRequest, type CheckRequest } from "../packages/core/src/wire/mod.ts";
import { atLeast, conclude, median, printTable, round } from "./report.ts";
import { paymentBody } from "./requests.ts";

const rounds = 7;
const perRound = 1_000_000;

/** Decisions a second of the payments contract, including schemas and counting, with requests already parsed. */
export async function benchDecide(): Promise<void> {
  const file = fileURLToPath(new URL("contracts/payments.yaml", import.meta.url));
  const compiled = compileContracts([{ name: "contracts/payments.yaml", text: readFileSync(file, "utf8") }]);
  if (!compiled.ok) throw new Error("the payments contract does not compile");
  const requests = Array.from({ length: 1024 }, (_, at): CheckRequest => {
    const parsed = parseCheckRequest(paymentBody(at));
    if (!parsed.ok) throw new Error(parsed.problem.detail);
    return parsed.value;
  });
  const rates: number[] = [];
  let allowed = 0;
  for (let transaction = 0; transaction <= rounds; transaction += 1) {
    const from = performance.now();
    for (let at = 0; at < perRound; at += 1) {
      const request = requests[at & 1023] as CheckRequest;
      const prepared = prepare(compiled.value, request, { keyName: "default", sessionId: request.sessionId });
      const lookupPlan = planLookups(prepared, 1_790_000_000_000);
      const decision = decide(
        lookupPlan,
        lookupPlan.lookups.map(() => "0"),
      );
      count(prepared, { verdict: decision.verdict, answered: decision.verdict });
      if (decision.verdict === "ALLOW") allowed += 1;
    }
    if (transaction > 0) rates.push(perRound / ((performance.now() - from) / 1000));
  }
  if (allowed !== (rounds + 1) * perRound)
    throw new Error(`${allowed} were allowed: the requests do not fit the contract`);
  printTable([
    ["decisions/s", "min", "median", "max"],
    ["payments, one thread", round(Math.min(...rates)), round(median(rates)), round(Math.max(...rates))],
  ]);
  conclude("decide", { decisions_per_second: atLeast(median(rates), 500_000) });
}

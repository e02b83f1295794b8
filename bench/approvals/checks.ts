import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { paymentBody } from "../requests.ts";

// A process for `cpu.ts`: for each message, the gate of a checkout decides that many checks in batches of 64, and the
// answer is the processor time in microseconds. The batches are those of the caller, so that a busy machine cannot
// change their size. argv: checkout, folder of the ledger, contract.
const [checkout = "", folder = "", contract = ""] = process.argv.slice(2);
const batch = 64;

const at = (path: string): string => pathToFileURL(join(checkout, "packages", path)).href;
const wire = (await import(at("core/src/wire/mod.ts"))) as typeof import("../../packages/core/src/wire/mod.ts");
const ledgers = (await import(at("gate/src/ledger/mod.ts"))) as typeof import("../../packages/gate/src/ledger/mod.ts");
const contracts = (await import(
  at("readers/src/contract.ts")
)) as typeof import("../../packages/readers/src/contract.ts");
const clocks = (await import(
  at("gate/src/server/policy/clock.ts")
)) as typeof import("../../packages/gate/src/server/policy/clock.ts");
const gates = (await import(
  at("gate/src/server/service/gate.ts")
)) as typeof import("../../packages/gate/src/server/service/gate.ts");

const compiled = contracts.compileContracts([{ name: "payments.yaml", text: readFileSync(contract, "utf8") }]);
if (!compiled.ok) throw new Error("the contract does not compile");
const opened = await gates.openGate({
  ledger: await ledgers.openLedger({ folder, engine: "svc-gate/bench" }),
  policySet: compiled.value,
  mode: "enforce",
  clock: new clocks.Clock(clocks.systemTime),
  onDefect: () => undefined,
});
if (!opened.ok) throw new Error(opened.problem.detail);
const { gate } = opened.value;
const asking = { keyName: "default", bytes: 500, digest: "0".repeat(64) };
let sent = 0;

async function check(): Promise<void> {
  const parsed = wire.parseCheckRequest(paymentBody(sent++));
  if (!parsed.ok) throw new Error(parsed.problem.detail);
  const answer = await gate.check(parsed.value, asking);
  if (!answer.ok || !answer.value.startsWith('{"verdict":"ALLOW"')) throw new Error(JSON.stringify(answer));
}

process.on("message", (count: number) => {
  void (async () => {
    const before = process.cpuUsage();
    for (let left = count; left > 0; left -= batch)
      await Promise.all(Array.from({ length: Math.min(left, batch) }, () => check()));
    const { user, system } = process.cpuUsage(before);
    process.send?.(user + system);
  })();
});
process.send?.("ready");

import { benchAdapters } from "./adapters.ts";
import { benchApprovals } from "./approvals.ts";
import { benchCheck } from "./check.ts";
import { benchConsole } from "./console.ts";
import { benchContracts } from "./contracts.ts";
import { benchDecide } from "./decide.ts";
import { benchDeep } from "./deep.ts";
import { benchEvents } from "./events.ts";
import { benchExports } from "./exports.ts";
import { benchHook } from "./hook.ts";
import { benchMcp } from "./mcp.ts";
import { benchOverload } from "./overload.ts";
import { benchPairs } from "./pairs.ts";
import { benchPeers } from "./peers/measure.ts";
import { machine } from "./report.ts";
import { benchProof } from "./proof.ts";
import { benchReads } from "./reads.ts";
import { benchReplicas } from "./replicas.ts";
import { benchReplay } from "./replay.ts";
import { benchScale } from "./scale.ts";
import { benchSessions } from "./sessions.ts";
import { benchTenants } from "./tenants.ts";
import { benchVerify } from "./verify.ts";

// `npm run bench -- NAME`: one benchmark, a table, and a last line of JSON.
const benches: Readonly<Record<string, () => Promise<void>>> = {
  adapters: benchAdapters,
  approvals: benchApprovals,
  check: benchCheck,
  console: benchConsole,
  contracts: benchContracts,
  decide: benchDecide,
  deep: benchDeep,
  events: benchEvents,
  exports: benchExports,
  hook: benchHook,
  mcp: benchMcp,
  overload: benchOverload,
  pairs: benchPairs,
  peers: benchPeers,
  proof: benchProof,
  reads: benchReads,
  replay: benchReplay,
  replicas: benchReplicas,
  scale: benchScale,
  sessions: benchSessions,
  tenants: benchTenants,
  verify: benchVerify,
};

const [name = ""] = process.argv.slice(2);
const bench = benches[name];
if (bench === undefined) {
  console.error(`npm run bench -- NAME, where NAME is ${Object.keys(benches).join(", ")}`);
  process.exitCode = 2;
} else {
  console.log(machine());
  await bench();
}

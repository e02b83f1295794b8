import { existsSync, globSync, readFileSync } from "node:fs";

/** The folders of test/ that contain tests; test/support contains their helpers. The order is that of CONTRIBUTING.md. */
export const rings = ["unit", "service", "process", "postgres", "faults", "repository"] as const;
export type Ring = (typeof rings)[number];

/** A random test whose rounds `npm test` reduces: the file reads their number from the variable. */
export interface Sample {
  readonly file: string;
  readonly variable: string;
  readonly rounds: number;
  /** The file's number of rounds without the variable. */
  readonly whole: number;
}

/** Tests of properties: `npm test` runs a part of their random cases. */
const properties: readonly string[] = [
  "test/unit/workbench/fmt.test.ts",
  "test/unit/contract/fuzz.test.ts",
  "test/unit/contract/run/decide.test.ts",
  "test/unit/contract/run/expressions.test.ts",
  "test/unit/contract/functions/functions.test.ts",
  "test/unit/contract/functions/sql/sql.test.ts",
  "test/unit/contract/functions/shell/shell.test.ts",
  "test/unit/wire/fuzz.test.ts",
];

/** The tests that `npm test` and `--ring` leave to `npm run test:all`. Those commands print each entry at their end. */
export const samples: readonly Sample[] = [
  { file: "test/faults/campaigns/simulation.test.ts", variable: "SIMULATION_RUNS", rounds: 10, whole: 250 },
  { file: "test/faults/campaigns/model.test.ts", variable: "MODEL_RUNS", rounds: 30, whole: 300 },
  { file: "test/faults/campaigns/model-ledger.test.ts", variable: "LEDGER_RUNS", rounds: 1, whole: 6 },
  { file: "test/faults/campaigns/replay.test.ts", variable: "FIDELITY_RUNS", rounds: 250, whole: 3000 },
  { file: "test/faults/campaigns/outcomes-model.test.ts", variable: "OUTCOME_RUNS", rounds: 5, whole: 20 },
  { file: "test/faults/campaigns/approval-mutations.test.ts", variable: "MUTATIONS", rounds: 200, whole: 1000 },
  { file: "test/faults/salts.test.ts", variable: "SALTS", rounds: 1_000_000, whole: 10_000_000 },
  { file: "test/faults/campaigns/hostile.test.ts", variable: "HOSTILE_RUNS", rounds: 500, whole: 3000 },
  { file: "test/faults/campaigns/pairs.test.ts", variable: "DIFF_PAIRS", rounds: 6, whole: 30 },
  { file: "test/faults/kill.test.ts", variable: "KILL_RUNS", rounds: 1, whole: 8 },
  { file: "test/process/clients/clients.test.ts", variable: "CLIENT_RUNTIMES", rounds: 2, whole: 9 },
  { file: "test/process/agent/mcp-calls.test.ts", variable: "MCP_CALLS", rounds: 200, whole: 4000 },
  { file: "test/unit/commands/widths.test.ts", variable: "WIDTH_PAIRS", rounds: 1000, whole: 10_000 },
  { file: "test/service/form-grants-model.test.ts", variable: "GRANT_ROUNDS", rounds: 40, whole: 500 },
  ...properties.map((file) => ({ file, variable: "PROPERTY_SHARE", rounds: 0.05, whole: 1 })),
];

/**
 * Files that `npm test` does not run, so that it ends within four minutes: each takes 6 seconds of processor time or more,
 * most of them because they start processes, or it needs an agent host, which `npm test` does not install. CI runs them.
 */
export const left: readonly string[] = [
  "test/faults/bounds.test.ts",
  "test/faults/campaigns/approvals-model.test.ts",
  "test/faults/campaigns/git-runs-nothing.test.ts",
  "test/faults/campaigns/growth.test.ts",
  "test/faults/campaigns/library.test.ts",
  "test/faults/campaigns/postgres.test.ts",
  "test/faults/campaigns/seeded.test.ts",
  "test/faults/campaigns/shell-second-parser.test.ts",
  "test/faults/campaigns/shell.test.ts",
  "test/faults/campaigns/sql.test.ts",
  "test/faults/copies.test.ts",
  "test/faults/full-disk.test.ts",
  "test/faults/injected.test.ts",
  "test/faults/postgres.test.ts",
  "test/faults/power-cut.test.ts",
  "test/faults/tamper/export-bits.test.ts",
  "test/faults/tamper/export-flips.test.ts",
  "test/faults/tamper/export-hostile.test.ts",
  "test/faults/tamper/ledger.test.ts",
  "test/postgres/aliases.test.ts",
  "test/postgres/approvals.test.ts",
  "test/postgres/console-browser.test.ts",
  "test/postgres/console.test.ts",
  "test/postgres/deploy.test.ts",
  "test/postgres/erasure-by-value.test.ts",
  "test/postgres/first-key.test.ts",
  "test/postgres/mode.test.ts",
  "test/postgres/repeats.test.ts",
  "test/postgres/replicas.test.ts",
  "test/postgres/results.test.ts",
  "test/postgres/resume.test.ts",
  "test/postgres/signed-heads.test.ts",
  "test/process/agent/doctor-tools.test.ts",
  "test/process/agent/doctor.test.ts",
  "test/process/agent/install-hosts.test.ts",
  "test/process/agent/mcp-http.test.ts",
  "test/process/agent/mcp-mutants.test.ts",
  "test/process/agent/mcp-sdks.test.ts",
  "test/process/agent/mcp-suite.test.ts",
  "test/process/agent/mcp.test.ts",
  "test/process/backup.test.ts",
  "test/process/cli/cli.test.ts",
  "test/process/cli/erase-command.test.ts",
  "test/process/cli/import-servers.test.ts",
  "test/process/cli/import-tools.test.ts",
  "test/process/cli/keys-command.test.ts",
  "test/process/cli/spawned.test.ts",
  "test/process/cli/test-command-watch.test.ts",
  "test/process/clients/python-package.test.ts",
  "test/process/clients/tls.test.ts",
  "test/process/collected.test.ts",
  "test/process/config.test.ts",
  "test/process/console/access.test.ts",
  "test/process/console/decide.test.ts",
  "test/process/console/hostile.test.ts",
  "test/process/console/keyboard.test.ts",
  "test/process/console/pages.test.ts",
  "test/process/console/reading.test.ts",
  "test/process/console/together.test.ts",
  "test/process/export/commands.test.ts",
  "test/process/export/export.test.ts",
  "test/process/export/verifiers.test.ts",
  "test/process/hosts/doctor-hosts.test.ts",
  "test/process/hosts/doctor-opencode.test.ts",
  "test/process/hosts/doctor.test.ts",
  "test/process/hosts/envoy.test.ts",
  "test/process/hosts/examples.test.ts",
  "test/process/hosts/frameworks.test.ts",
  "test/process/hosts/hook-mutants.test.ts",
  "test/process/hosts/hosts-opencode.test.ts",
  "test/process/hosts/hosts-programs.test.ts",
  "test/process/hosts/hosts.test.ts",
  "test/process/hosts/judged-arguments.test.ts",
  "test/process/hosts/langchain.test.ts",
  "test/process/hosts/more-frameworks.test.ts",
  "test/process/hosts/mutants.test.ts",
  "test/process/hosts/official-client.test.ts",
  "test/process/hosts/openai-agents.test.ts",
  "test/process/hosts/python-options.test.ts",
  "test/process/mode-start.test.ts",
  "test/process/private-files.test.ts",
  "test/process/solver/diff.test.ts",
  "test/process/stop.test.ts",
  "test/process/swapped-files.test.ts",
  "test/repository/docs/run-blocks.test.ts",
  "test/repository/docs/tutorial.test.ts",
  "test/repository/pack.test.ts",
  "test/service/traces.test.ts",
];

/**
 * The slowest files, slowest first: each run with all rounds writes them. They start first, so that all cores are busy to
 * the end. Each line has the file's seconds and its name.
 */
export const slowestFile = "test/slowest.txt";

export function slowestFiles(): ReadonlyMap<string, number> {
  const lines = existsSync(slowestFile) ? readFileSync(slowestFile, "utf8").split("\n") : [];
  const found = lines.map((line) => /^(\d+) (.+)$/.exec(line)).filter((each) => each !== null);
  return new Map(found.map(([, seconds, path = ""]) => [path, Number(seconds)]));
}

/** The kit's programs, and the versions of the hosts that npm and uv install for it. */
const kit = ["*", "drivers/*", "repros/*", "{envoy,hosts,mcp,libraries/*}/{package,requirements}*"];
/** What a released host reaches: adapters, clients, the commands on its machine, and the gate's answers to them. */
const reached = [
  "adapters/*",
  ...kit.map((names) => `adapters/conformance/${names}`),
  "clients/*/*",
  "packages/agent/**/*.*",
  "packages/core/src/wire/**/*",
  "packages/gate/src/server/http/**/*",
  "contracts/hosts/*",
  "docs/hosts/*",
  "examples/agents/**/*",
];

const product = ["package*.json", "bin/*", "packages/**/*.*", "contracts/**/*", "clients/*/*", "adapters/*", "tools/*"];

/**
 * Tests whose result is kept in the lock of controls: they run only when something has changed that they read. What
 * their files import or name counts too.
 */
export const reading: readonly { readonly tests: string; readonly reads: readonly string[] }[] = [
  {
    tests: "test/repository/docs/*.test.ts",
    reads: ["*.md", "docs/**/*", "spec/**/*", "examples/**/*", "bench/**/*.md", "deploy/**/*", "ops/**/*", ...product],
  },
  {
    tests: "test/repository/deploy/*.test.ts",
    reads: ["Dockerfile", "compose.yaml", "deploy/**/*", "ops/**/*", "docs/guides/*", "mandate.yaml", ...product],
  },
  { tests: "test/process/hosts/*.test.ts", reads: reached },
  {
    tests: "test/repository/walls.test.ts",
    reads: ["tsconfig*.json", "packages/**/tsconfig.json", ".oxlintrc.json", "package-lock.json"],
  },
];

/** @throws for a test outside every ring's folder */
export function ringOf(path: string): Ring {
  const folder = path.split("/")[1];
  const ring = rings.find((name) => name === folder);
  if (ring === undefined) throw new Error(`${path}: move this test to a folder of test/: ${rings.join(", ")}`);
  return ring;
}

/** Returns every test file, slowest first, then by name. */
export function allFiles(): readonly string[] {
  const slowest = [...slowestFiles().keys()];
  const rank = (path: string): number => (slowest.indexOf(path) + slowest.length + 1) % (slowest.length + 1);
  const files = globSync("test/**/*.test.ts").map((path) => path.replaceAll("\\", "/"));
  return files.toSorted().toSorted((one, other) => rank(one) - rank(other));
}

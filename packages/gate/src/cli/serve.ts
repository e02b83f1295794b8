import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { readConfig, serve, type RunningGate } from "../server/start/mod.ts";
import type { ServeHooks } from "../server/mod.ts";
import { StartRefused } from "../server/errors.ts";
import { NotKept } from "../ledger/errors.ts";
import { io } from "./io.ts";
import type { Outcome } from "./outcome.ts";
import { counted } from "./counted.ts";

/**
 * `svc-gate serve`: runs until a signal or a fault. Resolves with the way in which it ended.
 *
 * @param routeHooks what routes of the gate need from other packages
 */
export async function serveCommand(
  flags: Readonly<Record<string, string | undefined>>,
  routeHooks: Pick<ServeHooks, "explain" | "report">,
): Promise<Outcome> {
  const { env, stdout } = io();
  const print = (text: string): void => void stdout.write(`${text}\n`);
  const configured = readConfig(env, flags);
  if (!configured.ok) return { exitCode: 2, text: configured.problem.join("\n") };
  const { config, warnings } = configured.value;
  const hooks = { runTests: contractTests, showCode: print, ...routeHooks };
  const started = serve(config, warnings, hooks).catch((error: unknown) =>
    cannotStart(error, config.databaseUrl !== undefined),
  );
  // A signal during the start is obeyed after it: it must not end a gate that already answers.
  const reload = (): Promise<void> => started.then((serving) => serving.reload("SIGHUP"), nothing);
  io().on("SIGHUP", () => void reload());
  const serving = await started;
  const signal = new Promise<string>((resolve) => {
    // A terminal signals launcher and gate alike, and the launcher forwards its own signal: the second one changes
    // nothing.
    for (const name of ["SIGTERM", "SIGINT"] as const) io().on(name, () => resolve(name));
  });
  // Printed last: after reading that the gate listens, anyone may signal it.
  print(banner(serving));
  await Promise.race([signal, serving.failed]);
  await serving.stop();
  return { exitCode: 0, text: "stopped: every request is answered and recorded" };
}

/** The code that waits for the start reports its failure. */
const nothing = (): void => undefined;

/** A full disk, or a database that goes away during the start, is not a fault of the gate: the operator can fix it. */
function cannotStart(error: unknown, isInDatabase: boolean): never {
  if (!(error instanceof NotKept)) throw error;
  if (!isInDatabase)
    throw new StartRefused(
      `the ledgers cannot be opened: ${error.message}; the gate needs that much free space there before each batch: ` +
        "free some, or set SVC_DATA_DIR to a folder on another disk",
    );
  throw new StartRefused(
    `the ledgers cannot be opened: ${error.message}; start the database, or check SVC_DATABASE_URL`,
  );
}

/** Runs them like `svc-gate test`, in a separate process: the gate continues to answer. */
async function contractTests(path: string): Promise<string | undefined> {
  const entry = fileURLToPath(new URL("../../../svc-gate/bin/svc-gate.mjs", import.meta.url));
  const { status, text } = await new Promise<{ status: number | string | null; text: string }>((resolve) => {
    execFile(
      process.execPath,
      [entry, "test", path],
      { timeout: testsMs, env: withoutSettings() },
      (error, stdout, stderr) =>
        resolve({ status: error === null ? 0 : (error.code ?? null), text: `${stdout}${stderr}`.trim() }),
    );
  });
  return status === 0
    ? undefined
    : `the tests in ${path} did not pass, so nothing was put in force:\n${failuresOf(text)}`;
}

/** Leaves out cases that passed, then files without other cases: a refusal should show the problem. */
function failuresOf(text: string): string {
  return text.replaceAll(/^ {2}✔ .*\n/gm, "").replaceAll(/^\S.*\n\n/gm, "");
}

/** Tests only depend on files: they do not get the gate's settings, which include its keys. */
function withoutSettings(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(io().env).filter(([name]) => !name.startsWith("SVC_")));
}

const testsMs = 120_000;

function banner(serving: RunningGate): string {
  const { address, console: page, noConsole, ops, ledger, contracts, tenants, made, modeChange } = serving;
  const { mode, contract } = serving.gate.policy;
  const changed =
    modeChange &&
    `changed from ${modeChange.from} to ${modeChange.to} by ${modeChange.setting}; row ${modeChange.seq} records it`;
  const lines = [
    `svc-gate listens on ${address}`,
    `  mode      ${mode}${mode === "observe" ? ": verdicts are recorded but not enforced" : ""}`,
    ...(changed === undefined ? [] : [`            ${changed}`]),
    `  contract  sha256:${contract}${contracts.length === 0 ? " (none: every tool is refused)" : ` (${contracts.join(", ")})`}`,
    `  ledger    ${ledger.name}, ${counted(ledger.head.seq, "row")}${ledger.isShared ? ", in the database" : ""}`,
    `  signed    by ${ledger.verifiers.map(({ text }) => text).join(", and by ")}`,
    ...(page === undefined && noConsole === undefined ? [] : [`  console   ${page ?? `off: ${noConsole}`}`]),
    ...(ops === undefined ? [] : [`  watched   ${ops}/metrics and /ready, without a key`]),
    ...(tenants === 0 ? [] : [`  tenants   ${tenants}, under ${address}/t/{tenant}`]),
  ];
  if (made !== undefined)
    lines.push(
      `  key       ${io().stdout.isTTY === true ? `${made.key} (shown once; also in ${made.file})` : `made, in ${made.file}`}`,
    );
  return [...lines, ...serving.warnings.map((warning) => `  warning   ${warning}`)].join("\n");
}

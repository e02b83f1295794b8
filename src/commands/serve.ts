import { readConfig, serve, type Serving } from "../gate/mod.ts";
import type { Outcome } from "./outcome.ts";

/** `svc-gate serve`: until a signal or a fault. Resolves with how it ended. */
export async function serveCommand(
  flags: Readonly<Record<string, string | undefined>>,
  print: (text: string) => void,
): Promise<Outcome> {
  const configured = readConfig(process.env, flags);
  if (!configured.ok) return { exitCode: 2, text: configured.problem.join("\n") };
  const { config, warnings } = configured.value;
  const serving = await serve(config, warnings);
  print(banner(serving));
  const signal = new Promise<string>((resolve) => {
    // A terminal signals launcher and gate alike, and the launcher passes its own on: the second one changes nothing.
    for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, () => resolve(name));
  });
  await Promise.race([signal, serving.failed]);
  await serving.stop();
  return { exitCode: 0, text: "stopped: everything that was asked is answered and recorded" };
}

function banner({ address, gate, ledger, contracts, made }: Serving): string {
  const lines = [
    `svc-gate listens on ${address}`,
    `  mode      ${gate.mode}${gate.mode === "observe" ? ": verdicts are recorded and nothing is enforced" : ""}`,
    `  contract  sha256:${gate.contractDigest}${contracts.length === 0 ? " (none: every tool is refused)" : ` (${contracts.join(", ")})`}`,
    ...(gate.hasCandidate ? ["  candidate decided beside it; it answers nothing"] : []),
    `  ledger    ${ledger.name}, ${ledger.head.seq} rows`,
  ];
  if (made !== undefined)
    lines.push(
      `  key       ${process.stdout.isTTY ? `${made.key} (shown once; also in ${made.file})` : `made, in ${made.file}`}`,
    );
  return lines.join("\n");
}

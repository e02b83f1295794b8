import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { position } from "../contract/mod.ts";
import { inspectLedger } from "../ledger/mod.ts";
import { readConfig } from "./config.ts";
import { loadContracts, renderDiagnostics } from "./contracts.ts";
import { serve, type Serving } from "./serve.ts";
import { starterContract, starterMandate } from "./starter.ts";

/** What a command prints, and how it ends. */
export interface Outcome {
  readonly exitCode: number;
  readonly text: string;
  /** A program reads it: it goes to standard output, whatever the exit code. */
  readonly forPrograms?: boolean;
}

/** `svc-gate check`: compiles, and says every error at once, or what is in force. */
export async function checkCommand(file: string, { json }: { readonly json: boolean }): Promise<Outcome> {
  const compiled = await loadContracts(file);
  if (!compiled.ok) {
    const problems = compiled.problem.map(({ code, message, span, hint }) => {
      const end = position(span.file, span.to);
      return {
        severity: "error",
        code,
        message,
        hint: hint ?? null,
        file: span.file.name,
        ...position(span.file, span.from),
        endLine: end.line,
        endColumn: end.column,
      };
    });
    return {
      exitCode: 2,
      text: json ? JSON.stringify({ ok: false, errors: problems }) : renderDiagnostics(compiled.problem),
      forPrograms: json,
    };
  }
  const { mandate, contracts, tools, counters } = compiled.value;
  const costs = [...tools.values()].map(({ tool, routes, worstCost }) => ({
    tool,
    contracts: routes.map(({ contract }) => contract),
    rules: routes.reduce((sum, { rules }) => sum + rules.length, 0),
    worstCost,
  }));
  if (json)
    return {
      exitCode: 0,
      text: JSON.stringify({ ok: true, mandate, contracts, tools: costs, counters: counters.map(({ name }) => name) }),
    };
  const width = Math.max(4, ...costs.map(({ tool }) => tool.length));
  const rows = costs.map(
    ({ tool, rules, worstCost, contracts: by }) =>
      `  ${tool.padEnd(width)}  ${String(rules).padStart(5)}  ${String(worstCost).padStart(12)}  ${by.join(", ")}`,
  );
  const head = `  ${"tool".padEnd(width)}  rules  steps, worst  contract`;
  return {
    exitCode: 0,
    text: [
      `${file}: no errors; ${contracts.length} contract${contracts.length === 1 ? "" : "s"} in force`,
      "",
      head,
      ...rows,
    ].join("\n"),
  };
}

/** `svc-gate verify`: walks the chain of a ledger in a folder, from outside. */
export async function verifyCommand(
  folder: string,
  { json, pin, chain }: { readonly json: boolean; readonly pin: string | undefined; readonly chain: boolean },
): Promise<Outcome> {
  const { log, rows, head, broken, anchored } = await inspectLedger({ folder, pinFile: pin, chainAlone: chain });
  if (json)
    return {
      exitCode: broken === undefined ? 0 : 1,
      text: JSON.stringify(
        broken === undefined
          ? { ok: true, rows, head, anchored: anchored ?? null }
          : { ok: false, rows, first_broken: broken },
      ),
      forPrograms: true,
    };
  if (broken !== undefined) {
    const { seq, problem, expected, found } = broken;
    return {
      exitCode: 1,
      text: `BROKEN at row ${seq} of ${rows}: ${problem}\n  expected  ${expected}\n  found     ${found}`,
    };
  }
  const anchor =
    anchored === undefined
      ? "nothing outside the data folder anchors it (SVC_PIN)"
      : `anchored through row ${anchored.seq} by the ${anchored.by}`;
  return {
    exitCode: 0,
    text: [
      `ok: ${rows} rows, ${chain ? "the chain alone" : "chain and evidence"} verified`,
      `  ledger  ${log}`,
      `  head    ${head.hash}`,
      `  ${anchor}`,
    ].join("\n"),
  };
}

/** `svc-gate init`: a mandate and a starter contract, in a folder that has none. Overwrites nothing. */
export async function initCommand(folder: string): Promise<Outcome> {
  const files = [
    [join(folder, "mandate.yaml"), starterMandate],
    [join(folder, "contracts", "starter.yaml"), starterContract],
  ] as const;
  const there = files.find(([file]) => existsSync(file));
  if (there !== undefined) return { exitCode: 1, text: `${there[0]} is already there: nothing was overwritten` };
  try {
    await mkdir(join(folder, "contracts"), { recursive: true });
    for (const [file, text] of files) await writeFile(file, text, { flag: "wx" });
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    return {
      exitCode: 1,
      text: `${path ?? folder} cannot be written (${code}): name a folder that this user may write`,
    };
  }
  return {
    exitCode: 0,
    text: [
      ...files.map(([file]) => `wrote ${file}`),
      "",
      `next: svc-gate check ${files[0][0]}, then svc-gate serve --mandate ${files[0][0]}`,
    ].join("\n"),
  };
}

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
    `  ledger    ${ledger.name}, ${ledger.head.seq} rows`,
  ];
  if (made !== undefined)
    lines.push(
      `  key       ${process.stdout.isTTY ? `${made.key} (shown once; also in ${made.file})` : `made, in ${made.file}`}`,
    );
  return lines.join("\n");
}

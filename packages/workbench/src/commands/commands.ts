import {
  EvaluationError,
  explainCommands,
  type CommandTable,
  type ExplainedCommands,
} from "../../../readers/src/tables.ts";
import { position } from "../../../readers/src/contract.ts";
import { BadInput, type Outcome } from "../../../gate/src/cli/mod.ts";
import { findDrift } from "./pack-drift.ts";
import { badInput, loadContracts } from "../../../svc-gate/src/contract-files.ts";

export interface CommandsOptions {
  readonly contract: string;
  readonly folder: string;
  readonly json: boolean;
  /** Compare the table with the help of the installed programs. */
  readonly drift: boolean;
}

/** `svc-gate commands`: prints how a table of commands reads a command line. */
export async function commandsCommand(
  text: string | undefined,
  { contract, folder, json, drift }: CommandsOptions,
): Promise<Outcome> {
  const compiled = await loadContracts(contract);
  if (!compiled.ok) return badInput(compiled.problem, json);
  const { tables } = compiled.value;
  if (tables.size === 0)
    throw new BadInput(
      `${contract} has no contract with \`commands\`: name a contract that has them, or a pack, with --contract`,
    );
  if (drift) return showDrift([...tables], json);
  if (text === undefined)
    throw new BadInput('give a command line, such as `svc-gate commands "git log -p"`, or --drift');
  const shown = await Promise.all([...tables].map(([name, table]) => showTable(name, table, { text, folder, json })));
  return { exitCode: 0, text: json ? JSON.stringify(shown) : shown.join("\n\n"), forPrograms: json };
}

function showDrift(tables: readonly (readonly [contract: string, table: CommandTable])[], json: boolean): Outcome {
  const found = tables.map(([contract, table]) => ({ contract, ...findDrift(table) }));
  const exitCode = found.some(({ options }) => options.length > 0) ? 1 : 0;
  if (json) return { exitCode, text: JSON.stringify(found), forPrograms: true };
  const blocks = found.map(({ contract, options, compared, silent }) => {
    const rows = [...Map.groupBy(options, ({ command }) => command)].map(
      ([command, own]) => `  ${command}: its help does not name ${own.map(({ option }) => option).join(", ")}`,
    );
    const rest = silent.length === 0 ? "" : `; not installed, or without help: ${silent.join(", ")}`;
    const count = compared.length === 0 ? "nothing was compared" : `${compared.length} commands compared`;
    return [`${contract}: ${count}${rest}`, ...rows].join("\n");
  });
  return { exitCode, text: blocks.join("\n\n") };
}

interface TextPlace {
  readonly text: string;
  readonly folder: string;
  readonly json: boolean;
}

async function showTable(name: string, table: CommandTable, { text, folder, json }: TextPlace): Promise<unknown> {
  try {
    const explained = await explainCommands(text, table, folder);
    return json ? asJson(name, explained) : asText(name, explained);
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error;
    return json ? { contract: name, error: error.message } : `${name}: BLOCK\n  ${error.message}`;
  }
}

function asText(name: string, { answer, findings, widths }: ExplainedCommands): string {
  const lines = [`${name}: ${answer.verdict}: ${answer.reason}`];
  for (const { command, verdict, reason, match, form } of findings) {
    if (verdict === "ALLOW" && match === undefined) continue;
    lines.push("", `  ${command === "" ? "(the text)" : command}`);
    lines.push(`    ${verdict}${verdict === "ALLOW" ? "" : `: ${reason}`}`);
    if (verdict !== "ALLOW" && form !== "") lines.push(`    form   ${form}`);
    else if (match !== undefined) {
      const { file, from } = match.form.span;
      lines.push(`    form   ${match.form.run.join(" ")} (${file.name}:${position(file, from).line})`);
    }
  }
  const lists = [
    ["does", answer.does],
    ["reads", answer.reads],
    ["writes", answer.writes],
    ["lists", answer.lists],
    ["trees", answer.trees],
  ] as const;
  lines.push(
    "",
    ...lists.flatMap(([label, values]) =>
      values.size === 0 ? [] : [`  ${label.padEnd(6)} ${[...values].join(", ")}`],
    ),
  );
  const wider = widths.filter((width) => width.name !== "same");
  if (answer.verdict === "ESCALATE" && wider.length > 0)
    lines.push("", "  of the same form", ...wider.map((width) => `    ${width.shown}`));
  if (answer.verdict !== "BLOCK")
    lines.push(
      "",
      "This is what the table says. Rules of the contract may be stricter, for example about these files.",
    );
  return lines.join("\n").trimEnd();
}

function asJson(name: string, { answer, findings, widths }: ExplainedCommands): object {
  const { forms, does, reads, writes, lists, trees, ...rest } = answer;
  const commands = findings.map(({ command, verdict, reason, form, match }) => ({
    command,
    verdict,
    reason,
    form: form === "" ? (match?.form.run.join(" ") ?? "") : form,
  }));
  return {
    contract: name,
    ...rest,
    does: [...does],
    reads: [...reads],
    writes: [...writes],
    lists: [...lists],
    trees: [...trees],
    forms: [...forms],
    commands,
    widths: widths.map((width) => ({ name: width.name, shown: width.shown })),
  };
}

import assert from "node:assert/strict";
import { renderDiagnostic } from "../../../packages/core/src/contract/mod.ts";
import { EvaluationError, type CommandTable } from "../../../packages/core/src/contract/function.ts";
import { explainCommands, type TableAnswer } from "../../../packages/readers/src/tables.ts";
import { compileContracts } from "../../../packages/readers/src/compile.ts";

/** The folder in which every text starts. */
export const start = "/srv/app";

/** A contract with a table of commands, and packs beside it. */
export function contractOf(commands: string): string {
  return `contract: c\ncommands:\n${commands.replace(/^/gm, "  ")}\ntools: {}\n`;
}

/** Compiles the `commands` of a contract, with packs by their names. */
export function tableOf(commands: string, packs: Readonly<Record<string, string>> = {}): CommandTable {
  const files = Object.entries(packs).map(([name, text]) => ({ name, text }));
  const compiled = compileContracts([{ name: "c.yaml", text: contractOf(commands) }, ...files]);
  if (!compiled.ok) assert.fail(compiled.problem.map(renderDiagnostic).join("\n\n"));
  const table = compiled.value.tables.get("c");
  assert.ok(table !== undefined);
  return table;
}

/** Every problem of the `commands` of a contract, as `code: message`. */
export function problemsOf(commands: string, packs: Readonly<Record<string, string>> = {}): readonly string[] {
  const files = Object.entries(packs).map(([name, text]) => ({ name, text }));
  const compiled = compileContracts([{ name: "c.yaml", text: contractOf(commands) }, ...files]);
  return compiled.ok ? [] : compiled.problem.map(({ code, message }) => `${code}: ${message}`);
}

/** An answer with lists in place of sets. A text in doubt is an error, which blocks. */
export interface ShownAnswer {
  readonly verdict: string;
  readonly reason: string;
  readonly form: string;
  readonly does: readonly string[];
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  readonly lists: readonly string[];
  readonly trees: readonly string[];
}

export async function answerTo(text: string, table: CommandTable, folder = start): Promise<ShownAnswer> {
  try {
    return shown((await explainCommands(text, table, folder)).answer);
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error;
    return { verdict: "error", reason: error.message, form: "", does: [], reads: [], writes: [], lists: [], trees: [] };
  }
}

function shown({ forms: _forms, does, reads, writes, lists, trees, ...answer }: TableAnswer): ShownAnswer {
  const sets = { does: [...does], reads: [...reads], writes: [...writes], lists: [...lists], trees: [...trees] };
  return { ...answer, ...sets };
}

import { writeFile } from "node:fs/promises";
import { loadContracts, renderDiagnostics, whyNot } from "../../../../svc-gate/src/cli/mod.ts";
import { bad, quoteAscii, type Result } from "../../../../svc-gate/src/wire/mod.ts";
import type { Outcome } from "../../../../svc-gate/src/cli/mod.ts";
import { driftOf, type Drift } from "./drift.ts";
import { readSource, type Source } from "./source.ts";
import { contractOf, noteText, stubsOf, type Stub } from "./stubs.ts";

export interface ImportOptions {
  /** The command that starts an MCP server. */
  readonly stdio?: string;
  /** A contract or a mandate to compare with. */
  readonly contract?: string;
  readonly check: boolean;
  readonly name?: string;
  readonly out?: string;
  readonly json: boolean;
  /** The server's time limit in seconds. */
  readonly timeout: string;
}

/**
 * `svc-gate import-tools`: writes a contract that lists the tools of a source and refuses all of them. With a contract,
 * only the tools that it lacks; with `check`, the differences between the source and the contract.
 */
export async function importToolsCommand(file: string | undefined, options: ImportOptions): Promise<Outcome> {
  const source = await sourceFor(file, options);
  if (!source.ok) return { exitCode: 2, text: source.problem };
  const stubs = stubsOf(source.value);
  if (options.contract === undefined) {
    if (options.check)
      return { exitCode: 2, text: "--check needs a contract to compare with: name it with --contract" };
    return written(source.value, stubs, options);
  }
  const compiled = await loadContracts(options.contract);
  if (!compiled.ok) return { exitCode: 2, text: renderDiagnostics(compiled.problem) };
  const drift = driftOf(stubs, compiled.value);
  if (options.check) return checked(drift, options);
  return written(
    source.value,
    stubs.filter(({ name }) => drift.added.includes(name)),
    options,
  );
}

async function sourceFor(file: string | undefined, { stdio, timeout }: ImportOptions): Promise<Result<Source, string>> {
  if ((file === undefined) === (stdio === undefined)) return bad("name one source: a file, or a server with --stdio");
  if (stdio === undefined) return readSource(file ?? "");
  const seconds = Number(timeout);
  if (!(seconds > 0 && seconds <= 600)) return bad("--timeout must be a number of seconds, at most 600");
  const words = Array.from(stdio.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g), ([, a, b, c]) => a ?? b ?? c ?? "");
  if (words.length === 0) return bad("--stdio must be a command that starts an MCP server");
  return (await import("./server.ts")).askServer(words, seconds * 1000);
}

async function written(source: Source, stubs: readonly Stub[], options: ImportOptions): Promise<Outcome> {
  const name = options.name ?? contractName(source.name);
  if (!isName(name))
    return {
      exitCode: 2,
      text: `${quoteAscii(name)} is not a contract's name: use lower-case letters, digits, - and _`,
    };
  const text = contractOf(name, stubs);
  const warnings = stubs.flatMap((stub) => stub.notes.map((note) => `${stub.name}: ${noteText(note)}`));
  if (options.json)
    return { exitCode: 0, text: JSON.stringify({ contract: text, tools: stubs.map((stub) => stub.name), warnings }) };
  for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
  if (options.out === undefined) return { exitCode: 0, text: text.trimEnd() };
  try {
    await writeFile(options.out, text, { flag: "wx" });
  } catch (error) {
    return {
      exitCode: 2,
      text: `${options.out} was not written: ${whyNot(error)}`,
    };
  }
  return { exitCode: 0, text: `wrote ${options.out}: ${stubs.length} tools, all refused` };
}

function checked(drift: Drift, { json }: ImportOptions): Outcome {
  const { added, gone, changed } = drift;
  const isSame = added.length + gone.length + changed.length === 0;
  const exitCode = isSame ? 0 : 1;
  if (json) return { exitCode, text: JSON.stringify({ ok: isSame, new: added, gone, changed }), forPrograms: true };
  const lines = [
    ...added.map((name) => `new      ${name}`),
    ...gone.map((name) => `gone     ${name}`),
    ...changed.flatMap(({ tool, members }) => [
      `changed  ${tool}`,
      ...members.map((member) => `           ${noteText({ at: member.at, text: member.what })}`),
    ]),
  ];
  return { exitCode, text: isSame ? "the contract lists the source's tools as they are" : lines.join("\n") };
}

function contractName(source: string): string {
  const name = source
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replace(/^[^a-z]+/, "")
    .slice(0, 64)
    .replace(/-$/, "");
  return isName(name) ? name : "imported";
}

function isName(name: string): boolean {
  return name.length <= 64 && /^[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*$/.test(name);
}

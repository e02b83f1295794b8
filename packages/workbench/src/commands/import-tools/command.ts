import { writeFile } from "node:fs/promises";
import { counted, io, whyNot, type Outcome } from "../../../../gate/src/cli/mod.ts";
import { loadContracts, renderDiagnostics } from "../../../../svc-gate/src/contract-files.ts";
import { bad, quoteAscii, type Result } from "../../../../core/src/wire/mod.ts";
import { compileContracts } from "../../../../readers/src/contract.ts";
import { runAgentCommand } from "./agent-command.ts";
import { driftOf, type Drift } from "./drift.ts";
import { serverPrefix } from "./names.ts";
import { readSource, sourceIn, type ImportSource } from "./source.ts";
import { contractOf, noteText, stubsOf, type Stub } from "./stubs.ts";

export interface ImportOptions {
  /** A running MCP server: its address, or true if a command follows `--`. */
  readonly mcp?: string | true;
  /** The server's name; false keeps the tools' own names. */
  readonly server?: string | false;
  /** True if a file of a project names the server. */
  readonly project: boolean;
  /** An installed agent host. */
  readonly agent?: string;
  /** The host's program. */
  readonly host?: string;
  /** A contract or a mandate to compare with. */
  readonly contract?: string;
  readonly check: boolean;
  readonly name?: string;
  readonly out?: string;
  readonly json: boolean;
  /** How long a server may take for one answer, in seconds. */
  readonly timeout?: string;
}

/**
 * `svc-gate import-tools`: writes a contract that lists the tools of a source and refuses all of them. With a contract,
 * only the tools that it lacks; with `check`, the differences between the source and the contract.
 *
 * @param words a file, or after `--mcp` the command that starts a server
 */
export async function importToolsCommand(words: readonly string[], options: ImportOptions): Promise<Outcome> {
  if (options.check && options.contract === undefined)
    return { exitCode: 2, text: "--check needs a contract to compare with: name it with --contract" };
  const source = await sourceFor(words, options);
  if (!source.ok) return { exitCode: 2, text: source.problem };
  for (const each of source.value.leftOut ?? []) io().stderr.write(`warning: ${each}\n`);
  const stubs = stubsOf(source.value);
  if (options.contract === undefined) return writeContract(source.value, stubs, options);
  const compiled = await loadContracts(options.contract);
  if (!compiled.ok) return { exitCode: 2, text: renderDiagnostics(compiled.problem) };
  const drift = driftOf(stubs, compiled.value, (name) => isOfSource(source.value, name));
  if (options.check) return reportDrift(drift, options);
  return writeContract(
    source.value,
    stubs.filter(({ name }) => drift.added.includes(name)),
    options,
  );
}

/** A contract may also list tools of other servers, and channels of this one: their names have more dots. */
function isOfSource({ server, host }: ImportSource, name: string): boolean {
  if (host !== undefined) return !name.includes(".");
  return server === undefined || (name.startsWith(`${server}.`) && !name.slice(server.length + 1).includes("."));
}

async function sourceFor(words: readonly string[], options: ImportOptions): Promise<Result<ImportSource, string>> {
  const { mcp, agent, server, project } = options;
  const isFile = mcp === undefined && agent === undefined;
  const wanted = isFile || mcp === true ? 1 : 0;
  if ((mcp !== undefined && agent !== undefined) || words.length < wanted || (mcp !== true && words.length > wanted))
    return bad(sourcesText);
  if (agent !== undefined) return ofAgent(agent, options);
  if (mcp !== undefined) return ofServer(mcp, words, options);
  if (server === false) return readSource(words[0] ?? "", null);
  if (server === undefined) return readSource(words[0] ?? "");
  const prefix = serverPrefix(server, project);
  return prefix === undefined ? bad("--server needs a name") : readSource(words[0] ?? "", prefix);
}

const sourcesText =
  "name one source: a file, `-` for standard input, `--mcp URL`, `--mcp -- COMMAND`, or `--agent NAME`";

async function ofServer(
  mcp: string | true,
  command: readonly string[],
  { server, project, timeout }: ImportOptions,
): Promise<Result<ImportSource, string>> {
  const printed = await runAgentCommand([
    "mcp",
    "tools",
    ...(typeof server === "string" ? ["--name", server] : []),
    ...(project ? ["--project"] : []),
    ...(timeout === undefined ? [] : ["--timeout", timeout]),
    ...(mcp === true ? ["--", ...command] : ["--upstream", mcp]),
  ]);
  return printed.ok ? sourceIn(printed.value, server === false ? null : undefined) : printed;
}

async function ofAgent(agent: string, { host }: ImportOptions): Promise<Result<ImportSource, string>> {
  const more = host === undefined ? [] : ["--host", host];
  const printed = await runAgentCommand(["doctor", "--tools", "--agent", agent, ...more]);
  return printed.ok ? sourceIn(printed.value) : printed;
}

async function writeContract(source: ImportSource, stubs: readonly Stub[], options: ImportOptions): Promise<Outcome> {
  const name = options.name ?? contractName(source.name);
  if (!isName(name))
    return {
      exitCode: 2,
      text: `${quoteAscii(name)} is not a contract's name: use lower-case letters, digits, - and _`,
    };
  const text = contractOf(name, stubs, source.host);
  const compiled = compileContracts([{ name: options.out ?? `${name}.yaml`, text }]);
  if (!compiled.ok) {
    const [first] = compiled.problem;
    return { exitCode: 2, text: `a contract of these tools does not compile: ${first?.message ?? "unknown"}` };
  }
  const warnings = stubs.flatMap((stub) => stub.notes.map((note) => `${stub.name}: ${noteText(note)}`));
  if (options.json)
    return { exitCode: 0, text: JSON.stringify({ contract: text, tools: stubs.map((stub) => stub.name), warnings }) };
  for (const warning of warnings) io().stderr.write(`warning: ${warning}\n`);
  if (options.out === undefined) return { exitCode: 0, text: text.trimEnd() };
  try {
    await writeFile(options.out, text, { flag: "wx" });
  } catch (error) {
    const isThere = (error as NodeJS.ErrnoException).code === "EEXIST";
    const next = isThere ? "; choose another file, or compare with --contract FILE --check instead of --out" : "";
    return { exitCode: 2, text: `${options.out} was not written: ${whyNot(error)}${next}` };
  }
  const next = `Write rules, then run svc-gate check ${options.out}`;
  return { exitCode: 0, text: `wrote ${options.out}: ${counted(stubs.length, "tool")}, all refused. ${next}` };
}

function reportDrift(drift: Drift, { json }: ImportOptions): Outcome {
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

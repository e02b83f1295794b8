/**
 * Writes two pages of docs/hosts from what the kit found: README.md with one line for each host, and results.md with all cases.
 * Each line about a host begins with the host's name.
 */
import type { Driver } from "./case.ts";
import { cases } from "./cases.ts";
import type { CaseRun } from "./kit.ts";
import { open } from "./open.ts";

export interface HostRun {
  readonly driver: Driver;
  readonly version: string;
  readonly runs: readonly CaseRun[];
}

const head = `# Agent hosts

| you have | use | page |
|---|---|---|
| Claude Code | a hook, which \`svc-gate hook install\` sets up | [claude-code.md](claude-code.md) |
| Codex CLI | the same | [codex.md](codex.md) |
| Gemini CLI | the same | [gemini-cli.md](gemini-cli.md) |
| GitHub Copilot CLI | the same | [copilot-cli.md](copilot-cli.md) |
| opencode | a plugin | [opencode.md](opencode.md) |
| a program with the Claude Agent SDK | the adapter | [claude-agent-sdk.md](claude-agent-sdk.md) |
| a program with the Vercel AI SDK | the adapter | [ai-sdk.md](ai-sdk.md) |
| a program with CrewAI | the adapter | [crewai.md](crewai.md) |
| a program with Google's ADK | the adapter | [google-adk.md](google-adk.md) |
| a program with LangChain or LangGraph | the adapter | [langchain.md](langchain.md) |
| a program with LlamaIndex | the adapter | [llama-index.md](llama-index.md) |
| a program with Mastra | the adapter | [mastra.md](mastra.md) |
| a program with Microsoft Agent Framework | the adapter | [agent-framework.md](agent-framework.md) |
| a program with the OpenAI Agents SDK | the adapter | [openai-agents.md](openai-agents.md) |
| a program with Pydantic AI | the adapter | [pydantic-ai.md](pydantic-ai.md) |
| a program with smolagents | the adapter | [smolagents.md](smolagents.md) |
| any other agent with MCP servers | a proxy in front of each server | [mcp.md](mcp.md) |
| Envoy in front of an MCP server | a route of the gate | [envoy.md](envoy.md) |
| LiteLLM in front of a model | instead, a check where the tools run | [litellm.md](litellm.md) |
| your own code that runs tool calls | the client, where your code runs them | [the clients](../../spec/client.md) |

## What holds

A test runs each released host with a scripted model and a real gate, in all cases that apply: errors of the gate and of the hook, hostile
calls, approvals, files of a project. A case is *closed* if nothing ran that the gate did not allow. It is *open* if another call ran, or
if the run ended too early. [Every case, and what closes an open one](results.md).
`;

const resultsHead = `# Results of each host, by case

A test runs each released host with a scripted model and a real gate. It fails if its results differ from this page. \`npm run hosts\`
writes this page and [the short one](README.md). With \`-- --newest\` the command runs the newest versions instead, and prints the results.

The tools write a file when they run. The test compares that file, the results that the model saw, and the gate's receipts.
`;

/** The two pages, by their names in docs/hosts. */
export const pages: Readonly<Record<string, (hosts: readonly HostRun[]) => string>> = {
  "README.md": shortPage,
  "results.md": resultsPage,
};

function shortPage(hosts: readonly HostRun[]): string {
  return `${head}
| host | version | cases | open |
|---|---|---|---|
${hosts.map(shortRow).join("\n")}
`;
}

function resultsPage(hosts: readonly HostRun[]): string {
  const titles = [...cases.map(({ id, title }) => `| ${id} | ${title} |`), `| G1 | ${lastTitle(hosts)} |`];
  return `${resultsHead}
## Results

| host | version | closed | open | not applicable |
|---|---|---|---|---|
${hosts.map(row).join("\n")}

## Open cases

${reasonTable(hosts, openReason)}

## Cases that do not apply

${reasonTable(hosts, ({ excuse }) => excuse)}

## Cases

| case | what happens |
|---|---|
${titles.join("\n")}
`;
}

/** Returns what the pages say about a host: its rows of results, and the reasons with their cases. */
export function linesAbout(page: string, name: string): readonly string[] {
  return page.split("\n").flatMap((line) => {
    if (line.startsWith(`| [${name}](`)) return [line];
    const [, ids = "", reason = "", hosts = ""] = /^\| ([A-Z][^|]*) \| ([^|]+) \| ([^|]+) \|$/.exec(line) ?? [];
    return hosts.split("; ").includes(name) ? [`${ids}: ${reason}`] : [];
  });
}

/** Returns a sentence for each case that failed and is not listed, and for each listed case that passed. */
export function surprises({ driver, runs }: HostRun): readonly string[] {
  const known = open[driver.name] ?? {};
  return runs.flatMap(({ id, problems, excuse }) => {
    const isListed = known[id] !== undefined;
    if (problems.length > 0) return isListed ? [] : [`${driver.name} ${id}: ${problems.join("\n  ")}`];
    return isListed && excuse === undefined ? [`${driver.name} ${id} is closed now: remove it from open.ts`] : [];
  });
}

function shortRow({ driver, version, runs }: HostRun): string {
  const tried = runs.filter(({ excuse }) => excuse === undefined);
  const failed = tried.filter(({ problems }) => problems.length > 0);
  const words = [...new Set(failed.map(({ id }) => open[driver.name]?.[id]?.words ?? id))].join("; ");
  const counts = `${tried.length - failed.length} closed, ${failed.length} open`;
  return `| [${driver.name}](${driver.page}) | ${version} | ${counts} | ${words} |`;
}

function row({ driver, version, runs }: HostRun): string {
  const ids = (wanted: (run: CaseRun) => boolean): string => idsOf(runs.filter(wanted));
  const closed = ids(({ problems, excuse }) => excuse === undefined && problems.length === 0);
  const isOpen = ids(({ problems }) => problems.length > 0);
  return `| [${driver.name}](${driver.page}) | ${version} | ${closed} | ${isOpen} | ${ids(({ excuse }) => excuse !== undefined)} |`;
}

function openReason({ id, problems }: CaseRun, { name }: Driver): string | undefined {
  return problems.length === 0 ? undefined : (open[name]?.[id]?.why ?? "new, see the output of the test");
}

/** Returns a table with each reason once, for the hosts that share it with the same cases. */
function reasonTable(
  hosts: readonly HostRun[],
  reasonOf: (run: CaseRun, driver: Driver) => string | undefined,
): string {
  const found = hosts.flatMap(({ driver, runs }) => {
    const reasons = Map.groupBy(runs, (run) => reasonOf(run, driver));
    return [...reasons].flatMap(([reason, of]) =>
      reason === undefined ? [] : [{ name: driver.name, line: `| ${idsOf(of)} | ${reason} |` }],
    );
  });
  const lines = Map.groupBy(found, ({ line }) => line);
  const rows = [...lines].map(([line, of]) => `${line} ${of.map(({ name }) => name).join("; ")} |`);
  return ["| cases | why | hosts |", "|---|---|---|", ...rows.toSorted()].join("\n");
}

function idsOf(runs: readonly CaseRun[]): string {
  return runs.map(({ id }) => id).join(" ");
}

function lastTitle([first]: readonly HostRun[]): string {
  return first?.runs.at(-1)?.title ?? "";
}

/** `svc-gate doctor --tools`: starts an agent host with a scripted model, and prints the tools that it offers its model. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import { BadInput } from "../bad-input.ts";
import type { OfferedTool } from "../model/protocol.ts";
import { startModel, type Shown } from "../model/server.ts";
import { claudeCodeTools } from "./claude-code-tools.ts";
import type { ListedAgent } from "./hosts.ts";
import { startStandIn } from "./stand-in.ts";
import type { ListerStart, ToolLister } from "./tool-lister.ts";

/** Each agent whose tools can be listed. */
const listers: Readonly<Record<ListedAgent, ToolLister>> = { "claude-code": claudeCodeTools };

export interface ToolsRequest extends Pick<ListerStart, "isCut" | "named" | "project"> {
  readonly agent: ListedAgent;
}

/** Prints `{agent, version, tools}`. Notes for people go to standard error. */
export async function printHostTools({ agent, named, project, isCut }: ToolsRequest): Promise<number> {
  const lister = listers[agent];
  const say = (sentence: string): void => void process.stderr.write(`svc-gate doctor: ${sentence}\n`);
  const version = lister.version(named);
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-gate-doctor-"))); // the host names its folder so
  const leave = (): void => rmSync(folder, { recursive: true, force: true });
  process.once("exit", leave);
  for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
  const [gate, model] = await Promise.all([startStandIn(randomBytes(24).toString("hex")), startModel({ tools: [] })]);
  try {
    const shown = (): readonly Shown[] =>
      model.shown.filter((each) => each.script === "tools" && each.tools.length > 0);
    const timesShown = (): number => shown().length;
    const line = await lister.start({ named, project, isCut, model: model.url, gate, folder, timesShown, say });
    if (timesShown() === 0) throw new BadInput(`the host ended before it asked its model: ${line.slice(0, 300)}`);
    const tools = namedAtGate(offeredIn(shown()), lister, say);
    process.stdout.write(`${JSON.stringify({ agent, version, tools }, null, 2)}\n`);
    return 0;
  } finally {
    await Promise.all([gate.stop(), model.stop()]);
    leave();
  }
}

/** The tools of all requests, in order of their names. Sub-agents and other modes of a host have other lists. */
function offeredIn(shown: readonly Shown[]): readonly OfferedTool[] {
  const found = new Map<string, OfferedTool>();
  for (const tool of shown.flatMap(({ tools }) => tools)) if (!found.has(tool.name)) found.set(tool.name, tool);
  return [...found.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

function namedAtGate(
  tools: readonly OfferedTool[],
  { gateName }: ToolLister,
  say: ListerStart["say"],
): readonly object[] {
  const named = tools.map((tool) => ({ ...tool, gate: gateName(tool.name) }));
  const others = named.filter(({ gate }) => gate === undefined);
  const subject = others.length === 1 ? "1 tool of MCP servers is" : `${others.length} tools of MCP servers are`;
  if (others.length > 0) say(`${subject} left out: import them with svc-gate import-tools --mcp`);
  return named.flatMap(({ gate, description, schema }) =>
    gate === undefined ? [] : [{ name: gate, description, ...(schema === undefined ? {} : { inputSchema: schema }) }],
  );
}

/** `svc-gate doctor --tools`: starts an agent host with a scripted model, and prints the tools that it offers its model. */
import { join } from "node:path";
import { InputError } from "../bad-input.ts";
import type { OfferedTool } from "../model/protocol.ts";
import type { ScriptedModel } from "../model/server.ts";
import { copiesOf, isOfMachine, readFiles, type Copies } from "./files.ts";
import type { DoctorHost, ToolListing, StartContext, SettingsFile } from "./host.ts";
import { hosts } from "./hosts.ts";
import { mergedJson } from "./redirect.ts";
import { inRoom, type Room } from "./room.ts";
import { findHost, runHost, type InstalledHost } from "./run.ts";

export interface ToolsRequest {
  readonly agent: string;
  /** The host's program, if it was given. */
  readonly named: string | undefined;
  readonly project: string | undefined;
  /** True if the host can reach this machine only. */
  readonly isCut: boolean;
}

/** Prints `{agent, version, tools}`. Notes for people go to standard error. */
export async function printHostTools({ agent, named, project, isCut }: ToolsRequest): Promise<number> {
  const host = hosts[agent] as DoctorHost;
  const installed = findHost(host, named);
  const files = readFiles(host, project);
  const hooked = files.find((file) => isOfMachine(host, file) && host.commandsIn(file.text).length > 0);
  if (!isCut && hooked !== undefined)
    throw new InputError(`${hooked.path} starts programs, and this system does not let the doctor prevent that`);
  return inRoom(
    host,
    isCut,
    () => ({ tools: [] }),
    async (room) => {
      const line = await startHost(host, installed, files, room);
      if (requestsIn(room.model).length === 0)
        throw new InputError(`the host ended before it asked its model: ${line.slice(0, 300)}`);
      const tools = namedAtGate(offeredIn(room.model), host);
      process.stdout.write(`${JSON.stringify({ agent, version: installed.version, tools }, null, 2)}\n`);
      return 0;
    },
  );
}

/** Starts the host with the marker of the script `tools` as its user's text, and returns the last line that it wrote. */
async function startHost(
  host: DoctorHost,
  { program, version }: InstalledHost,
  files: readonly SettingsFile[],
  room: Room,
): Promise<string> {
  const { listing } = host;
  const { gate, model } = room;
  const copies = copiesOf(host, files, { gate, keyFile: join(room.folder, "key"), keepsHook: false });
  const context = room.makeContext(
    version,
    listing === undefined ? { user: [], project: undefined } : settingsFor(host, listing, copies),
  );
  if (listing !== undefined)
    room.replaceMachineFiles(copies.machine.map((file) => ({ ...file, text: listing.settings(file.text) })));
  const start = host.start(context, "[[tools]]");
  const output = await runHost(program, context, start);
  const times = requestsIn(model).length;
  if (times > 0 && listing !== undefined) {
    const isOver = (): boolean => requestsIn(model).length > times;
    await runHost(program, context, { ...start, words: listing.session("[[tools]]") }, isOver);
    if (!isOver()) say("no session with a terminal was seen: tools that need a person are not listed");
  }
  return output.trim().split("\n").at(-1) ?? "";
}

function settingsFor(
  host: DoctorHost,
  { settings }: ToolListing,
  { user, project }: Copies,
): Pick<StartContext, "user" | "project"> {
  const [first = { path: "", text: "{}" }] = user;
  return {
    user: [{ ...first, text: settings(first.text) }],
    project: (host.merged ?? mergedJson)(
      project.map(({ text }) => settings(text)),
      {},
    ),
  };
}

/** The requests with which the host has shown the model its tools. */
function requestsIn({ shown }: ScriptedModel): ScriptedModel["shown"] {
  return shown.filter(({ script, tools }) => script === "tools" && tools.length > 0);
}

/** The tools of all requests, in order of their names. Sub-agents and other modes of a host have other lists. */
function offeredIn(model: ScriptedModel): readonly OfferedTool[] {
  const found = new Map<string, OfferedTool>();
  for (const tool of requestsIn(model).flatMap(({ tools }) => tools))
    if (!found.has(tool.name)) found.set(tool.name, tool);
  return [...found.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

function namedAtGate(tools: readonly OfferedTool[], { atGate = (tool) => tool }: DoctorHost): readonly object[] {
  const named = tools.map((tool) => ({ tool, found: atGate(tool) }));
  const left = named.flatMap(({ tool, found }) => (typeof found === "string" ? [{ name: tool.name, why: found }] : []));
  for (const why of new Set(left.map((each) => each.why))) {
    const names = left.filter((each) => each.why === why).map(({ name }) => name);
    say(`left out, because ${why}: ${names.join(", ")}`);
  }
  return named.flatMap(({ found }) => {
    if (typeof found === "string") return [];
    const { name, description, schema } = found;
    return [{ name, description, ...(schema === undefined ? {} : { inputSchema: schema }) }];
  });
}

function say(sentence: string): void {
  process.stderr.write(`svc-gate doctor: ${sentence}\n`);
}

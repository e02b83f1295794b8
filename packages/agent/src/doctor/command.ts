/**
 * `svc-gate doctor`: start the installed host with the user's settings, a scripted model and the doctor's own gate. Say
 * whether a blocked call ran, and what switches the hook off.
 */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { saysYes } from "../ask.ts";
import { InputError } from "../bad-input.ts";
import { approverFiles } from "../install/approver-files.ts";
import type { Scripts } from "../model/script.ts";
import type { Case } from "./cases.ts";
import { copiesOf, isOfMachine, readFiles } from "./files.ts";
import type { DoctorHost, SettingsFile } from "./host.ts";
import { hosts } from "./hosts.ts";
import { canCutNetwork, isInside, runInside } from "./namespaces.ts";
import { mergedJson } from "./redirect.ts";
import { inRoom, type Room } from "./room.ts";
import { findHost, runHost, type InstalledHost } from "./run.ts";

const usage = `usage: svc-gate doctor --agent NAME [options]

Start the installed host with your settings, a scripted model and a gate of the doctor's own, and say whether a blocked call ran.
The scripted calls only touch files in a folder of the doctor's own.

  --agent NAME       the host: ${Object.keys(hosts).join(", ")}
  --host FILE        the host's program, by default the one in PATH
  --project FOLDER   also use the settings of this project
  --yes              start the listed commands without asking
  --json             print the results for programs
  --tools            print the tools that the host offers its model instead, for \`svc-gate import-tools\`

Exit code 0: nothing ran without the gate's ALLOW; 1: a case is open, or has no result; 2: the doctor could not start.
`;

const options = {
  agent: { type: "string", default: "" },
  host: { type: "string" },
  project: { type: "string" },
  yes: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  tools: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

/** The result of one case. */
interface DoctorResult {
  readonly of: Case;
  readonly ran: boolean;
  /** True if a hook asked the doctor's gate. */
  readonly asked: boolean;
  /** The host's last line if the model never saw the call's result: then nothing is known. */
  readonly trouble: string | undefined;
}

/** Runs the command. */
export async function doctorCommand(words: readonly string[]): Promise<number> {
  const values = read(words);
  if (values.help) return say(usage.trimEnd());
  const isCut = isInside();
  if (!isCut && process.getuid?.() === 0)
    throw new InputError("the doctor does not run as root: run it as the user whose agent it tests");
  const project = values.project === undefined ? undefined : resolve(values.project);
  if (values.tools) return listTools(values, words, project);
  const agent = hosts[values.agent] as DoctorHost;
  const installed = findHost(agent, values.host);
  const files = readFiles(agent, project);
  const examination = { name: values.agent, agent, installed, files, isJson: values.json };
  if (isCut && values.yes) return examine({ ...examination, isCut: true });
  if (!values.json) describe(values.agent, agent, installed, files);
  const nobody = new InputError("nobody can answer here: add --yes to start the host");
  if (!(values.yes || (await saysYes("Start them?", nobody)))) return say("nothing was started", 1);
  if (canCutNetwork()) return runInside([...words.filter((word) => word !== "--yes"), "--yes"]);
  return examine({ ...examination, isCut: false });
}

/** It starts nothing but the host, so it does not ask. */
async function listTools(values: DoctorFlags, words: readonly string[], project: string | undefined): Promise<number> {
  const isCut = isInside();
  if (!isCut && canCutNetwork()) return runInside(words);
  const { printHostTools } = await import("./tools.ts");
  return printHostTools({ agent: values.agent, named: values.host, project, isCut });
}

type DoctorFlags = ReturnType<typeof parseArgs<{ options: typeof options }>>["values"];

function read(words: readonly string[]): DoctorFlags {
  try {
    const { values } = parseArgs({ args: [...words], options });
    const agents = Object.keys(hosts);
    if (!values.help && !agents.includes(values.agent))
      throw new InputError(`--agent must be one of ${agents.join(", ")}`);
    return values;
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new InputError(`${(error as Error).message} (run svc-gate doctor --help for its options)`);
  }
}

function describe(
  name: string,
  agent: DoctorHost,
  { program, version }: InstalledHost,
  files: readonly SettingsFile[],
): void {
  say(`${agent.product} ${version} (${program})`);
  for (const { path, text } of files) {
    const form = agent.gateHookIn(text);
    const hook = form === undefined ? "no hook of the gate" : `the gate's hook as ${form}`;
    say(`${path}: ${hook}${agent.isGrantMode(text) ? ", grant mode" : ""}`);
    for (const command of agent.commandsIn(text)) say(`  ${command}`);
  }
  if (files.length === 0) say(`no settings: set up the gate in ${agent.product} first (docs/hosts/${name}.md)`);
  else say("The doctor starts the host with these hooks. Those of the gate ask the doctor's own gate.");
  const note = agent.note?.(files);
  if (note !== undefined) say(note);
}

interface Examination {
  readonly name: string;
  readonly agent: DoctorHost;
  readonly installed: InstalledHost;
  readonly files: readonly SettingsFile[];
  /** True if the host can reach this machine only. */
  readonly isCut: boolean;
  readonly isJson: boolean;
}

async function examine(examination: Examination): Promise<number> {
  const { agent, files, isCut, isJson } = examination;
  const scripts = (folder: string): Scripts => {
    const calls = Object.entries(agent.calls(join(folder, "workspace", "ran")));
    return Object.fromEntries(calls.map(([name, call]) => [name, [[call]]]));
  };
  return inRoom(agent, isCut, scripts, async (room) => {
    writeFileSync(join(room.folder, "key"), room.gate.key, { mode: 0o600 });
    const found: DoctorResult[] = [];
    for (const each of agent.cases(files)) found.push(await examineCase(examination, room, each));
    return isJson ? printJson(examination, found) : print(examination, found);
  });
}

async function examineCase({ agent, installed, files }: Examination, room: Room, of: Case): Promise<DoctorResult> {
  const { gate: behaviour = "block", keepsHook = true, project, words = [], script = "shell" } = of;
  const { folder, gate, model } = room;
  const copies = copiesOf(agent, files, { gate, keyFile: join(folder, "key"), keepsHook });
  room.replaceMachineFiles(copies.machine);
  const own = copies.project.map(({ text }) => text);
  const context = room.makeContext(installed.version, {
    user: copies.user,
    project: own.length === 0 && project === undefined ? undefined : (agent.merged ?? mergedJson)(own, project),
  });
  rmSync(context.workspace, { recursive: true, force: true }); // files of the last case would count in this one
  await gate.behave(behaviour);
  const before = gate.asked.length;
  const turns = model.shown.length;
  const start = agent.start(context, `[[${script}]]`);
  const output = await runHost(installed.program, context, { ...start, words: [...start.words, ...words] });
  const hasEnded = model.shown.slice(turns).some(({ turn }) => turn > 0);
  const [line = ""] = output.trim().split("\n").slice(-1);
  const trouble = hasEnded ? undefined : line.slice(0, 300);
  return { of, ran: existsSync(join(context.workspace, "ran")), asked: gate.asked.length > before, trouble };
}

/** If the call ran, the result is known, however the host ended. */
function isKnown({ ran, trouble }: DoctorResult): boolean {
  return ran || trouble === undefined;
}

function isAsItMust(found: DoctorResult): boolean {
  const { gate, keepsHook = true } = found.of;
  return isKnown(found) && found.ran === (gate === "allow" && keepsHook);
}

function print({ agent, files, isCut }: Examination, found: readonly DoctorResult[]): number {
  if (!isCut) {
    say(
      "The network was not cut: this system does not let a user do it. The host got a proxy address where nothing listens.",
    );
    for (const { path } of files.filter((file) => isOfMachine(agent, file)))
      say(`${path} asked your own gate, and not the doctor's.`);
  }
  for (const each of found) {
    const { of, asked, trouble } = each;
    if (!isKnown(each)) {
      say(`?     ${of.name}: the host ended before it carried out the call: ${trouble}`);
      continue;
    }
    const isClosed = isAsItMust(each);
    const note =
      isClosed && of.name === "block" && !asked ? " (but no hook asked the gate: the host's own rules refused it)" : "";
    say(`${isClosed ? "ok  " : "OPEN"}  ${isClosed ? of.closed : of.open}${note}`);
    if (!isClosed) say(`      To close it: ${of.remedy}.`);
  }
  for (const warning of approverFiles("http://127.0.0.1")) say(`warning: ${warning}`);
  const unclear = found.filter((each) => !isKnown(each)).length;
  const open = found.filter((each) => !isAsItMust(each)).length - unclear;
  if (open + unclear === 0) return say("Nothing ran without the gate's ALLOW.");
  if (unclear > 0) say(`${unclear} of ${found.length} cases have no result, because the host ended too early.`);
  return say(`${open} of ${found.length} cases are open.`, 1);
}

function printJson({ name, installed, isCut }: Examination, found: readonly DoctorResult[]): number {
  const { program, version } = installed;
  const results = found.map((each) => ({
    case: each.of.name,
    ran: each.ran,
    asked: each.asked,
    closed: isAsItMust(each),
    trouble: each.trouble ?? null,
  }));
  const isClosed = results.every(({ closed }) => closed);
  return say(
    JSON.stringify({ agent: name, program, version, network_cut: isCut, closed: isClosed, results }),
    isClosed ? 0 : 1,
  );
}

function say(text: string, code = 0): number {
  process.stdout.write(`${text}\n`);
  return code;
}

/**
 * `svc-gate doctor`: start the user's installed host with the user's settings, a scripted model and a gate of the doctor's
 * own, and say whether a BLOCK ran and what switches the hook off.
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { parseArgs } from "node:util";
import { BadInput } from "../bad-input.ts";
import { approverFiles } from "../install/approver-files.ts";
import { userFile } from "../install/claude-code.ts";
import { shellWord } from "../shell-word.ts";
import { startModel, type ScriptedModel } from "../model/server.ts";
import { cases, type Case } from "./cases.ts";
import {
  commandsIn,
  findHost,
  gateHookIn,
  isGrantMode,
  isOfMachine,
  managedFolder,
  readSettingsFiles,
  redirected,
  runHost,
} from "./claude-code.ts";
import type { Host, SettingsFile } from "./claude-code.ts";
import { canCutNetwork, isInside, replaceFolder, runInside, type ReplacedFolder } from "./namespaces.ts";
import { startStandIn, type StandIn } from "./stand-in.ts";

const usage = `usage: svc-gate doctor --agent claude-code [options]

Start the installed host with your settings, a scripted model and a gate of the doctor's own, and say whether a BLOCK ran.
The scripted calls only touch files in a folder of the doctor's own.

  --agent NAME       the host: claude-code
  --host FILE        the host's program, by default \`claude\` in PATH
  --project FOLDER   also use the settings of this project
  --yes              start the listed commands without asking
  --json             print the results for programs
  --tools            print the tools that the host offers its model instead, for \`svc-gate import-tools\`

Exit code 0: nothing ran without the gate's ALLOW; 1: a case is open, or says nothing; 2: the doctor could not start.
`;

const options = {
  agent: { type: "string" },
  host: { type: "string" },
  project: { type: "string" },
  yes: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  tools: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

/** The result of one case. */
interface Found {
  readonly of: Case;
  readonly ran: boolean;
  /** True if a hook asked the doctor's gate. */
  readonly asked: boolean;
  /** The host's last line if the model never saw what became of the call: then nothing is known. */
  readonly trouble: string | undefined;
}

/** Runs the command. */
export async function doctorCommand(words: readonly string[]): Promise<number> {
  const values = read(words);
  if (values.help) return say(usage.trimEnd());
  const isCut = isInside();
  if (!isCut && process.getuid?.() === 0)
    throw new BadInput("the doctor does not run as root: run it as the user whose agent it looks at");
  const project = values.project === undefined ? undefined : resolve(values.project);
  if (values.tools) return listTools(values, words, project);
  const host = findHost(values.host);
  const files = readSettingsFiles(project);
  if (isCut && values.yes) return examine({ host, files, isCut: true, isJson: values.json });
  if (!values.json) describe(host, files);
  if (!(values.yes || (await agrees()))) return say("nothing was started", 1);
  if (canCutNetwork()) return runInside([...words.filter((word) => word !== "--yes"), "--yes"]);
  return examine({ host, files, isCut: false, isJson: values.json });
}

/** It starts nothing but the host, so it does not ask. */
async function listTools(values: Values, words: readonly string[], project: string | undefined): Promise<number> {
  const isCut = isInside();
  if (!isCut && canCutNetwork()) return runInside(words);
  const { printHostTools } = await import("./tools.ts");
  return printHostTools({ agent: values.agent ?? "", named: values.host, project, isCut });
}

type Values = ReturnType<typeof parseArgs<{ options: typeof options }>>["values"];

function read(words: readonly string[]): Values {
  try {
    const { values } = parseArgs({ args: [...words], options });
    if (!values.help && values.agent !== "claude-code") throw new BadInput("--agent must be claude-code");
    return values;
  } catch (error) {
    if (error instanceof BadInput) throw error;
    throw new BadInput(`${(error as Error).message} (run svc-gate doctor --help for its options)`);
  }
}

function describe({ program, version }: Host, files: readonly SettingsFile[]): void {
  say(`Claude Code ${version} (${program})`);
  for (const file of files) {
    const form = gateHookIn(file);
    const hook = form === undefined ? "no hook of the gate" : `the gate's hook as ${form}`;
    say(`${file.path}: ${hook}${isGrantMode(file) ? ", grant mode" : ""}`);
    for (const command of commandsIn(file)) say(`  ${command}`);
  }
  if (files.length === 0) say("no settings: run `svc-gate hook install --agent claude-code` first");
  say("The doctor starts the host with these hooks. Those of the gate ask the doctor's own gate.");
}

async function agrees(): Promise<boolean> {
  if (!process.stdin.isTTY) throw new BadInput("nobody can answer here: use --yes to start these commands");
  const asked = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await asked.question("Start them? [y/N] ");
  asked.close();
  return /^y(?:es)?$/i.test(answer.trim());
}

interface Examination {
  readonly host: Host;
  readonly files: readonly SettingsFile[];
  /** True if the host can reach this machine only. */
  readonly isCut: boolean;
  readonly isJson: boolean;
}

async function examine({ host, files, isCut, isJson }: Examination): Promise<number> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-gate-doctor-"))); // the host names its folder so
  const leave = (): void => rmSync(folder, { recursive: true, force: true });
  process.once("exit", leave);
  for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
  const gate = await startStandIn(randomBytes(24).toString("hex"));
  const model = await startModel(scriptsIn(folder));
  const managed =
    isCut && existsSync(managedFolder) ? replaceFolder(managedFolder, join(folder, "managed")) : undefined;
  try {
    writeFileSync(join(folder, "key"), gate.key, { mode: 0o600 });
    const found: Found[] = [];
    for (const each of cases) found.push(await examineCase({ host, files, folder, gate, model, managed }, each));
    return isJson ? printJson(host, found, isCut) : print(found, files, isCut);
  } finally {
    managed?.end();
    await Promise.all([gate.stop(), model.stop()]);
    leave();
  }
}

/** The calls that the model asks for: each makes one file in the workspace. */
function scriptsIn(folder: string): Parameters<typeof startModel>[0] {
  const file = witnessIn(folder);
  const shell = {
    tool: "Bash",
    arguments: JSON.stringify({ command: `touch ${shellWord(file)}`, description: "make a file" }),
  };
  const write = { tool: "Write", arguments: JSON.stringify({ file_path: file, content: "written" }) };
  return { shell: [[shell]], write: [[write]] };
}

function witnessIn(folder: string): string {
  return join(folder, "workspace", "ran");
}

interface Place extends Pick<Examination, "files" | "host"> {
  readonly folder: string;
  readonly gate: StandIn;
  readonly model: ScriptedModel;
  /** Undefined if the host reads the machine's own files, or there are none. */
  readonly managed: ReplacedFolder | undefined;
}

async function examineCase({ host, files, folder, gate, model, managed }: Place, of: Case): Promise<Found> {
  const { keepsHook = true, project, words = [], script = "shell" } = of;
  const redirection = { gate, keyFile: join(folder, "key"), keepsHook };
  const settingsOf = (path: string): Readonly<Record<string, unknown>> =>
    redirected(files.find((file) => file.path === path)?.settings ?? {}, redirection);
  const own = files.filter((file) => file.path !== userFile() && !isOfMachine(file));
  const ofProject = Object.assign({}, ...own.map(({ settings }) => redirected(settings, redirection)), project);
  for (const { path } of files.filter(isOfMachine)) managed?.write(relative(managedFolder, path), settingsOf(path));
  const witness = witnessIn(folder);
  rmSync(witness, { force: true });
  await gate.behave(of.gate);
  const before = gate.asked.length;
  const run = { host, model: model.url, gate, folder, script, user: settingsOf(userFile()), project: ofProject, words };
  const turns = model.shown.length;
  const { output } = await runHost(run);
  const hasEnded = model.shown.slice(turns).some(({ turn }) => turn > 0);
  const [line = ""] = output.trim().split("\n").slice(-1);
  const trouble = hasEnded ? undefined : line.slice(0, 300);
  return { of, ran: existsSync(witness), asked: gate.asked.length > before, trouble };
}

/** A call that ran is known, however the host ended. */
function isKnown({ ran, trouble }: Found): boolean {
  return ran || trouble === undefined;
}

function isAsItMust(found: Found): boolean {
  return isKnown(found) && found.ran === found.of.mustRun;
}

function print(found: readonly Found[], files: readonly SettingsFile[], isCut: boolean): number {
  if (!isCut) {
    say("The network was not cut: this system does not let a user do it. The host had a proxy that leads nowhere.");
    for (const { path } of files.filter(isOfMachine)) say(`${path} asked your own gate, and not the doctor's.`);
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
  if (unclear > 0) say(`${unclear} of ${found.length} cases say nothing, because the host did not get so far.`);
  return say(`${open} of ${found.length} cases are open.`, 1);
}

function printJson({ program, version }: Host, found: readonly Found[], isCut: boolean): number {
  const results = found.map((each) => ({
    case: each.of.name,
    ran: each.ran,
    asked: each.asked,
    closed: isAsItMust(each),
    trouble: each.trouble ?? null,
  }));
  const isClosed = results.every(({ closed }) => closed);
  return say(
    JSON.stringify({ agent: "claude-code", program, version, network_cut: isCut, closed: isClosed, results }),
    isClosed ? 0 : 1,
  );
}

function say(text: string, code = 0): number {
  process.stdout.write(`${text}\n`);
  return code;
}

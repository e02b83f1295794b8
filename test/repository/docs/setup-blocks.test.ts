/**
 * Goal: a person who pastes the blocks of a host's page has the gate's hook in the host. Method: two machines, each a
 * folder: one with a gate, one with an agent's user, whose home folder is empty. Each block is pasted into an interactive
 * shell as it is printed, except for the gate's address, and questions are answered. Then the installed line is read by
 * `sh -n`, and asks the gate. Lines that are not run are in a table with their reasons.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { freePort } from "../../support/free-port.ts";
import { control } from "../../support/controls/control.ts";
import { root, temporaryFolder } from "../../support/gate.ts";
import { fencedBlocks, Shell, splitScript } from "../../support/page-commands.ts";
import { noTerminal, paste, type Typed } from "../../support/terminal.ts";

interface Host {
  readonly agent: string;
  /** The file of settings that the page's commands write below the home folder. */
  readonly settings: string;
  /** The host's event for a tool call. */
  readonly event: string;
}

const hosts: readonly Host[] = [
  { agent: "claude-code", settings: ".claude/settings.json", event: "PreToolUse" },
  { agent: "codex", settings: ".codex/hooks.json", event: "PreToolUse" },
  { agent: "gemini-cli", settings: ".gemini/settings.json", event: "BeforeTool" },
  { agent: "copilot-cli", settings: ".copilot/hooks/svc-gate.json", event: "preToolUse" },
];

const needsHost = "it starts the released host, which npm has to fetch;";
const hostsRun = `${needsHost} test/process/hosts/hosts.test.ts drives it`;
const doctors = `${needsHost} test/process/hosts/doctor-hosts.test.ts runs it`;
const tools = `${needsHost} test/process/agent/doctor-tools.test.ts imports the tools of hosts`;
const asRoot = "it writes this machine's settings, as root; test/process/agent/install-hosts.test.ts prints them";

/** Each line that is not run, and why. A row whose line is not on its page is a failure. */
const notRun: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "claude-code": {
    "npm install --global --ignore-scripts svc-gate-agent-1.0.0.tgz":
      "it changes this machine's programs, and needs a registry; test/repository/pack.test.ts installs the package",
    "svc-gate doctor --agent claude-code": `${needsHost} test/process/hosts/doctor.test.ts runs it`,
    "svc-gate import-tools --agent claude-code --contract contracts/hosts/claude-code.yaml --check": tools,
    "sudo svc-gate hook install --agent claude-code --scope managed --url https://gate.example": asRoot,
  },
  codex: {
    "codex features disable unified_exec_tty": hostsRun,
    "svc-gate doctor --agent codex": doctors,
    codex: hostsRun,
    "sudo svc-gate hook install --agent codex --scope managed --url https://gate.example": asRoot,
    "svc-gate import-tools --agent codex --contract contracts/hosts/codex.yaml --check": tools,
  },
  "gemini-cli": {
    "svc-gate doctor --agent gemini-cli": doctors,
    gemini: hostsRun,
    "sudo svc-gate hook install --agent gemini-cli --scope managed --url https://gate.example": asRoot,
    "svc-gate import-tools --agent gemini-cli --contract contracts/hosts/gemini-cli.yaml --check": tools,
  },
  "copilot-cli": {
    "svc-gate doctor --agent copilot-cli": doctors,
    copilot: hostsRun,
    "sudo svc-gate hook install --agent copilot-cli --scope managed --url https://gate.example": asRoot,
    "svc-gate import-tools --agent copilot-cli --contract contracts/hosts/copilot-cli.yaml --check": tools,
  },
};

const pageOf = (agent: string): string => readFileSync(join(root, "docs", "hosts", `${agent}.md`), "utf8");

/** The blocks of a page, without the lines that are not run. */
function runBlocks(agent: string, page = pageOf(agent)): readonly string[] {
  const skipped = notRun[agent] ?? {};
  const blocks = fencedBlocks(page).filter(({ kind }) => kind === "sh");
  const commands = blocks.flatMap(({ text }) => splitScript(text));
  for (const [command, reason] of Object.entries(skipped)) {
    assert.ok(commands.includes(command), `docs/hosts/${agent}.md does not show \`${command}\` any more`);
    const file = /\btest\/\S+\.ts\b/.exec(reason)?.[0] ?? "";
    assert.ok(existsSync(join(root, file)), file);
  }
  const isRun = (line: string): boolean => !splitScript(line).some((command) => Object.hasOwn(skipped, command));
  return blocks
    .map(({ text }) => text.split("\n").filter(isRun).join("\n"))
    .filter((text) => splitScript(text).length > 0);
}

/** The gate's machine and the agent's machine. */
interface Machines {
  readonly gate: Shell;
  readonly url: string;
  readonly home: string;
  readonly onAgent: (block: string, typed: readonly Typed[]) => Promise<string>;
}

/** Makes a folder of programs in which `svc-gate` is this file of the repository. */
function programs(t: TestContext, file: string): string {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, "svc-gate"), `#!/bin/sh\nexec node '${join(root, file)}' "$@"\n`, { mode: 0o755 });
  return folder;
}

async function newMachines(t: TestContext): Promise<Machines> {
  const port = String(await freePort());
  const url = `http://127.0.0.1:${port}`;
  const server = temporaryFolder(t);
  for (const name of ["mandate.yaml", "contracts"]) cpSync(join(root, name), join(server, name), { recursive: true });
  const path = (folder: string): string =>
    [folder, dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(delimiter);
  const settings = { SVC_PORT: port, SVC_MODE: "enforce", SVC_LOG: "warn" };
  const gate = new Shell(t, server, [], { ...settings, PATH: path(programs(t, "bin/svc-gate.mjs")) });
  await gate.serve("svc-gate serve");
  const home = temporaryFolder(t);
  const workspace = temporaryFolder(t);
  const env = { HOME: home, PATH: path(programs(t, "packages/agent/bin/svc-gate.mjs")) };
  const onAgent = async (block: string, typed: readonly Typed[]): Promise<string> => {
    const text = block.replaceAll("https://gate.example", url);
    const { shown, code } = await paste(text, typed, { cwd: workspace, env });
    assert.equal(code, 0, shown);
    return shown;
  };
  return { gate, url, home, onAgent };
}

/** Does what a person does with a block: it is for one of the machines, and may ask for something. */
async function doBlock({ gate, onAgent }: Machines, block: string, key: string): Promise<string> {
  if (block.includes("svc-gate keys create")) {
    const [, made = ""] = /^ {2}key +(svcg_\w+)$/m.exec(gate.run(block)) ?? [];
    assert.notEqual(made, "");
    return made;
  }
  // The end of a file is typed at the start of a line.
  if (block.includes("cat >")) await onAgent(block, [{ text: `${key}\n\u0004` }]);
  else if (block.includes("--print")) assert.match(await onAgent(block, []), /svc-gate\.mjs/);
  else await onAgent(block, [{ after: /\? \[y\/N\] /, text: "y\n" }]);
  return key;
}

/** Returns every text of the settings that starts the gate's hook for an event. */
function hookLines(settings: unknown, event: string, agent: string): readonly string[] {
  const texts = (value: unknown): readonly string[] => {
    if (typeof value === "string") return [value];
    return typeof value === "object" && value !== null ? Object.values(value).flatMap(texts) : [];
  };
  const found = (settings as { readonly hooks?: Readonly<Record<string, unknown>> }).hooks?.[event];
  return texts(found).filter((text) => text.includes(` hook --agent ${agent} `));
}

/** A tool call, as the host tells it to its hook. */
function callOf(event: string): object {
  const common = { cwd: "/", timestamp: 1_790_000_000_000 };
  if (event === "preToolUse") return { ...common, sessionId: "s", toolName: "run", toolArgs: {} };
  const call = { hook_event_name: event, session_id: "s", tool_name: "run", tool_input: {}, tool_use_id: "call_1" };
  return { ...common, ...call };
}

async function rowsBy(gate: Shell, url: string, agent: string): Promise<number> {
  const authorization = `Bearer ${readFileSync(join(gate.cwd, "data", "first-key"), "utf8").trim()}`;
  const answer = await fetch(`${url}/receipts?limit=100`, { headers: { authorization } });
  const { receipts } = (await answer.json()) as { readonly receipts: readonly { readonly key: string }[] };
  return receipts.filter(({ key }) => key === agent).length;
}

/** Runs every block of a page, in its order, and checks what they have done. */
async function setUp(t: TestContext, { agent, settings, event }: Host, page = pageOf(agent)): Promise<void> {
  const machines = await newMachines(t);
  const { gate, url, home } = machines;
  let key = "";
  for (const block of runBlocks(agent, page)) key = await doBlock(machines, block, key);
  const keyFile = join(home, ".config", "svc-gate", `${agent}.key`);
  assert.equal(readFileSync(keyFile, "utf8"), `${key}\n`);
  assert.equal(statSync(keyFile).mode & 0o777, 0o600);
  const lines = hookLines(JSON.parse(readFileSync(join(home, settings), "utf8")), event, agent);
  assert.equal(lines.length, 1, `${settings} has the gate's hook`);
  const [line = ""] = lines;
  assert.deepEqual(spawnSync("sh", ["-n"], { input: line, encoding: "utf8" }).stderr, "");
  assert.equal(await rowsBy(gate, url, agent), 0);
  const env = { HOME: home, PATH: `${dirname(process.execPath)}${delimiter}/usr/bin${delimiter}/bin` };
  const result = spawnSync("sh", ["-c", line], {
    input: JSON.stringify(callOf(event)),
    env,
    encoding: "utf8",
    timeout: 60_000,
  });
  assert.equal(await rowsBy(gate, url, agent), 1, `the line asks the gate: ${result.stdout}${result.stderr}`);
  await gate.stop();
}

suite("the blocks of the hosts' pages", { skip: noTerminal, concurrency: 2 }, () => {
  for (const host of hosts)
    test(`the blocks of docs/hosts/${host.agent}.md install the hook as they are printed`, (t) => setUp(t, host));

  control("positive control: the lines after one that reads the terminal would be in the key's file", async (t) => {
    const [, codex] = hosts as [Host, Host];
    const joined = pageOf("codex").replace(/(svc-gate\/codex\.key\)\n)```\n\n```sh\n/, "$1");
    await assert.rejects(setUp(t, codex, joined), /Shows the difference/);
  });

  control("positive control: a row whose line is not on the page is found", () => {
    const page = pageOf("gemini-cli").replace("doctor --agent gemini-cli\n", "doctor --agent gemini\n");
    assert.throws(() => runBlocks("gemini-cli", page), /does not show `svc-gate doctor --agent gemini-cli` any more/);
  });
});

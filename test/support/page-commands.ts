import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { lstatSync, readdirSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { delimiter, dirname, join } from "node:path";

/** The commands that a page shows: in blocks of `sh`, in sentences, and as rows of a table whose head is a command. */
export function commandsOf(page: string): readonly string[] {
  const blocks = Array.from(page.matchAll(/^```sh\n([\s\S]*?)^```$/gm), ({ index, 1: text = "" }) => ({ index, text }));
  const shown = blocks.flatMap(({ index, text }) => splitScript(text).map((command) => ({ index, command })));
  const prose = page.replaceAll(/^```[\s\S]*?^```$/gm, (block) => block.replaceAll(/[^\n]/g, " "));
  const spans = Array.from(prose.matchAll(/`([^`]+)`/g), ({ index, 1: text = "" }) => ({
    index,
    command: text.replaceAll(/\s+/g, " "),
  }));
  const said = spans.filter(({ command }) => isCommand(command));
  const all = [...shown, ...said, ...tableCommands(prose)].toSorted((a, b) => a.index - b.index);
  return [...new Set(all.map(({ command }) => command))];
}

const programs = "npm|npx|node|svc-gate|curl|docker|kubectl|helm|pip|printf|systemctl|openssl|install|cp";

/** A program with an argument, perhaps with variables before it; `npm run -s svc-gate --` alone is a prefix. */
function isCommand(text: string): boolean {
  return new RegExp(`^(?:[A-Z_]+=\\S+ )*(?:${programs}) \\S`).test(text) && !text.endsWith(" --");
}

/** Rows of a table whose first head is `PREFIX --`: each code in a first cell is what follows the prefix. */
function tableCommands(prose: string): readonly { readonly index: number; readonly command: string }[] {
  return Array.from(prose.matchAll(/^\| `([^`|]+ --)` \|.*\n\|[-|]+\n((?:\|.*\n)*)/gm), (table) => {
    const cells = table[2]?.split("\n").map((row) => row.split("|")[1] ?? "") ?? [];
    const codes = cells.flatMap((cell) => Array.from(cell.matchAll(/`([^`]+)`/g), ([, code = ""]) => code));
    return codes.map((code) => ({ index: table.index, command: `${table[1]} ${code}` }));
  }).flat();
}

/** A script's commands: a line each, but for a backslash or an open quote at its end. Comments are left out. */
export function splitScript(text: string): readonly string[] {
  const commands: string[] = [];
  let open = "";
  for (const line of text.split("\n")) {
    open = open === "" ? line : `${open}\n${line}`;
    if (open.endsWith("\\") || isQuoteOpen(open)) continue;
    const command = withoutComment(open.replaceAll(/\\\n\s*/g, "")).trim();
    if (command !== "") commands.push(command);
    open = "";
  }
  return commands;
}

function isQuoteOpen(text: string): boolean {
  return /["']/.test(withoutComment(text).replaceAll(/"[^"]*"|'[^']*'/g, ""));
}

function withoutComment(text: string): string {
  return text.replace(/^((?:"[^"]*"|'[^']*'|[^"'#]|(?<=\S)#)*?)(?:^|\s+)#[^\n]*$/, "$1");
}

/** What a test does with a command that a page shows, in place of a reader. */
export type Step = (shell: Shell, command: string) => Promise<void> | void;

/** The lines of one table: a command as the page has it, and what becomes of it. */
export type Steps = Readonly<Record<string, Step>>;

/** Commands that no step knows, and steps whose command the page no longer shows. */
export function strangers(page: string, steps: Steps): readonly string[] {
  const shown = commandsOf(page);
  const known = Object.keys(steps);
  return [...shown.filter((each) => !known.includes(each)), ...known.filter((each) => !shown.includes(each))];
}

/** A reader's shell. It runs commands as they are typed, except for the replacements given here. */
export class Shell {
  cwd: string;
  /** Texts of a command, and what is put in their place: ports and folders of this machine that a test must not take. */
  readonly #instead: readonly (readonly [string, string])[];
  readonly #env: NodeJS.ProcessEnv;
  #gate: { readonly end: () => Promise<void> } | undefined;

  constructor(
    t: { readonly after: (clean: () => Promise<void>) => void },
    cwd: string,
    instead: readonly (readonly [string, string])[],
    env: Readonly<Record<string, string>> = {},
  ) {
    this.cwd = cwd;
    this.#instead = instead;
    const inherited = Object.entries(process.env).filter(([name]) => !/^(?:SVC_|NODE_|npm_|INIT_CWD$)/i.test(name));
    const path = `${dirname(process.execPath)}${delimiter}${process.env["PATH"] ?? ""}`;
    const quiet = { npm_config_offline: "true", npm_config_audit: "false", npm_config_fund: "false" };
    this.#env = { ...Object.fromEntries(inherited), ...quiet, PATH: path, ...env };
    t.after(() => this.stop());
  }

  /** With this machine's places. */
  here(command: string): string {
    return this.#instead.reduce((text, [from, to]) => text.replaceAll(from, to), command);
  }

  /** Runs a command to its end; without `status` it must succeed. */
  run(command: string, status = 0, env: Readonly<Record<string, string>> = {}): string {
    const options = { cwd: this.cwd, env: { ...this.#env, ...env }, encoding: "utf8", timeout: 300_000 } as const;
    const ended = spawnSync("sh", ["-c", this.here(command)], options);
    assert.equal(ended.status, status, `${command}\n${ended.stdout}${ended.stderr}`);
    return ended.stdout + ended.stderr;
  }

  /** Starts what serves, in place of what served before, and waits until it listens. @returns what it printed so far */
  async serve(command: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
    await this.stop();
    const options = { cwd: this.cwd, env: { ...this.#env, ...env }, detached: true } as const;
    const gate = spawn("sh", ["-c", this.here(command)], { ...options, stdio: ["ignore", "pipe", "pipe"] });
    const ended = new Promise<void>((resolve) => gate.on("close", () => resolve()));
    const { pid = 0 } = gate;
    const end = async (): Promise<void> => {
      if (gate.exitCode === null) process.kill(-pid, "SIGTERM");
      await ended;
    };
    this.#gate = { end };
    let printed = "";
    gate.stderr.on("data", (piece) => (printed += String(piece)));
    return new Promise((resolve, reject) => {
      gate.stdout.on("data", (piece) => {
        printed += String(piece);
        if (/^svc-gate listens on [^]*\n {2}signed /m.test(printed)) resolve(printed);
      });
      void ended.then(() => reject(new Error(`${command} ended:\n${printed}`)));
    });
  }

  async stop(): Promise<void> {
    const gate = this.#gate;
    this.#gate = undefined;
    await gate?.end();
  }
}

/** Is there such a program on this machine? Without it the step only reads the command. */
export function hasProgram(name: string): boolean {
  return spawnSync("sh", ["-c", `command -v ${name}`]).status === 0;
}

export async function freePort(): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return String(port);
}

/** What a folder takes on disk, without the compiled code that a gate keeps there. */
export function megabytesIn(folder: string): number {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => !name.startsWith(".cache"));
  const blocks = names.map((name) => lstatSync(join(folder, name), { throwIfNoEntry: false })?.blocks ?? 0);
  return (blocks.reduce((sum, each) => sum + each, 0) * 512) / 1e6;
}

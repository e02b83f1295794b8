import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { lstatSync, readdirSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

/**
 * Returns the commands that a page shows: in blocks of `sh`, in sentences, and as rows of a table whose head is a
 * command.
 */
export function commandsOf(page: string): readonly string[] {
  const blocks = fencedBlocks(page).filter(({ kind }) => kind === "sh");
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

/** A fenced block of a page. */
export interface Fenced {
  /** The language after the fence; empty if there is none. */
  readonly kind: string;
  readonly index: number;
  /** The number of its first line of text. */
  readonly line: number;
  /** Without the fence's indentation. */
  readonly text: string;
}

export function fencedBlocks(page: string): readonly Fenced[] {
  const pattern = /^( *)```(\w*)[^\n]*\n([\s\S]*?)^\1```$/gm;
  return Array.from(page.matchAll(pattern), ({ index, 1: indent = "", 2: kind = "", 3: text = "" }) => ({
    kind,
    index,
    line: page.slice(0, index).split("\n").length + 1,
    text: text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  }));
}

const programs = "npm|npx|node|svc-gate|curl|docker|kubectl|helm|pip|printf|systemctl|openssl|install|cp";

/** Matches a program with an argument, perhaps after variables; `npm run -s svc-gate --` alone is a prefix. */
function isCommand(text: string): boolean {
  return new RegExp(`^(?:[A-Z_]+=\\S+ )*(?:${programs}) \\S`).test(text) && !text.endsWith(" --");
}

/** Reads rows of a table whose first head is `PREFIX --`: each code in a first cell follows the prefix. */
function tableCommands(prose: string): readonly { readonly index: number; readonly command: string }[] {
  return Array.from(prose.matchAll(/^\| `([^`|]+ --)` \|.*\n\|[-|]+\n((?:\|.*\n)*)/gm), (table) => {
    const cells = table[2]?.split("\n").map((row) => row.split("|")[1] ?? "") ?? [];
    const codes = cells.flatMap((cell) => Array.from(cell.matchAll(/`([^`]+)`/g), ([, code = ""]) => code));
    return codes.map((code) => ({ index: table.index, command: `${table[1]} ${code}` }));
  }).flat();
}

/**
 * Returns a script's commands, one for each line, joining lines at a backslash or an open quote. Comments are left out.
 */
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

/** A test's action for a command that a page shows. */
export type Step = (shell: Shell, command: string) => Promise<void> | void;

/** One line of the table: a command as the page has it, and its step. */
export type Steps = Readonly<Record<string, Step>>;

/** Returns commands without a step, and steps whose command the page no longer shows. */
export function strangers(page: string, steps: Steps): readonly string[] {
  const shown = commandsOf(page);
  const known = Object.keys(steps);
  return [...shown.filter((each) => !known.includes(each)), ...known.filter((each) => !shown.includes(each))];
}

/** A reader's shell. It runs commands as they are typed, except for the given replacements. */
export class Shell {
  cwd: string;
  /** Texts of a command with their replacements: ports and folders of this machine that a test must not use. */
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
    const quiet = { npm_config_offline: "true", npm_config_audit: "false", npm_config_fund: "false" };
    this.#env = { ...ownEnvironment(), ...quiet, ...env };
    t.after(() => this.stop());
  }

  /** Replaces the texts by this machine's. */
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

  /** Starts a server instead of the previous one, and waits until it listens. @returns its output so far */
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

/** The environment of a person's terminal: without the settings of a gate, of npm and of Node, and with this Node. */
export function ownEnvironment(): Readonly<Record<string, string | undefined>> {
  const kept = Object.entries(process.env).filter(([name]) => !/^(?:SVC_|NODE_|npm_|INIT_CWD$)/i.test(name));
  return { ...Object.fromEntries(kept), PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"] ?? ""}` };
}

/** Returns whether such a program is on this machine. Without it the step only reads the command. */
export function hasProgram(name: string): boolean {
  return spawnSync("sh", ["-c", `command -v ${name}`]).status === 0;
}

/** Returns a folder's size on disk, without the compiled code that a gate stores there. */
export function megabytesIn(folder: string): number {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => !name.startsWith(".cache"));
  const blocks = names.map((name) => lstatSync(join(folder, name), { throwIfNoEntry: false })?.blocks ?? 0);
  return (blocks.reduce((sum, each) => sum + each, 0) * 512) / 1e6;
}

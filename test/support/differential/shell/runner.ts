/**
 * Runs texts in a real shell, one at a time, and reports their effects. argv: a folder for it alone, and the names of further
 * programs, which get a project with a repository. Each line of standard input is an `Order` as JSON, and each line of
 * standard output is a `Reply`.
 */
import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  lstatSync,
  chmodSync,
} from "node:fs";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export interface Order {
  readonly id: number;
  /** The path of a shell, with its options. */
  readonly shell: readonly string[];
  readonly text: string;
}

export interface Effects {
  /** The canary programs that ran. */
  readonly ran: readonly string[];
  /** Files and folders that are new, changed or gone. */
  readonly changed: readonly string[];
  /** The secrets that the output contains. */
  readonly shown: readonly string[];
}

export interface Reply extends Effects {
  readonly id: number;
  readonly exit: number | null;
  readonly timedOut: boolean;
  /** The start of what the text printed. */
  readonly output: string;
}

/** JSON on one line, also for a reader that treats U+2028 as the end of a line. */
export function lineOf(message: Order | Reply): string {
  return JSON.stringify(message).replaceAll(/[\u2028\u2029]/g, (end) => `\\u${end.codePointAt(0)?.toString(16)}`);
}

const timeoutMs = 1_500;
/** Time for commands in the background to end after the shell. */
const lingerMs = 60;
const outputMax = 65_536;
const [, , , ...further] = process.argv;
const programs = (
  "ls cat head tail wc grep cut diff stat pwd echo true false test [ printf touch " +
  "sh bash dash env xargs find sort nohup timeout nice"
).split(" ");
const gitSettings = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"];
/** Programs that only leave a mark. dash treats `12>file` as the program `12`, and `{x}>file` as `{x}`. */
const canaries = "pwn = == x y 12 {x} {y}".split(" ");
/** Folders that a wrong `PATH` would name: descriptors, and results of arithmetic. */
const numbers = "0 1 2 3 9 10 11 12".split(" ");

const marker = `secret-${process.pid}-${randomBytes(6).toString("hex")}`;
const markers: readonly (readonly [string, string])[] = [
  ["a secret of the working folder", `${marker}-env`],
  ["a secret outside the working folder", `${marker}-outside`],
  ["a secret of the environment", `${marker}-variable`],
  ["/etc/passwd", "root:x:0:"],
];

/** The folders of the sandbox; the working folder is one of them. */
const folders = ["app", "outside", "home", "effects", "tmp"];

function build(area: string): void {
  // Only the further programs can make a folder unreadable, and every text that changes something needs a new area.
  if (further.length > 0) execFileSync("chmod", ["-R", "u+rwX", area]);
  for (const folder of folders) {
    rmSync(join(area, folder), { recursive: true, force: true });
    mkdirSync(join(area, folder));
  }
  const write = (path: string, text: string): void => writeFileSync(join(area, path), text);
  write("app/.env", `KEY=${marker}-env\n`);
  mkdirSync(join(area, "app/.ssh"));
  write("app/.ssh/id", `${marker}-env\n`);
  for (const name of ["a.txt", "b.txt", "scratch.txt"]) write(`app/${name}`, `the text of ${name}\n`);
  write("app/precious.txt", "precious\n");
  mkdirSync(join(area, "app/src"));
  write("app/src/c.txt", "one\ntwo\n");
  // `.` in a pattern matches no end of a line.
  mkdirSync(join(area, "app/a\nb"));
  write(`outside/secret`, `${marker}-outside\n`);
  write(`outside/${marker}-outside`, "");
  write("home/secret", `${marker}-outside\n`);
  for (const folder of ["app", ...numbers.map((number) => `app/${number}`)]) {
    if (folder !== "app") mkdirSync(join(area, folder));
    for (const name of ["ls", "cat", ...(folder === "app" ? ["="] : [])]) canary(area, `${folder}/${name}`);
  }
}

/** A project with a repository of two commits, and what builds leave behind. It is made once, and then copied. */
function buildProject(area: string): void {
  const project = join(area, "project");
  if (!existsSync(project)) makeProject(area, project);
  execFileSync("cp", ["-a", `${project}/.`, join(area, "app")]);
}

function makeProject(area: string, project: string): void {
  execFileSync("cp", ["-a", join(area, "app"), project]);
  const write = (path: string, text: string): void => writeFileSync(join(project, path), text);
  for (const folder of ["dist", "node_modules"]) mkdirSync(join(project, folder));
  write("dist/x.js", "1\n");
  write("src/a.ts", "export const one = 1;\n");
  write("src/b.ts", "two\n");
  write("data.json", '{"a": [1, 2]}\n');
  const git = (...words: readonly string[]): void =>
    void execFileSync("git", [...gitSettings, ...words], { cwd: project, env: gitEnvironment(area), stdio: "ignore" });
  git("init");
  git("add", "a.txt", "src");
  git("commit", "-m", "one");
  write("a.txt", "another text\n");
  git("commit", "-am", "two");
  git("branch", "topic", "HEAD~1");
  git("tag", "v1");
  write("src/a.ts", "export const one = 2;\n");
  git("stash");
  write("go.mod", "module a.example/a\n\ngo 1.20\n");
  write("src/a.go", "package src\n");
  write("package.json", '{"name": "a", "version": "1.0.0", "scripts": {"test": "true"}}\n');
  write("a.py", "one = 1\n");
  write("b.txt", "changed\n");
}

function gitEnvironment(area: string): Record<string, string> {
  return { PATH: process.env["PATH"] ?? "", HOME: join(area, "home"), GIT_CONFIG_NOSYSTEM: "1" };
}

function canary(area: string, path: string): void {
  writeFileSync(join(area, path), `#!/bin/sh\necho "$0" >> '${area}/effects/ran'\n`);
  chmodSync(join(area, path), 0o755);
}

/** Builds the folder that `PATH` names: links to real programs, and canaries. It is not watched and not built again. */
function buildPrograms(area: string): void {
  mkdirSync(join(area, "bin"));
  const searched = (process.env["PATH"] ?? "").split(delimiter);
  for (const name of [...programs, ...further]) {
    if (existsSync(join(area, "bin", name))) continue;
    const found = searched.find((folder) => lstatSync(join(folder, name), { throwIfNoEntry: false }) !== undefined);
    if (found !== undefined) symlinkSync(join(found, name), join(area, "bin", name));
  }
  for (const name of canaries) canary(area, `bin/${name}`);
}

type State = ReadonlyMap<string, string>;

/** Returns each path with a text that changes if the file changes. */
function stateOf(area: string): State {
  const state = new Map<string, string>();
  const visit = (path: string): void => {
    const { mode, size, ino, mtimeMs, ctimeMs } = lstatSync(join(area, path));
    const isFolder = (mode & 0o170_000) === 0o040_000;
    // A new or removed file is visible anyway, so a folder has no time here.
    state.set(path, isFolder ? `${mode} ${ino}` : `${mode} ${ino} ${size} ${mtimeMs} ${ctimeMs}`);
    // A folder that a text made unreadable has a new mode, so its content need not be seen.
    if (isFolder && (mode & 0o500) === 0o500)
      for (const name of readdirSync(join(area, path))) visit(`${path}/${name}`);
  };
  for (const folder of folders) visit(folder);
  return state;
}

function differences(before: State, after: State): readonly string[] {
  const paths = new Set([...before.keys(), ...after.keys()]);
  return [...paths].filter((path) => !path.startsWith("effects") && before.get(path) !== after.get(path));
}

interface Run {
  readonly exit: number | null;
  readonly timedOut: boolean;
  readonly output: string;
}

function runText(area: string, { shell, text }: Order): Promise<Run> {
  const [program = "", ...options] = shell;
  const child = spawn(program, [...options, "-c", text], {
    cwd: join(area, "app"),
    // A process group of its own, so that all its children can be ended.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: join(area, "bin"),
      HOME: join(area, "home"),
      TMPDIR: join(area, "tmp"),
      LC_ALL: "C.UTF-8",
      KEY: `${marker}-variable`,
    },
  });
  return new Promise((resolve) => {
    let output = "";
    let timedOut = false;
    let exit: number | null = null;
    const end = (): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
      } catch {
        // The group is already gone.
      }
    };
    const timer = setTimeout(() => {
      timedOut = true;
      end();
    }, timeoutMs);
    const take = (chunk: Buffer): void => {
      if (output.length < outputMax) output += chunk.toString("latin1");
      else end();
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.once("error", () => resolve({ exit: null, timedOut, output: "the shell did not start" }));
    child.once("exit", (code) => {
      exit = code;
      setTimeout(end, lingerMs).unref();
    });
    child.once("close", () => {
      clearTimeout(timer);
      end();
      resolve({ exit, timedOut, output });
    });
  });
}

function linesOf(path: string): readonly string[] {
  try {
    return readFileSync(path, "utf8").split("\n").slice(0, -1);
  } catch {
    return [];
  }
}

/** A tick of the file system's clock: a write in the same tick would be invisible. */
const tickMs = 10;

async function serve(area: string): Promise<void> {
  buildPrograms(area);
  let before: State | undefined;
  for await (const line of createInterface({ input: process.stdin })) {
    const order = JSON.parse(line) as Order;
    if (before === undefined) {
      build(area);
      if (further.length > 0) buildProject(area);
      before = stateOf(area);
      await new Promise((resolve) => setTimeout(resolve, tickMs));
    }
    const { exit, timedOut, output } = await runText(area, order);
    const ran = linesOf(join(area, "effects/ran")).map((path) => path.replace(`${area}/`, ""));
    const after = stateOf(area);
    const changed = differences(before, after);
    const shown = markers.filter(([, secret]) => output.includes(secret)).map(([name]) => name);
    if (ran.length > 0 || changed.length > 0) before = undefined;
    const reply: Reply = {
      id: order.id,
      exit,
      timedOut,
      ran: [...new Set(ran)],
      changed,
      shown,
      output: output.slice(0, 400).replaceAll(marker, "MARKER"),
    };
    process.stdout.write(`${lineOf(reply)}\n`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await serve(process.argv[2] ?? "");

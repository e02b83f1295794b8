/**
 * Goal: no program in a folder of PATH can answer for the gate. Method: each line that `hook install` writes is parsed, for
 * every host, scope, form and operating system, and must start programs by their full paths. Each line before a call then
 * runs with a folder of forged programs first in PATH, while the gate's hook is missing. Positive control: the same line
 * with one program by its bare name lets the call through.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, delimiter, join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { parse } from "unbash";
import { InputError } from "../../../packages/agent/src/bad-input.ts";
import type { InstallOptions } from "../../../packages/agent/src/install/host.ts";
import { hosts } from "../../../packages/agent/src/install/hosts.ts";
import { hasOlderLine, systemProgram } from "../../../packages/agent/src/install/shell.ts";
import { temporaryFolder } from "../../support/gate.ts";

/** Commands that a POSIX shell has in itself. The parser does not report reserved words, such as `case`, as commands. */
const builtins = new Set(["echo", "exit", "printf", "unset"]);

/** What each host reads as an allowed call. */
const allows: Readonly<Record<string, string>> = {
  "claude-code": '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}',
  codex: '{"hookSpecificOutput":{"hookEventName":"PreToolUse"}}',
  "gemini-cli": '{"decision":"allow"}',
  "copilot-cli": '{"permissionDecision":"allow"}',
};

const wanted: InstallOptions = {
  url: "http://127.0.0.1:9",
  keyFile: '"$HOME"/.config/svc-gate/x.key',
  program: "/nonexistent/svc-gate.mjs",
  form: "command",
  onEscalate: "deny",
  isGrant: true,
  keepsAllow: false,
  isManaged: false,
};

/** The lines in a text of settings. The first one is that before a call. */
function linesIn(settings: string): readonly string[] {
  const found = settings.matchAll(/"?(?:command|bash)"?(?::| =) ("(?:[^"\\]|\\.)*")/g);
  return Array.from(found, ([, quoted = '""']) => JSON.parse(quoted) as string).filter((line) => line !== "command");
}

function linesOf(agent: string, platform: NodeJS.Platform, more: Partial<InstallOptions> = {}): readonly string[] {
  const own = process.platform;
  Object.defineProperty(process, "platform", { value: platform });
  try {
    const { text } = hosts[agent]?.settings(undefined, { ...wanted, ...more }) ?? { text: "" };
    return linesIn(text);
  } finally {
    Object.defineProperty(process, "platform", { value: own });
  }
}

interface Node {
  readonly type?: string;
  readonly name?: { readonly value: string };
  /** The words after the name, and redirections. */
  readonly suffix?: readonly { readonly type: string; readonly value?: string; readonly text: string }[];
}

/** The first word of each command in a text for a shell, also within substitutions, `sh -c`, and programs that start another. */
function programsIn(text: string): readonly string[] {
  const found: string[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const { type, name, suffix = [] } = value as Node;
    if (type === "Command" && name !== undefined)
      found.push(...startedBy([name.value, ...suffix.flatMap((word) => (word.type === "Word" ? textOf(word) : []))]));
    Object.values(value).forEach(visit);
  };
  visit(JSON.parse(JSON.stringify(parse(text)))); // the parser makes some members only when they are read
  return found;
}

function textOf({ value, text }: { readonly value?: string; readonly text: string }): string {
  return value ?? text;
}

function startedBy([program = "", ...words]: readonly string[]): readonly string[] {
  switch (basename(program)) {
    case "sh":
      assert.equal(words[0], "-c");
      return [program, ...programsIn(words[1] ?? "")];
    case "timeout":
      assert.equal(words[0], "-k");
      return [program, ...startedBy(words.slice(3))];
    case "perl":
      assert.equal(words[0], "-e");
      return [program, ...startedBy(words.slice(3))];
    case "env":
      assert.equal(words[0], "-i");
      return [program, ...startedBy(words.slice(1).filter((word) => !word.startsWith("${NODE_EXTRA_CA_CERTS:+")))];
    default:
      return [program];
  }
}

/** Fails for a word that the shell or a program would look up in PATH. */
function assertFullPaths(line: string): void {
  for (const program of programsIn(line))
    assert.ok(program.startsWith("/") || builtins.has(program), `PATH decides what ${program} is: ${line}`);
}

/** A folder with programs that print the host's allow, under each name that a line could start. */
function forgedPrograms(t: TestContext, agent: string): string {
  const folder = temporaryFolder(t);
  const names = "case cat command echo env exit node perl printf sh svc-gate svc-gate.mjs test timeout true";
  for (const name of names.split(" ")) {
    writeFileSync(join(folder, name), `#!/bin/sh\nprintf '%s\\n' '${allows[agent]}'\n`);
    chmodSync(join(folder, name), 0o755);
  }
  return folder;
}

const bash = "/usr/bin/bash";

interface Shown {
  readonly status: number | null;
  readonly stdout: string;
}

async function run(line: string, folder: string, { shell = "/bin/sh", more = {} } = {}): Promise<Shown> {
  const env = { PATH: [folder, process.env["PATH"]].join(delimiter), HOME: folder, ...more };
  const child = spawn(shell, ["-c", line], { cwd: folder, env, stdio: ["ignore", "pipe", "ignore"] });
  let stdout = "";
  child.stdout.on("data", (piece) => (stdout += String(piece)));
  const [status] = (await once(child, "close")) as [number | null];
  return { status, stdout };
}

/** Copilot CLI reads a refusal from the output, and the other hosts from the exit code. */
function isRefused(agent: string, { status, stdout }: Shown): boolean {
  return agent === "copilot-cli" ? stdout.startsWith('{"permissionDecision":"deny"') : status === 2 && stdout === "";
}

/** The line that was installed before this release. */
function withBareName(line: string, program: string): string {
  return line.replaceAll(program, basename(program));
}

const variants: readonly Partial<InstallOptions>[] = [
  {},
  { isManaged: true },
  { onEscalate: "wait" },
  { isGrant: false, keyFile: "/home/ann/x.key" },
];

suite("the lines that hook install writes", () => {
  for (const agent of Object.keys(hosts)) {
    const platforms: readonly NodeJS.Platform[] =
      agent === "claude-code" ? ["linux", "darwin", "win32"] : ["linux", "darwin"];
    for (const platform of platforms) {
      const missing = platform === "darwin" && !existsSync("/usr/bin/perl") ? "this machine has no Perl" : false;
      test(`for ${agent} on ${platform} they start every program by its full path`, { skip: missing }, () => {
        for (const variant of variants) {
          const lines = linesOf(agent, platform, variant);
          assert.ok(lines.length >= 2, agent);
          for (const line of lines) {
            assert.ok(programsIn(line).includes(process.execPath), `the hook is not seen in ${line}`);
            assertFullPaths(line);
          }
        }
      });

      if (platform === "win32") continue;
      test(`for ${agent} on ${platform} forged programs in PATH change nothing`, { skip: missing }, async (t) => {
        const folder = forgedPrograms(t, agent);
        const [line = ""] = linesOf(agent, platform);
        assert.ok(isRefused(agent, await run(line, folder)), "the gate's hook is missing");
        const programs = new Set(programsIn(line).filter((program) => /^\/(?:usr\/)?bin\//.test(program)));
        assert.ok(programs.size >= 1, line);
        for (const program of programs) {
          const older = withBareName(line, program);
          assert.throws(() => assertFullPaths(older), /PATH decides/, program);
          if (basename(program) === "perl") continue; // it has no PATH
          assert.ok(!isRefused(agent, await run(older, folder)), `positive control: ${basename(program)} is forged`);
        }
      });
    }
  }

  test(
    "on macOS a variable for Perl does not change the deadline",
    { skip: !existsSync("/usr/bin/perl") },
    async (t) => {
      const folder = temporaryFolder(t);
      writeFileSync(join(folder, "Evil.pm"), `print '${allows["codex"]}', "\\n"; exit 0;\n`);
      const preload = (line: string): Promise<Shown> =>
        run(`export PERL5LIB='${folder}' PERL5OPT=-MEvil; ${line}`, folder);
      const [line = ""] = linesOf("codex", "darwin");
      assert.ok(isRefused("codex", await preload(line)));
      const open = await preload(line.replace("/usr/bin/env -i /usr/bin/perl", "/usr/bin/perl"));
      assert.ok(!isRefused("codex", open), "positive control: Perl with the host's variables");
    },
  );

  test("where /bin/sh is bash, functions of the environment change nothing", { skip: !existsSync(bash) }, async (t) => {
    const folder = temporaryFolder(t);
    symlinkSync(bash, join(folder, "sh"));
    for (const agent of ["codex", "gemini-cli", "copilot-cli"]) {
      const forged = `() { builtin printf '%s\\n' '${allows[agent]}'; exit 0; }`;
      const names = ["printf", "echo", "unset", "exit", "case", "/usr/bin/env", "/usr/bin/timeout"];
      const more = Object.fromEntries(names.map((name) => [`BASH_FUNC_${name}%%`, forged]));
      const shell = join(folder, "sh");
      const line = (linesOf(agent, "linux")[0] ?? "").replace("/bin/sh", shell);
      assert.ok(isRefused(agent, await run(line, folder, { shell, more })), agent);
      const open = await run(line.replace("unset -f echo printf; ", ""), folder, { shell, more });
      assert.ok(!isRefused(agent, open), `positive control: ${agent} without unset`);
    }
  });

  test("a program of the system that is missing is an error, and PATH does not replace it", (t) => {
    const folder = forgedPrograms(t, "codex");
    const path = process.env["PATH"];
    process.env["PATH"] = folder;
    try {
      assert.throws(
        () => systemProgram("timeout", ["/nonexistent"]),
        (error) => error instanceof InputError && /needs the program `timeout`.*install it/.test(error.message),
      );
      assert.match(systemProgram("timeout"), /^\/(?:usr\/bin|bin|run\/current-system\/sw\/bin)\/timeout$/);
      assert.equal(systemProgram("timeout", ["/nonexistent", folder]), join(folder, "timeout"));
    } finally {
      process.env["PATH"] = path;
    }
  });

  test("an older line of every host is recognised, and a new one is not", () => {
    for (const agent of ["codex", "gemini-cli", "copilot-cli"]) {
      const { text = "" } = hosts[agent]?.settings(undefined, wanted) ?? {};
      assert.equal(hasOlderLine(text), false, agent);
      assert.equal(hasOlderLine(text.replaceAll("/usr/bin/timeout", "timeout")), true, agent);
    }
  });
});

/**
 * Goal: `svc-gate hook install` sets up Codex, Gemini CLI and Copilot CLI so that a hook which fails in any way refuses the
 * call, changes nothing else, and can be undone. Method: the command runs with a home folder of its own, and the installed
 * command then runs in a shell, with a gate, without one, and with programs that fail instead of the hook. Positive
 * control: a shell line that only looks at the exit code. The conformance kit drives the released hosts.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { once } from "node:events";
import { suite, test, type TestContext } from "node:test";
import { guardedCommand } from "../../../packages/agent/src/install/shell.ts";
import { runAgent, type AgentRun } from "../../support/agent.ts";
import { agentNode } from "../../support/agent-program.ts";
import { control } from "../../support/controls/control.ts";
import { key, startGate, temporaryFolder } from "../../support/gate.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

interface Host {
  readonly agent: string;
  /** The file of settings below the home folder, and one that a user may have. */
  readonly file: string;
  readonly before: string | undefined;
  /** The hook's command in settings. */
  readonly command: (settings: any) => string;
  readonly input: object;
  /** What the host reads as an allowed call. */
  readonly allowed: RegExp;
}

const snake = { session_id: "s", cwd: "/", tool_name: "run", tool_input: { command: "ls" } };
const mine = { matcher: "x", hooks: [{ type: "command", command: "mine" }] };
const hosts: readonly Host[] = [
  {
    agent: "codex",
    file: ".codex/hooks.json",
    before: JSON.stringify({ hooks: { PreToolUse: [mine], Stop: [mine] } }),
    command: ({ hooks }) => hooks.PreToolUse.at(-1).hooks[0].command,
    input: { ...snake, hook_event_name: "PreToolUse", tool_use_id: "call_1" },
    allowed: /^\{"hookSpecificOutput":\{"hookEventName":"PreToolUse"\}\}\n$/,
  },
  {
    agent: "gemini-cli",
    file: ".gemini/settings.json",
    before: JSON.stringify({ ui: {}, hooks: { BeforeTool: [mine] }, hooksConfig: { enabled: false } }),
    command: ({ hooks }) => hooks.BeforeTool.at(-1).hooks[0].command,
    input: { ...snake, hook_event_name: "BeforeTool" },
    allowed: /^\{"decision":"allow"\}\n$/,
  },
  {
    agent: "copilot-cli",
    file: ".copilot/hooks/svc-gate.json",
    before: undefined,
    command: ({ hooks }) => hooks.preToolUse[0].bash,
    input: { sessionId: "s", cwd: "/", toolName: "run", toolArgs: { command: "ls" } },
    allowed: /^\{"permissionDecision":"allow",.*\}\n$/,
  },
];

const contract = `contract: host
tools: { run: { input: { type: object, additionalProperties: true }, otherwise: ALLOW } }
`;

interface Home {
  readonly folder: string;
  readonly settings: string;
  readonly key: string;
  readonly install: (...words: readonly string[]) => Promise<AgentRun>;
}

function makeHome(t: TestContext, { agent, file, before }: Host, address: string): Home {
  const folder = temporaryFolder(t);
  const settings = join(folder, file);
  const keyFile = join(folder, ".config", "svc-gate", `${agent}.key`);
  for (const path of [settings, keyFile]) mkdirSync(dirname(path), { recursive: true });
  writeFileSync(keyFile, key, { mode: 0o600 });
  if (before !== undefined) writeFileSync(settings, before);
  return {
    folder,
    settings,
    key: keyFile,
    install: (...words) =>
      runAgent(["hook", "install", "--agent", agent, "--url", address, ...words], {
        env: { HOME: folder, USERPROFILE: folder },
        cwd: folder,
      }),
  };
}

interface Shown {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function shell(command: string, input: object, home: string, more: NodeJS.ProcessEnv = {}): Promise<Shown> {
  const child = spawn("bash", ["-c", command], { env: { PATH: process.env["PATH"] ?? "", HOME: home, ...more } });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (piece) => (stdout += String(piece)));
  child.stderr.on("data", (piece) => (stderr += String(piece)));
  child.stdin.on("error", () => undefined);
  child.stdin.end(JSON.stringify(input));
  const [status] = (await once(child, "close")) as [number | null];
  return { status, stdout, stderr };
}

/** Fails unless the host refuses the call after this. */
function assertRefused({ agent }: Host, { status, stdout, stderr }: Shown, name: string): void {
  if (agent === "copilot-cli") {
    assert.equal(status, 0, name);
    assert.equal(JSON.parse(stdout).permissionDecision, "deny", name);
  } else {
    assert.deepEqual([status, stdout], [2, ""], name);
    assert.match(stderr, /Svc: the hook gave no verdict; the action is blocked\./, name);
  }
}

suite("svc-gate hook install for other hosts", { concurrency: 2 }, () => {
  for (const host of hosts) {
    const { agent, before } = host;
    test(`for ${agent} it shows the difference, keeps other settings, and brings them back`, async (t) => {
      const { address } = await startGate(t, { contracts: { "host.yaml": contract }, flags: { mode: "enforce" } });
      const home = makeHome(t, host, address);
      const { code, stdout, stderr } = await home.install("--yes");
      assert.equal(code, 0, stderr);
      const written = readFileSync(home.settings, "utf8");
      assert.ok(!written.includes(key));
      const plain = stdout
        .replaceAll(/"(command|bash)": "\/.*"/g, '"$1": COMMAND')
        .replaceAll(/svc-gate-\w{16}/g, "NAME");
      says(`${agent} installation`, plain, { HOME: home.folder });
      if (before !== undefined) assert.ok(JSON.stringify(JSON.parse(written)).includes(JSON.stringify(mine)));
      assert.match((await home.install("--yes")).stdout, /has these settings already/);
      const waiting = await home.install("--yes", "--on-escalate", "wait");
      assert.match(waiting.stdout, /--on-escalate wait/, waiting.stderr);
      assert.equal((await home.install("--undo", "--yes")).code, 0);
      if (before === undefined) assert.equal(existsSync(home.settings), false);
      else assert.equal(readFileSync(home.settings, "utf8"), before);
      for (const words of [["--form", "http"], ["--on-escalate", "defer"], ["--keep-allow"]])
        assert.equal((await home.install("--yes", ...words)).code, 2, words.join(" "));
    });

    test(`for ${agent} it replaces a line that finds \`timeout\` through PATH, and says so`, async (t) => {
      const { address } = await startGate(t, { contracts: { "host.yaml": contract }, flags: { mode: "enforce" } });
      const home = makeHome(t, host, address);
      const first = await home.install("--yes");
      assert.doesNotMatch(first.stdout, /the installed line is older/);
      const written = readFileSync(home.settings, "utf8");
      writeFileSync(home.settings, written.replaceAll("/usr/bin/timeout", "timeout"));
      const { stdout, stderr } = await home.install("--yes");
      assert.match(stdout, /^the installed line is older: .* The new line replaces it$/m, stderr);
      assert.equal(readFileSync(home.settings, "utf8"), written);
    });

    test(`the command for ${agent} lets a call through that the gate allows, and refuses it if anything fails`, async (t) => {
      const gate = await startGate(t, { contracts: { "host.yaml": contract }, flags: { mode: "enforce" } });
      const home = makeHome(t, host, gate.address);
      await home.install("--yes");
      const command = host.command(JSON.parse(readFileSync(home.settings, "utf8")));
      const allowed = await shell(command, host.input, home.folder);
      assert.equal(allowed.status, 0, allowed.stderr);
      assert.match(allowed.stdout, host.allowed);
      assertRefused(host, await shell(command.replace(agentNode, "/nonexistent"), host.input, home.folder), "no Node");
      writeFileSync(home.key, "wrong-key-wrong-key", { mode: 0o600 });
      assertRefused(host, await shell(command, host.input, home.folder), "a wrong key");
      writeFileSync(home.key, key, { mode: 0o600 });
      await gate.stop();
      assertRefused(host, await shell(command, host.input, home.folder), "no gate");
    });
  }

  for (const host of hosts) {
    test(`the shell line for ${host.agent} refuses after every program that is not the hook`, async (t) => {
      const { address } = await startGate(t, { contracts: { "host.yaml": contract }, flags: { mode: "enforce" } });
      const home = makeHome(t, host, address);
      await home.install("--yes");
      const command = host.command(JSON.parse(readFileSync(home.settings, "utf8")));
      const { stdout: good } = await shell(command, host.input, home.folder);
      for (const [name, program] of Object.entries(failing)) {
        const replaced = command.replace(/\/usr\/bin\/timeout -k 1 15 .*?\); case/, () => `${program}); case`);
        assert.notEqual(replaced, command);
        assertRefused(host, await shell(replaced.replaceAll("GOOD", good.trim()), host.input, home.folder), name);
      }
    });
  }

  for (const host of hosts) {
    test(`no variable of a project's file makes the hook of ${host.agent} run other code`, async (t) => {
      const gate = await startGate(t, { contracts: { "host.yaml": contract } });
      const home = makeHome(t, host, gate.address);
      await home.install("--yes");
      const settings = JSON.parse(readFileSync(home.settings, "utf8"));
      const command = host.command(settings);
      const { stdout: good } = await shell(command, host.input, home.folder);
      await gate.stop();
      const [module, script] = [join(home.folder, "evil.cjs"), join(home.folder, "evil.sh")];
      writeFileSync(module, `require("fs").writeSync(1, ${JSON.stringify(good)}); process.exit(0);`);
      writeFileSync(script, `echo '${good.trim()}'; exit 0`);
      const preload = { NODE_OPTIONS: `--require ${module}` };
      assertRefused(host, await shell(command, host.input, home.folder, preload), "a module for Node");
      const open = await shell(command.replace(/\/usr\/bin\/env -i \S+ /, ""), host.input, home.folder, preload);
      assert.equal(open.stdout, good, "positive control: a hook with the host's variables");
      if (host.agent !== "gemini-cli") return;
      // Only this host adds a project's variables to those of the shell. A shell at level 0 does not read the script.
      const { env } = settings.hooks.BeforeTool.at(-1).hooks[0];
      const scripted = { SHLVL: "1", BASH_ENV: script };
      assertRefused(host, await shell(command, host.input, home.folder, { ...scripted, ...env }), "a script");
      assert.equal((await shell(command, host.input, home.folder, scripted)).stdout, good, "positive control");
      const silent = { SHELLOPTS: "noexec" };
      assertRefused(
        host,
        await shell(command, host.input, home.folder, { ...silent, ...env }),
        "a shell that runs nothing",
      );
      const { status, stdout } = await shell(command, host.input, home.folder, silent);
      assert.deepEqual([status, stdout], [0, ""], "positive control: the host takes this for no objection");
    });
  }

  control("positive control: a line that takes every text for an output is noticed", async () => {
    const wanted = { url: "", keyFile: "", program: "", form: "command", onEscalate: "deny" } as const;
    const rest = { isGrant: false, keepsAllow: false, isManaged: false };
    const refusal = "echo 'Svc: the hook gave no verdict; the action is blocked.' >&2; exit 2";
    const [host] = hosts as [Host];
    const line = (starts: readonly string[]): Promise<Shown> =>
      shell(guardedCommand("echo ALLOW", { ...wanted, ...rest }, { prefixes: starts, refusal }), {}, "/");
    assertRefused(host, await line(["{"]), "a text");
    const open = await line([""]);
    assert.throws(() => assertRefused(host, open, "a text"));
  });

  test("Codex's machine settings are written only into a file without other requirements", async (t) => {
    const { address } = await startGate(t);
    const [host] = hosts as [Host];
    const home = makeHome(t, host, address);
    const { stdout, code } = await home.install("--scope", "managed", "--print");
    if (code === 2) return t.skip("this machine has requirements of Codex");
    assert.match(stdout, /^allow_managed_hooks_only = true$/m);
    assert.match(stdout, /^unified_exec_tty = false$/m);
    assert.match(stdout, /\\"\$HOME\\"\/\.config\/svc-gate\/codex\.key/);
    return undefined;
  });
});

/** Shell commands instead of the hook. GOOD is an output that lets a call through. */
const failing: Readonly<Record<string, string>> = {
  "a program that does not exist": "/nonexistent",
  "exit 1": "exit 1",
  "a crash": 'sh -c "kill -SEGV \\$\\$"',
  "a program that is killed": 'sh -c "kill -KILL \\$\\$"',
  "a program that hangs": "timeout -k 1 1 sleep 20",
  "no output": "true",
  "a text": "echo ALLOW",
  "JSON of another kind": `echo "{}x"`,
  "a verdict": `echo "{\\"verdict\\":\\"ALLOW\\"}"`,
};

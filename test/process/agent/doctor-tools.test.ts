/**
 * Goal: `svc-gate doctor --tools` prints the tools that a host offers its model, with their names at the gate, and starts
 * nothing of the user's settings. Method: a program that only asks its model as a host does.
 * test/process/hosts/doctor.test.ts starts the released host. Positive control: a doctor that keeps the user's hooks.
 */
import assert from "node:assert/strict";
import { spawnSync, type SpawnSyncReturns } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { runAgent, type AgentRun } from "../../support/agent.ts";
import { control } from "../../support/controls/control.ts";
import { root, temporaryFolder } from "../../support/gate.ts";
import { compile } from "../../support/contract-kit.ts";
import type { Mutation } from "../../support/mutation/mutate.ts";

/** The doctor refuses root, so these tests become another user. */
const nobody = process.getuid?.() === 0 ? 65534 : undefined;
const hasTerminal = spawnSync("script", ["-qfec", "true", "/dev/null"], { stdio: "ignore" }).status === 0;

/** Asks the model once, and stays if a person is there. Its list of tools depends on that, too. */
const host = `
const { argv, env, stdin } = process;
const text = argv.at(-1) === "json" ? argv.at(-3) : argv.at(-1);
const schema = { type: "object", required: ["command"], properties: { command: { type: "string" } } };
const tool = (name, input_schema) => ({ name, description: "Does " + name, input_schema });
const tools = [tool("Bash", schema), tool("mcp__files__read", schema), { type: "web_search_1", name: "web_search" }];
if (stdin.isTTY) tools.push(tool("AskUserQuestion", { type: "object" }));
const send = (body) => fetch(env.ANTHROPIC_BASE_URL + "/v1/messages", { method: "POST", body: JSON.stringify(body) });
await send({ messages: [{ role: "user", content: "a title for " + text }] });
await send({ messages: [{ role: "user", content: text }], tools });
if (stdin.isTTY) setInterval(() => {}, 1000);
`;

interface Listed extends AgentRun {
  /** Runs `import-tools --agent` with the same host. */
  readonly imported: () => SpawnSyncReturns<string>;
  readonly kept: string;
  readonly temporary: string;
}

async function list(t: TestContext, script: string, defects: readonly Mutation[] = []): Promise<Listed> {
  const home = temporaryFolder(t);
  const [own, temporary, kept] = [join(home, ".claude"), join(home, "tmp"), join(home, "kept")];
  for (const each of [own, temporary, kept]) mkdirSync(each);
  for (const each of [temporary, kept]) chmodSync(each, 0o777);
  const hook = { matcher: "*", hooks: [{ type: "command", command: "touch hooked" }] };
  const settings = {
    hooks: { SessionStart: [hook] },
    apiKeyHelper: "touch helped",
    env: { EDITOR: "vi" },
    model: "opus",
  };
  writeFileSync(join(own, "settings.json"), JSON.stringify(settings));
  const program = join(home, "claude");
  writeFileSync(join(home, "host.mjs"), host);
  const all = script.replaceAll("HOST", `${process.execPath} ${join(home, "host.mjs")}`).replaceAll("KEPT", kept);
  writeFileSync(program, `#!/bin/sh\nif [ "$1" = --version ]; then echo 9.9.9; exit 0; fi\n${all}\n`);
  chmodSync(program, 0o755);
  chmodSync(home, 0o755);
  const env = { HOME: home, TMPDIR: temporary, PATH: process.env["PATH"] ?? "" };
  const other = nobody === undefined ? {} : { uid: nobody, gid: nobody };
  const main = join(root, "packages", "svc-gate", "src", "main.ts");
  const words = [main, "import-tools", "--agent", "claude-code", "--host", program];
  const imported = (): SpawnSyncReturns<string> =>
    spawnSync(process.execPath, words, { encoding: "utf8", env, cwd: home, ...other });
  const ran = await runAgent(["doctor", "--agent", "claude-code", "--host", program, "--tools"], {
    env: { HOME: home, TMPDIR: temporary },
    cwd: home,
    defects,
    ...(nobody === undefined ? {} : { uid: nobody }),
  });
  return { ...ran, imported, kept, temporary };
}

const keeping = 'cp "$HOME/.claude/settings.json" KEPT/; echo $$ >> KEPT/pids; exec HOST "$@"';

async function startsNothing(t: TestContext, defects: readonly Mutation[] = []): Promise<void> {
  const { code, stderr, kept } = await list(t, keeping, defects);
  assert.equal(code, 0, stderr);
  const copy = JSON.parse(readFileSync(join(kept, "settings.json"), "utf8"));
  assert.deepEqual(copy, { env: { EDITOR: "vi", ENABLE_TOOL_SEARCH: "false" }, model: "opus" });
}

const skip = process.platform === "win32" ? "hosts are shell scripts" : false;

suite("svc-gate doctor --tools", { concurrency: 2, skip }, () => {
  test("it prints the tools of a headless run and of a session, without those of MCP servers", async (t) => {
    const { code, stdout, stderr } = await list(t, keeping);
    assert.equal(code, 0, stderr);
    const { agent, version, tools } = JSON.parse(stdout);
    assert.deepEqual([agent, version], ["claude-code", "9.9.9"]);
    const names = ["Bash", ...(hasTerminal ? ["AskUserQuestion"] : []), "web_search"];
    assert.deepEqual(
      tools.map(({ name }: any) => name),
      names.toSorted(),
    );
    const bash = tools.find(({ name }: any) => name === "Bash");
    assert.deepEqual([bash.description, bash.inputSchema.required], ["Does Bash", ["command"]]);
    assert.equal("inputSchema" in tools.at(-1), false);
    assert.match(
      stderr,
      /left out, because svc-gate import-tools --mcp reads them from their server: mcp__files__read$/m,
    );
  });

  test("import-tools --agent writes a contract of these tools that compiles", async (t) => {
    const { imported } = await list(t, keeping);
    const { status, stdout, stderr } = imported();
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^# The tools that claude-code 9\.9\.9 offers its model\.$/m);
    const { tools } = compile(stdout);
    assert.deepEqual(
      tools.get("Bash")?.routes.map(({ otherwise }) => otherwise),
      ["BLOCK"],
    );
    assert.equal(tools.has("files.read"), false);
  });

  test("it leaves no process and no file behind", async (t) => {
    const { kept, temporary } = await list(t, keeping);
    assert.deepEqual(readdirSync(temporary), []);
    const pids = readFileSync(join(kept, "pids"), "utf8").trim().replaceAll("\n", ",");
    const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", pids], { encoding: "utf8" });
    assert.doesNotMatch(stdout, /^[^Z\s]/m); // Z has ended, and nobody has asked for its exit code.
  });

  test("the host gets no hook and no helper of the user's settings", (t) => startsNothing(t));

  control("positive control: a doctor that keeps the user's hooks is noticed", (t) =>
    assert.rejects(
      startsNothing(t, [
        {
          within: "withoutPrograms",
          find: "return JSON.stringify({ ...copy, env });",
          put: "return JSON.stringify({ ...settings, env });",
        },
      ]),
      /touch hooked/,
    ),
  );

  test("a host that does not ask its model proves nothing, and its last line says why", async (t) => {
    const { code, stdout, stderr } = await list(t, "echo 'no such model' >&2; exit 1");
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, /the host ended before it asked its model: no such model$/m);
  });
});

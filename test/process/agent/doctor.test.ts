/**
 * Goal: `svc-gate doctor` says that a call ran if one did, and says that it has no result if the host ended too early.
 * Method: programs that only look like a host. test/process/hosts/doctor.test.ts starts the released host.
 */
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { runAgent, type AgentRun } from "../../support/agent.ts";
import { control } from "../../support/controls/control.ts";
import { root, temporaryFolder } from "../../support/gate.ts";
import type { Mutation } from "../../support/mutation/mutate.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);
/** The doctor refuses root, so these tests become another user. */
const nobody = process.getuid?.() === 0 ? 65534 : undefined;

interface Doctor {
  readonly home: string;
  readonly program: string;
  readonly temporary: string;
  readonly run: (...words: readonly string[]) => Promise<AgentRun>;
}

/** A home folder with settings, and a host that is a shell script. */
function doctorFor(
  t: TestContext,
  script: string,
  settings: object | string = {},
  defects: readonly Mutation[] = [],
): Doctor {
  const home = temporaryFolder(t);
  const program = join(home, "claude");
  const temporary = join(home, "tmp");
  for (const each of [join(home, ".claude"), temporary]) mkdirSync(each);
  chmodSync(temporary, 0o777);
  const text = typeof settings === "string" ? settings : JSON.stringify(settings);
  writeFileSync(join(home, ".claude", "settings.json"), text);
  writeFileSync(program, `#!/bin/sh\nif [ "$1" = --version ]; then echo 9.9.9; exit 0; fi\n${script}\n`);
  chmodSync(program, 0o755);
  chmodSync(home, 0o755);
  return {
    home,
    program,
    temporary,
    run: (...words) =>
      runAgent(["doctor", "--agent", "claude-code", "--host", program, ...words], {
        env: { HOME: home, TMPDIR: temporary },
        cwd: home,
        defects,
        ...(nobody === undefined ? {} : { uid: nobody }),
      }),
  };
}

const readFileText = (file: string): string => readFileSync(file, "utf8");

const verdicts = ({ stdout }: AgentRun): any => JSON.parse(stdout);

/** The user's gate and key are in no hook of the copy. */
async function leadsHooks(t: TestContext, defects: readonly Mutation[] = []): Promise<void> {
  const forms = [
    "svc-gate hook --agent claude-code --url http://real.example --key-file '/real key'",
    "'/a b/svc-gate.mjs' hook --url=http://real.example --agent claude-code --key-file=/real\\ key || exit 2",
    'svc-gate hook --key-file "/real $KEY" --url http://other.example --url http://real.example --agent claude-code',
    "svc-gate hook --agent claude-code",
  ];
  const hooks = forms.map((command) => ({ type: "command", command }));
  const settings = {
    env: { SVC_URL: "http://real.example" },
    hooks: { PreToolUse: [{ matcher: "*", hooks }, null] },
  };
  const { home, run } = doctorFor(t, 'cp "$HOME/.claude/settings.json" KEPT/', settings, defects);
  const kept = join(home, "kept");
  mkdirSync(kept);
  chmodSync(kept, 0o777);
  writeFileSync(join(home, "claude"), readFileText(join(home, "claude")).replaceAll("KEPT", kept));
  await run("--yes"); // the last case keeps the hook
  const copy = readFileText(join(kept, "settings.json"));
  assert.doesNotMatch(copy, /real|other|SVC_URL/);
  for (const { command } of JSON.parse(copy).hooks.PreToolUse[0].hooks)
    assert.match(command, /hook --url http:\/\/127\.0\.0\.1:\d+ --key-file \S+\/key /);
}

suite(
  "svc-gate doctor",
  { concurrency: 2, skip: process.platform === "win32" ? "hosts are shell scripts" : false },
  () => {
    test("a host that runs everything is reported as open in each case but the allowed one", async (t) => {
      const { run } = doctorFor(t, "touch ran");
      const { code, stdout } = await run("--yes");
      assert.equal(code, 1);
      assert.match(stdout, /^Not tested here: .*`Agent` and `Skill`.*`managed_settings: true`/m);
      says("a host that runs everything", stdout.replaceAll(/^The network.*\n/gm, ""), { HOME: t.name });
      const { closed, results } = verdicts(await run("--yes", "--json"));
      assert.equal(closed, false);
      assert.deepEqual(new Set(results.map(({ ran }: any) => ran)), new Set([true]));
    });

    test("a host that ends at once proves nothing, and the doctor says so", async (t) => {
      const { run } = doctorFor(t, "echo 'no such model' >&2; exit 1");
      const { code, stdout } = await run("--yes", "--json");
      assert.equal(code, 1, stdout);
      for (const { closed, ran, trouble } of verdicts({ code, stdout, stderr: "" }).results)
        assert.deepEqual([closed, ran, trouble], [false, false, "no such model"]);
      assert.match((await run("--yes")).stdout, /\n10 of 10 cases have no result, because the host ended too early\./);
    });

    test("it lists the commands of the settings first, and starts nothing without an answer", async (t) => {
      const hook = { matcher: "*", hooks: [{ type: "command", command: "touch hooked" }] };
      const settings = { apiKeyHelper: "touch helped", hooks: { PreToolUse: [hook] } };
      const { home, run } = doctorFor(t, "touch ran", settings);
      const { code, stdout, stderr } = await run();
      assert.equal(code, 2);
      says("the commands", stdout, { HOME: home });
      says("nobody can answer", stderr);
      assert.deepEqual(readdirSync(home).toSorted(), [".claude", "claude", "tmp"]);
    });

    test("without settings it says so, and speaks of no hooks", async (t) => {
      const { home, run } = doctorFor(t, "touch ran");
      rmSync(join(home, ".claude", "settings.json"));
      says("no settings", (await run()).stdout, { HOME: home });
    });

    test("the host gets a copy of the settings without helpers, and nothing of the user's variables", async (t) => {
      const settings = {
        apiKeyHelper: "touch helped",
        env: { ANTHROPIC_BASE_URL: "http://elsewhere", EDITOR: "vi" },
        model: "opus",
      };
      const { home, run } = doctorFor(t, 'env > "$KEPT/env"; cp "$HOME/.claude/settings.json" "$KEPT/"', settings);
      const kept = join(home, "kept");
      mkdirSync(kept);
      chmodSync(kept, 0o777);
      writeFileSync(join(home, "claude"), readFileText(join(home, "claude")).replaceAll("$KEPT", kept));
      await run("--yes");
      const copy = JSON.parse(readFileText(join(kept, "settings.json")));
      assert.deepEqual(copy, { model: "opus", env: { EDITOR: "vi" } });
      const env = readFileText(join(kept, "env"));
      assert.doesNotMatch(env, new RegExp(`^HOME=${home}$`, "m"));
      assert.match(env, /^ANTHROPIC_BASE_URL=http:\/\/127\.0\.0\.1:\d+$/m);
      assert.match(env, /^HTTPS_PROXY=http:\/\/127\.0\.0\.1:9$/m);
    });

    test("a hook of the gate asks the doctor's gate, however its options are written", (t) => leadsHooks(t));

    control("positive control: a hook that keeps its own gate is noticed", (t) =>
      assert.rejects(
        leadsHooks(t, [{ within: "isGateCommand", find: 'typeof command === "string"', put: "false" }]),
        /real\.example/, // the copy, which has the user's gate
      ),
    );

    test("further files of the machine's settings are listed, and ask the doctor's gate too", async (t) => {
      if (nobody === undefined) return t.skip("only root can have the machine's settings in a namespace of its own");
      const { home, program, temporary } = doctorFor(
        t,
        'cat /etc/claude-code/*/* > "$CLAUDE_CONFIG_DIR/../../../seen"',
      );
      const managed = join(root, "adapters", "conformance", "drivers", "managed.sh");
      const hook = { type: "command", command: "svc-gate hook --agent claude-code --url http://real.example" };
      const file = join(home, "10-more.json");
      writeFileSync(file, JSON.stringify({ hooks: { PreToolUse: [{ matcher: "*", hooks: [hook] }] } }));
      const add = 'mkdir /etc/claude-code/managed-settings.d; cp "$0" /etc/claude-code/managed-settings.d/; exec "$@"';
      const user = ["setpriv", "--reuid", String(nobody), "--regid", String(nobody), "--clear-groups"];
      const settingsFile = "/etc/claude-code/managed-settings.json";
      const wrapper = ["unshare", "-m", "sh", managed, file, settingsFile, "sh", "-c", add, file, ...user];
      const words = ["doctor", "--agent", "claude-code", "--host", program, "--yes"];
      const { stdout, stderr } = await runAgent(words, { env: { HOME: home, TMPDIR: temporary }, cwd: home, wrapper });
      if (stdout === "") return t.skip(`no namespace here: ${stderr}`);
      assert.match(stdout, /managed-settings\.d\/10-more\.json: the gate's hook as command\n/);
      // `file` is the machine's first file too, and it does not exclude the hooks and permissions of projects.
      assert.match(stdout, /^Not tested here: .*`Agent` and `Skill`/m);
      const restricted = { allowManagedHooksOnly: true, allowManagedPermissionRulesOnly: true };
      writeFileSync(file, JSON.stringify({ ...restricted, ...JSON.parse(readFileText(file)) }));
      const closed = await runAgent(words, { env: { HOME: home, TMPDIR: temporary }, cwd: home, wrapper });
      assert.match(closed.stdout, /10-more\.json: the gate's hook as command\n/);
      assert.doesNotMatch(closed.stdout, /`Agent` and `Skill`/);
      if (!stdout.includes("The network was not cut")) {
        const seen = readFileText(join(temporary, "seen"));
        assert.match(seen, /--url http:\/\/127\.0\.0\.1:\d+/);
        assert.doesNotMatch(seen, /real/);
      }
      return undefined;
    });

    test("a hook that cannot be led to the doctor's gate is refused, and nothing is started", async (t) => {
      for (const hook of [
        { command: "svc-gate", args: ["hook", "--agent", "claude-code", "--url", "http://real.example"] },
        { command: "SVC_URL=http://real.example svc-gate hook --agent claude-code" },
        { command: "svc-gate hook '--url' http://real.example --agent claude-code" },
      ]) {
        const settings = { hooks: { PreToolUse: [{ matcher: "*", hooks: [{ type: "command", ...hook }] }] } };
        const { home, run } = doctorFor(t, "touch ran", settings);
        const { code, stderr } = await run("--yes");
        assert.equal(code, 2, stderr);
        assert.match(stderr, /cannot point this hook to its own gate/);
        assert.deepEqual(readdirSync(home).toSorted(), [".claude", "claude", "tmp"]);
      }
    });

    test("the copy has no member that may start a program, and the list names what is left out", async (t) => {
      const settings = {
        proxyAuthHelper: "touch p",
        fileSuggestion: { type: "command", command: "touch f" },
        later: 1,
      };
      const { home, run } = doctorFor(t, 'cp "$HOME/.claude/settings.json" KEPT/', settings);
      writeFileSync(join(home, "claude"), readFileText(join(home, "claude")).replaceAll("KEPT", join(home, "tmp")));
      const { stdout } = await run("--yes");
      assert.match(stdout, /proxyAuthHelper, replaced by nothing\n *fileSuggestion, replaced by nothing\n *later,/);
      assert.deepEqual(JSON.parse(readFileText(join(home, "tmp", "settings.json"))), {});
    });

    test("a program that the host leaves behind is ended, and does not delay the doctor", async (t) => {
      const { home, run } = doctorFor(t, `sleep 600 & echo $! >> KEPT/pids; touch ran`);
      writeFileSync(join(home, "claude"), readFileText(join(home, "claude")).replaceAll("KEPT", join(home, "tmp")));
      const start = performance.now();
      await run("--yes");
      assert.ok(performance.now() - start < 60_000);
      const pids = readFileText(join(home, "tmp", "pids"))
        .trim()
        .replaceAll("\n", ",");
      const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", pids], { encoding: "utf8" });
      assert.doesNotMatch(stdout, /^[^Z\s]/m); // Z has ended, and nobody has asked for its exit code.
    });

    test("it leaves nothing behind", async (t) => {
      const { run, temporary } = doctorFor(t, "touch ran");
      await run("--yes");
      assert.deepEqual(readdirSync(temporary), []);
    });

    test("it refuses root, a host that it cannot find, and settings that are not JSON", async (t) => {
      const { run, home } = doctorFor(t, "exit 0", "{");
      says("broken settings", (await run("--yes")).stderr, { HOME: home });
      const env = { HOME: home, PATH: "/nowhere" };
      const other = nobody === undefined ? {} : { uid: nobody };
      says("no host", (await runAgent(["doctor", "--agent", "claude-code"], { env, cwd: home, ...other })).stderr);
      says("no agent", (await runAgent(["doctor"], { env, cwd: home, ...other })).stderr);
      if (nobody === undefined) return t.diagnostic("this user is not root");
      const asRoot = await runAgent(["doctor", "--agent", "claude-code"], { env, cwd: home });
      assert.equal(asRoot.code, 2);
      const inside = { env: { ...env, SVC_DOCTOR_INSIDE: "1" }, cwd: home };
      const claimed = await runAgent(["doctor", "--agent", "claude-code", "--yes"], inside);
      assert.equal(claimed.stderr, asRoot.stderr);
      return says("root", asRoot.stderr);
    });
  },
);

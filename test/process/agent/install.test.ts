/**
 * Goal: `svc-gate hook install` writes settings in which the gate grants each call, shows the difference first, keeps the
 * user's own settings, and can be undone. Method: the command runs with a home folder of its own, against a real gate.
 * The conformance kit drives the released host with such settings.
 */
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { runAgent, type AgentRun } from "../../support/agent.ts";
import { key, startGate, temporaryFolder } from "../../support/gate.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);
const before = {
  model: "opus",
  permissions: { allow: ["Bash(ls:*)"], deny: ["WebFetch"] },
  hooks: { PreToolUse: [{ matcher: "Bash", hooks: [{ type: "command", command: "mine" }] }], Stop: [] },
};

interface Home {
  readonly folder: string;
  readonly settings: string;
  readonly read: () => any;
  readonly install: (...words: readonly (Readonly<Record<string, string>> | string)[]) => Promise<AgentRun>;
}

/** A home folder with settings of Claude Code and a key. */
function makeHome(t: TestContext, address: string, settings: string | undefined = JSON.stringify(before)): Home {
  const folder = temporaryFolder(t);
  const file = join(folder, ".claude", "settings.json");
  mkdirSync(join(folder, ".claude"));
  mkdirSync(join(folder, ".config", "svc-gate"), { recursive: true });
  writeFileSync(join(folder, ".config", "svc-gate", "claude-code.key"), key, { mode: 0o600 });
  if (settings !== "") writeFileSync(file, settings);
  return {
    folder,
    settings: file,
    read: () => JSON.parse(readFileSync(file, "utf8")),
    install: (...words) => {
      const options = words.filter((word) => typeof word === "string");
      const more = Object.assign({}, ...words.filter((word) => typeof word !== "string"));
      const all = ["hook", "install", "--agent", "claude-code", "--url", address, ...options];
      return runAgent(all, { env: { HOME: folder, USERPROFILE: folder, ...more }, cwd: folder });
    },
  };
}

suite("svc-gate hook install", { concurrency: 2 }, () => {
  test("it writes grant mode, keeps other settings, and brings them back", async (t) => {
    const { address } = await startGate(t);
    const home = makeHome(t, address);
    const { code, stdout, stderr } = await home.install("--yes");
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^warning: .*`Agent` and `Skill`.*`managed_settings: true`/m);
    says("installation", stdout.replaceAll(/"command": ".*"/g, "COMMAND"), { HOME: home.folder });
    const written = home.read();
    assert.equal(written.model, "opus");
    assert.deepEqual(written.permissions, { deny: ["WebFetch"], defaultMode: "dontAsk" });
    assert.deepEqual(written.hooks.Stop, []);
    const [own, ours, ...rest] = written.hooks.PreToolUse;
    assert.deepEqual([own, rest], [before.hooks.PreToolUse[0], []]);
    assert.deepEqual([ours.matcher, ours.hooks[0].onFailure], ["*", "block"]);
    assert.ok(!readFileSync(home.settings, "utf8").includes(key));

    const again = await home.install("--yes", "--on-escalate", "wait");
    assert.equal(again.code, 0, again.stderr);
    assert.equal(home.read().hooks.PreToolUse.length, 2);
    assert.match(JSON.stringify(home.read()), /--on-escalate wait/);
    assert.equal((await home.install("--yes", "--on-escalate", "wait")).stdout.includes("already"), true);
    const undone = await home.install("--undo", "--yes");
    assert.equal(undone.code, 0, undone.stderr);
    assert.equal(readFileSync(home.settings, "utf8"), JSON.stringify(before));
    says("nothing to undo", (await home.install("--undo", "--yes")).stderr, { HOME: home.folder });
  });

  test("it removes a file that it made, and says if somebody changed the file since", async (t) => {
    const { address } = await startGate(t);
    const home = makeHome(t, address, "");
    await home.install("--yes");
    writeFileSync(home.settings, JSON.stringify({ ...home.read(), model: "new" }));
    const { stdout } = await home.install("--undo", "--yes");
    assert.match(stdout, /somebody changed .* since/);
    assert.equal(existsSync(home.settings), false);
  });

  test("it refuses grant mode while the gate observes, and writes nothing without an answer", async (t) => {
    const observing = await startGate(t, { flags: { mode: "observe" } });
    const home = makeHome(t, observing.address);
    const refused = await home.install("--yes");
    assert.equal(refused.code, 2);
    says("an observing gate", refused.stderr);
    assert.equal((await home.install("--yes", "--no-grant")).code, 0);
    assert.deepEqual(home.read().permissions, before.permissions);
    await home.install("--undo", "--yes");
    const unanswered = await home.install("--no-grant");
    assert.equal(unanswered.code, 2);
    says("nobody can answer", unanswered.stderr);
    assert.deepEqual(home.read(), before);
    await observing.stop();
    says("no gate", (await home.install("--yes")).stderr);
  });

  test("it says how to get a key, and which mistakes the command line and the settings have", async (t) => {
    const { address } = await startGate(t);
    const home = makeHome(t, address, "{");
    const cases = [
      ["no key", "--key-file", "none.key"],
      ["broken settings", "--yes"],
      ["an unknown scope", "--scope", "project"],
      ["an unknown agent", "--agent", "other"],
      ["an address with a user", "--url", "http://a:b@gate"],
      ["an unknown option", "--fast"],
    ];
    for (const [name = "", ...words] of cases) {
      const { code, stdout, stderr } = await home.install(...words);
      assert.deepEqual([code, stdout], [2, ""], name);
      says(name, stderr, { HOME: home.folder });
    }
  });

  test("the machine's settings name each user's own key and exclude other hooks and permissions", async (t) => {
    const { address } = await startGate(t);
    const home = makeHome(t, address);
    const { code, stdout, stderr } = await home.install("--scope", "managed", "--print");
    assert.equal(code, 0, stderr);
    const { allowManagedHooksOnly, allowManagedPermissionRulesOnly, permissions, hooks } = JSON.parse(stdout);
    assert.deepEqual([allowManagedHooksOnly, allowManagedPermissionRulesOnly], [true, true]);
    assert.deepEqual(permissions, { defaultMode: "dontAsk", disableBypassPermissionsMode: "disable" });
    assert.match(hooks.PreToolUse[0].hooks[0].command, /^\/usr\/bin\/env -i /);
    assert.doesNotMatch(stdout + stderr, /managed_settings/);
    assert.match(hooks.PreToolUse[0].hooks[0].command, /--key-file "\$HOME"\/\.config\/svc-gate\/claude-code\.key/);
    const http = JSON.parse((await home.install("--scope", "managed", "--print", "--form", "http")).stdout);
    const [hook] = http.hooks.PreToolUse[0].hooks;
    assert.deepEqual([hook.url, hook.headers], [`${address}/hooks/claude-code`, { Authorization: "Bearer $SVC_KEY" }]);
  });

  test("the earlier settings of one file are never written into another", async (t) => {
    const { address } = await startGate(t);
    const home = makeHome(t, address);
    assert.equal((await home.install("--yes")).code, 0);
    const other = join(home.folder, "project", ".claude");
    mkdirSync(other, { recursive: true });
    writeFileSync(join(other, "settings.json"), "{}");
    const undone = await home.install("--undo", "--yes", { CLAUDE_CONFIG_DIR: other });
    assert.equal(undone.code, 2, undone.stdout);
    assert.equal(readFileSync(join(other, "settings.json"), "utf8"), "{}");
    assert.equal((await home.install("--yes", { CLAUDE_CONFIG_DIR: other })).code, 0);
    assert.equal((await home.install("--undo", "--yes")).code, 0);
    assert.equal(readFileSync(home.settings, "utf8"), JSON.stringify(before));
    for (const folder of ["", "here"]) {
      const { code, stderr } = await home.install("--yes", { CLAUDE_CONFIG_DIR: folder });
      assert.deepEqual([code, stderr.includes("must be an absolute path")], [2, true], folder);
    }
  });

  test("a key is neither made nor used in a project, or where others can read it", async (t) => {
    const gate = await startGate(t);
    const home = makeHome(t, gate.address);
    const admin = join(home.folder, "admin.key");
    writeFileSync(admin, JSON.parse(readFileSync(join(gate.folder, "data", "operator.json"), "utf8")).key);
    const project = join(home.folder, "project");
    mkdirSync(join(project, ".git"), { recursive: true });
    mkdirSync(join(project, "below"));
    const file = join(project, "below", "host.key");
    const made = ["--yes", "--admin-key-file", admin, "--name", "laptop", "--key-file"];
    const words = [
      "hook",
      "install",
      "--agent",
      "claude-code",
      "--url",
      gate.address,
      ...made,
      file,
      "--name",
      "defect",
    ];
    const env = { HOME: home.folder, USERPROFILE: home.folder };
    const defect = { within: "refuseProject", find: "existsSync(join(folder, name))", put: "false" };
    await runAgent([...words, "--yes"], { env, cwd: home.folder, defects: [defect] });
    assert.ok(existsSync(file), "positive control: without the rule, the key is written");
    rmSync(file);
    const inProject = await home.install(...made, file);
    assert.equal(inProject.code, 2);
    assert.match(inProject.stderr, /is in the project/);
    assert.equal(existsSync(file), false);
    const link = join(home.folder, "link.key");
    symlinkSync(join(project, "linked.key"), link);
    assert.match((await home.install(...made, link)).stderr, /cannot be made \(EEXIST\)/);
    assert.equal(existsSync(join(project, "linked.key")), false);
    // The name is still free, so no key was made and lost.
    assert.equal((await home.install(...made, join(home.folder, "made.key"))).code, 0);
    if (process.platform === "win32") return;
    chmodSync(join(home.folder, "made.key"), 0o644);
    const shared = await home.install("--yes", "--key-file", join(home.folder, "made.key"));
    assert.match(shared.stderr, /other users can read/);
  });

  test("settings that come back are not open to others, and odd ones are refused or shown", async (t) => {
    const { address } = await startGate(t);
    const home = makeHome(
      t,
      address,
      JSON.stringify({ env: { TOKEN: "secret" }, sandbox: { autoAllowBashIfSandboxed: true } }),
    );
    const { stdout } = await home.install("--yes");
    assert.match(stdout, /autoAllowBashIfSandboxed` is switched off/);
    assert.equal(home.read().sandbox.autoAllowBashIfSandboxed, false);
    rmSync(home.settings);
    assert.equal((await home.install("--undo", "--yes")).code, 0);
    if (process.platform !== "win32") assert.equal(statSync(home.settings).mode & 0o777, 0o600);
    for (const text of ["[]", "null", "1", '{"hooks":[]}', '{"permissions":"all"}']) {
      writeFileSync(home.settings, text);
      assert.equal((await home.install("--yes")).code, 2, text);
      assert.equal(readFileSync(home.settings, "utf8"), text);
    }
    const huge = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`a${index}`, index]));
    writeFileSync(home.settings, JSON.stringify(huge, null, 1));
    assert.equal((await home.install("--yes")).code, 0);
  });

  test("it makes a host key with an administrator's key, in a file that only its owner can read", async (t) => {
    const gate = await startGate(t);
    const home = makeHome(t, gate.address);
    const admin = join(home.folder, "admin.key");
    writeFileSync(admin, JSON.parse(readFileSync(join(gate.folder, "data", "operator.json"), "utf8")).key);
    const file = join(home.folder, "made", "host.key");
    const words = ["--yes", "--key-file", file, "--admin-key-file", admin, "--name", "laptop"];
    const { code, stderr } = await home.install(...words);
    assert.equal(code, 0, stderr);
    const authorization = `Bearer ${readFileSync(file, "utf8").trim()}`;
    if (process.platform !== "win32") assert.equal(statSync(file).mode & 0o777, 0o600);
    const receipts = await fetch(`${gate.address}/receipts`, { headers: { authorization } });
    assert.equal(receipts.status, 403);
    const taken = await home.install(
      "--yes",
      "--key-file",
      join(home.folder, "b"),
      "--admin-key-file",
      admin,
      "--name",
      "laptop",
    );
    says("a name that is taken", taken.stderr);
  });

  test("it warns if the agent's user can read the gate's own files", async (t) => {
    const gate = await startGate(t);
    const home = makeHome(t, gate.address);
    assert.doesNotMatch((await home.install("--yes")).stdout, /approve itself/);
    const env = { HOME: home.folder, SVC_DATA_DIR: join(gate.folder, "data") };
    const words = ["hook", "install", "--agent", "claude-code", "--url", gate.address, "--yes"];
    const { stdout } = await runAgent(words, { env, cwd: home.folder });
    assert.match(stdout, /the agent can approve itself here: this user can read .*operator\.json/);
  });
});

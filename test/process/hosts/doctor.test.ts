/**
 * Goal: `svc-gate doctor` says the truth about the released host with the settings that `hook install` writes. Method: it
 * drives Claude Code with each kind of settings. Positive controls: settings without the gate's hook, and settings without
 * grant mode, are reported as open.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { claudeCode } from "../../../adapters/conformance/drivers/claude-code.ts";
import { installed } from "../../../adapters/conformance/hosts.ts";
import { runAgent, type AgentOptions } from "../../support/agent.ts";
import { key, root, startGate, temporaryFolder } from "../../support/gate.ts";
import { assertKnown } from "../../support/host-tools.ts";

/** The doctor refuses root, so root becomes another user. */
const nobody = process.getuid?.() === 0 ? 65534 : undefined;
const host = join(
  installed("hosts"),
  "node_modules",
  "@anthropic-ai",
  `claude-code-${process.platform}-${process.arch}`,
  "claude",
);

/** Why these tests cannot run here; undefined if they can. */
function missing(): string | undefined {
  const absent = claudeCode[0]?.missing();
  if (absent !== undefined || nobody === undefined) return absent;
  const words = ["--reuid", String(nobody), "--regid", String(nobody), "--clear-groups", "test", "-r", host];
  return spawnSync("setpriv", words).status === 0 ? undefined : "another user cannot read this folder";
}

interface Home {
  readonly folder: string;
  /** The text of the settings that `hook install` would write. */
  readonly settings: (...words: readonly string[]) => Promise<string>;
  /** The cases that the doctor reports as open. It fails if the doctor knows nothing about a case. */
  readonly open: (settings: string, wrapper?: readonly string[]) => Promise<readonly string[]>;
}

async function makeHome(t: TestContext): Promise<Home> {
  const { address } = await startGate(t);
  const folder = temporaryFolder(t);
  const [own, keys, temporary] = [join(folder, ".claude"), join(folder, ".config", "svc-gate"), join(folder, "tmp")];
  for (const each of [own, keys, temporary]) mkdirSync(each, { recursive: true });
  for (const each of [folder, own, temporary]) chmodSync(each, 0o777);
  writeFileSync(join(keys, "claude-code.key"), key, { mode: 0o600 });
  const env = { HOME: folder, TMPDIR: temporary, PATH: process.env["PATH"] ?? "" };
  const options: AgentOptions = { env, cwd: folder };
  return {
    folder,
    settings: async (...words) => {
      const all = ["hook", "install", "--agent", "claude-code", "--url", address, "--print", ...words];
      const { code, stdout, stderr } = await runAgent(all, options);
      assert.equal(code, 0, stderr);
      return stdout;
    },
    open: async (settings, wrapper) => {
      if (wrapper === undefined) writeFileSync(join(own, "settings.json"), settings);
      const words = ["doctor", "--agent", "claude-code", "--host", host, "--yes", "--json"];
      const other = nobody === undefined ? {} : { uid: nobody };
      const as = wrapper === undefined ? other : { wrapper };
      const { stdout, stderr } = await runAgent(words, { ...options, ...as });
      const { results, version } = JSON.parse(stdout || assert.fail(stderr));
      t.diagnostic(`Claude Code ${version}`);
      for (const { case: name, trouble } of results) assert.equal(trouble, null, `${name}: ${trouble}`);
      return results.filter(({ closed }: any) => !closed).map(({ case: name }: any) => name);
    },
  };
}

suite("svc-gate doctor and Claude Code", { concurrency: 2, skip: missing() ?? false }, () => {
  for (const form of ["command", "http"])
    test(`with the user's settings as ${form}, only a trusted project and --bare are ways around`, async (t) => {
      const home = await makeHome(t);
      assert.deepEqual(await home.open(await home.settings("--form", form)), ["project-allows", "bare"]);
    });

  test("without grant mode, a call also runs without the hook and in a project that switches hooks off", async (t) => {
    const home = await makeHome(t);
    const settings = JSON.parse(await home.settings("--no-grant"));
    const open = await home.open(JSON.stringify({ ...settings, permissions: { allow: ["Bash", "Write"] } }));
    assert.deepEqual(open, ["no-hook", "project-off", "project-allows", "bare"]);
  });

  test("without the gate's hook, a BLOCK runs", async (t) => {
    const home = await makeHome(t);
    const open = await home.open(JSON.stringify({ permissions: { allow: ["Bash", "Write"] } }));
    assert.deepEqual(open.slice(0, 2), ["block", "block-write"]);
  });

  test("a hook whose failure does not block lets calls run while the gate is lost", async (t) => {
    const home = await makeHome(t);
    const settings = (await home.settings("--no-grant", "--form", "http")).replaceAll(
      '"onFailure": "block"',
      '"once": false',
    );
    const allowing = { ...JSON.parse(settings), permissions: { allow: ["Bash", "Write"] } };
    const open = await home.open(JSON.stringify(allowing));
    for (const name of ["closed", "broken", "empty"]) assert.ok(open.includes(name), `${name}: ${open.join()}`);
  });

  test("each tool that the host offers is in the ready contract, or its page says why not", async (t) => {
    const home = await makeHome(t);
    const other = nobody === undefined ? {} : { uid: nobody };
    const env = { HOME: home.folder, TMPDIR: join(home.folder, "tmp"), PATH: process.env["PATH"] ?? "" };
    const words = ["doctor", "--agent", "claude-code", "--host", host, "--tools"];
    const { code, stdout, stderr } = await runAgent(words, { env, cwd: home.folder, ...other });
    assert.equal(code, 0, stderr);
    const { version, tools } = JSON.parse(stdout);
    const refused = assertKnown("claude-code", version, tools);
    assert.notDeepEqual(refused, [], "positive control: the page names tools too");
    for (const name of ["Bash", "Edit", "Read", "Write"]) {
      const found = tools.find((each: any) => each.name === name);
      assert.deepEqual(found?.inputSchema.type, "object", name);
    }
  });

  test("with the machine's settings, nothing runs without the gate's ALLOW", async (t) => {
    const home = await makeHome(t);
    const script = join(root, "adapters", "conformance", "drivers", "managed.sh");
    const file = join(home.folder, "managed.json");
    const user = ["setpriv", "--reuid", String(nobody), "--regid", String(nobody), "--clear-groups"];
    const managed = ["unshare", "-m", "sh", script, file, "/etc/claude-code/managed-settings.json"];
    const wrapper = [...managed, ...user];
    writeFileSync(file, "{}");
    if (nobody === undefined || spawnSync(managed[0] ?? "", [...managed.slice(1), "true"]).status !== 0)
      return t.skip("only root can have the machine's settings in a namespace of its own");
    for (const form of ["command", "http"]) {
      writeFileSync(file, await home.settings("--scope", "managed", "--form", form));
      assert.deepEqual(await home.open("", wrapper), [], form);
    }
    return undefined;
  });
});

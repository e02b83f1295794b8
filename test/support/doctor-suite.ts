/** Tests of `svc-gate doctor` with released hosts, for files that drive some of them each. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { installed } from "../../adapters/conformance/hosts.ts";
import { runAgent, type AgentRun } from "./agent.ts";
import { key, root, startGate, temporaryFolder } from "./gate.ts";
import { assertKnown } from "./host-tools.ts";

/** The doctor refuses root, so root becomes another user. */
const nobody = process.getuid?.() === 0 ? 65534 : undefined;
/** Where npm installs the released hosts. */
export const modules: string = join(installed("hosts"), "node_modules");

/** A released host, and what the doctor finds about it. */
export interface DoctoredHost {
  readonly program: string;
  /** The gate's name of the tool for commands. */
  readonly shell: string;
  /** Below the home folder. */
  readonly file: string;
  /** What is open with the settings of the user alone. */
  readonly open: readonly string[];
  /** Settings that allow everything, and have no hook. */
  readonly without: object;
  /** What is closed even so. */
  readonly closedWithout: readonly string[];
}

function missing(program: string): string | undefined {
  if (!existsSync(program)) return "the host is not installed: run npm run hosts";
  if (nobody === undefined) return undefined;
  const words = ["--reuid", String(nobody), "--regid", String(nobody), "--clear-groups", "test", "-r", program];
  return spawnSync("setpriv", words).status === 0 ? undefined : "another user cannot read this folder";
}

interface Doctor {
  /** What `doctor --tools` prints. */
  readonly tools: () => Promise<AgentRun>;
  /** The settings that the page of the host or `hook install` gives. */
  readonly settings: () => Promise<string>;
  readonly results: (settings: string) => Promise<readonly { readonly case: string; readonly closed: boolean }[]>;
}

async function doctorFor(t: TestContext, agent: string, { program, file }: DoctoredHost): Promise<Doctor> {
  const { address } = await startGate(t);
  const home = temporaryFolder(t);
  const [path, temporary] = [join(home, file), join(home, "tmp")];
  for (const folder of [dirname(path), temporary]) mkdirSync(folder, { recursive: true });
  for (const folder of [home, temporary]) chmodSync(folder, 0o777);
  const keyFile = join(home, "key");
  writeFileSync(keyFile, key, { mode: 0o600 });
  const options = { env: { HOME: home, TMPDIR: temporary, PATH: process.env["PATH"] ?? "" }, cwd: home };
  const as = nobody === undefined ? {} : { uid: nobody };
  return {
    tools: () => runAgent(["doctor", "--agent", agent, "--host", program, "--tools"], { ...options, ...as }),
    settings: async () => {
      if (agent === "opencode") return JSON.stringify(opencodeSettings(keyFile));
      const words = ["hook", "install", "--agent", agent, "--url", address, "--key-file", keyFile, "--print"];
      const { code, stdout, stderr } = await runAgent(words, { ...options, env: { ...options.env, HOME: home } });
      assert.equal(code, 0, stderr);
      return stdout;
    },
    results: async (settings) => {
      writeFileSync(path, settings);
      const words = ["doctor", "--agent", agent, "--host", program, "--yes", "--json"];
      const { stdout, stderr } = await runAgent(words, { ...options, ...as });
      const { results, version } = JSON.parse(stdout || assert.fail(stderr));
      t.diagnostic(`${agent} ${version}`);
      for (const { case: name, trouble } of results) assert.equal(trouble, null, `${name}: ${trouble}`);
      return results;
    },
  };
}

/** As docs/hosts/opencode.md says. */
function opencodeSettings(keyFile: string): object {
  const plugin = pathToFileURL(join(root, "adapters", "opencode.mjs")).href;
  return { permission: { "*": "deny" }, plugin: [[plugin, { url: "https://gate.example", keyFile }]] };
}

/** Lets the doctor drive the host with its settings, and without them. */
export function testDoctor(agent: string, host: DoctoredHost): void {
  suite(`svc-gate doctor and ${agent}`, { skip: missing(host.program) ?? false }, () => {
    test("with the user's settings, only the known ways around are open", async (t) => {
      const { settings, results } = await doctorFor(t, agent, host);
      const found = await results(await settings());
      assert.deepEqual(
        found.flatMap((each) => (each.closed ? [] : [each.case])),
        host.open,
      );
    });

    test("without the gate's hook, a BLOCK runs, or the host itself runs nothing", async (t) => {
      const { results } = await doctorFor(t, agent, host);
      const found = await results(JSON.stringify(host.without));
      assert.deepEqual(
        found.flatMap((each) => (each.closed ? [each.case] : [])),
        host.closedWithout,
      );
    });

    test("each tool that the host offers is in the ready contract, or its page says why not", async (t) => {
      const { tools } = await doctorFor(t, agent, host);
      const { code, stdout, stderr } = await tools();
      assert.equal(code, 0, stderr);
      const listed = JSON.parse(stdout);
      assert.equal(listed.agent, agent);
      assertKnown(agent, listed.version, listed.tools);
      const more = [...listed.tools, { name: "no_such_tool" }];
      assert.throws(() => assertKnown(agent, listed.version, more), /no_such_tool/, "positive control");
      const shell = listed.tools.find(({ name }: any) => name === host.shell);
      assert.ok("command" in shell.inputSchema.properties, host.shell);
      assert.equal(/the gate is not asked about them: .*write_stdin/.test(stderr), agent === "codex");
    });
  });
}

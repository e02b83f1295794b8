/**
 * Goal: the blocks of shell commands in the documents work as they are printed. Method: every block of every page is in one
 * of three tables: another test runs it, it is not run for a reason, or this test runs it here, in a reader's clone with a
 * small ledger. Only ports and the folder /srv differ. A command in no table, or a row without its command, is a failure.
 */
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { before, suite, test, type TestContext } from "node:test";
import { freePort } from "../../support/free-port.ts";
import { control } from "../../support/controls/control.ts";
import { root, temporaryFolder } from "../../support/gate.ts";
import { fencedBlocks, hasProgram, Shell, splitScript } from "../../support/page-commands.ts";
import { newFolder } from "../../support/ledger-fixture.ts";
import { ShownPage } from "../../support/shown-page.ts";
import { trackedPaths } from "../../support/tracked.ts";

/** The test that runs the blocks of a page. */
const elsewhere: Readonly<Record<string, string>> = {
  "README.md": "test/repository/docs/readme-commands.test.ts",
  "docs/faq.md": "test/repository/docs/tutorial.test.ts",
  "docs/guides/anchors.md": "test/process/collected.test.ts",
  "docs/guides/deploy.md": "test/repository/deploy/commands.test.ts",
  "docs/guides/proofs.md": "test/repository/docs/proofs-by-hand.test.ts",
  "docs/hosts/claude-code.md": "test/repository/docs/setup-blocks.test.ts",
  "docs/hosts/codex.md": "test/repository/docs/setup-blocks.test.ts",
  "docs/hosts/copilot-cli.md": "test/repository/docs/setup-blocks.test.ts",
  "docs/hosts/gemini-cli.md": "test/repository/docs/setup-blocks.test.ts",
  "docs/tutorial.md": "test/repository/docs/tutorial.test.ts",
};

const minutes = "it takes minutes";
const network = "it needs the network";
const postgres = "it needs a PostgreSQL server; test/postgres/deploy.test.ts runs the command";
const host = "it starts the released host, which npm has to fetch; test/process/hosts/doctor-hosts.test.ts runs it";
const server = "it needs a server of MCP; test/process/agent/mcp-http.test.ts runs the command";

/** Each command that no test runs as it is printed, and why. */
const notRun: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "CONTRIBUTING.md": {
    'git clone "$REPOSITORY" svc-gate && cd svc-gate': network,
    "npm test": minutes,
    "npm run test:unit": minutes,
    "npm run check": minutes,
    "SVC_DIFFERENTIAL_SHELL=100000 npm test -- test/faults/campaigns/shell.test.ts": minutes,
    "SVC_DIFFERENTIAL_SQL=50000 SVC_DIFFERENTIAL_SEED=7 npm test -- test/faults/campaigns/sql.test.ts": minutes,
  },
  "bench/peers/README.md": {
    "npm run bench -- peers --setup": network,
    "npm run bench -- peers --verify": "it needs the engines that --setup fetches",
    "npm run bench -- peers": "it needs the engines that --setup fetches",
  },
  "docs/evidence/durability.md": {
    "npm run test:all": minutes,
    "TAMPER_BITS=all node --test --test-timeout=7200000 test/faults/tamper/ledger.test.ts test/faults/tamper/export-bits.test.ts":
      minutes,
  },
  "docs/evidence/judgement.md": { "npm run bench -- sessions": minutes },
  "docs/evidence/scale.md": {
    "npm run bench -- check": minutes,
    "npm run bench -- scale": "test/repository/bench/scale.test.ts compares its output with the page",
  },
  "docs/evidence/third-party.md": { "npm run third-party": network, "npm run test:all": minutes },
  "docs/faq.md": { "npm run -s bench -- check": minutes },
  "docs/guides/grants.md": {
    "svc-gate grants create apr_12_... --key-file anna.key --for 30m --uses 5 --amount 500 --preview":
      "the page shows a part of a contract; test/process/cli/grants-command.test.ts runs the command",
  },
  "docs/guides/notifications.md": {
    'curl -N http://127.0.0.1:8787/events -H "Authorization: Bearer $KEY"': "it does not end",
  },
  "docs/guides/packs.md": {
    "svc-gate commands --drift --contract contracts/packs/own.yaml":
      "it needs the program; test/unit/commands/drift.test.ts runs the command",
  },
  "docs/guides/postgresql.md": {
    "SVC_DATABASE_URL='postgres://svc_gate_app:...@db.example.org/gate?sslmode=verify-full&sslrootcert=/srv/ca.crt' svc-gate serve":
      postgres,
    "svc-gate migrate --database-url postgres://svc_gate_owner:...@db.example.org/gate --role svc_gate_app": postgres,
    "svc-gate migrate --database-url postgres://svc_gate_owner:...@db.example.org/gate --role svc_gate_app --first-key FILE":
      postgres,
  },
  "docs/guides/testing.md": {
    "svc-gate test --watch": "it does not end; test/process/cli/test-command-watch.test.ts runs it",
  },
  "docs/guides/verify.md": {
    "npm run -s svc-gate -- verify --deep --database acme": "it needs a PostgreSQL server",
  },
  "docs/hosts/litellm.md": {
    "python3 -m venv litellm && litellm/bin/pip install 'litellm[proxy]==1.108.7'": network,
    "node adapters/conformance/repros/litellm-streamed.mjs litellm/bin/litellm":
      "it needs the program of the line above",
  },
  "docs/hosts/mcp.md": {
    "svc-gate mcp accept --name crm --upstream https://crm.example/mcp": server,
    "SVC_URL=... SVC_KEY_FILE=... SVC_MCP_KEY_FILE=... svc-gate mcp --name crm --upstream https://crm.example/mcp --port 8931":
      server,
  },
  "docs/hosts/opencode.md": {
    "svc-gate doctor --agent opencode": host,
    "svc-gate import-tools --agent opencode --contract contracts/hosts/opencode.yaml --check": host,
  },
};

/** A reader's clone with a ledger. */
interface Scene {
  readonly shell: Shell;
  readonly folder: string;
  readonly url: string;
  /** Variables that the page uses. */
  readonly env: Record<string, string>;
}

interface Run {
  readonly prepare?: (scene: Scene) => Promise<void> | void;
  /** What happens before a command; it may return the command with another id. */
  readonly before?: Readonly<Record<string, (scene: Scene, command: string) => Promise<string> | string>>;
  /** Programs that not every machine has. */
  readonly needs?: readonly string[];
  /** Does each block start with the same ledger? */
  readonly isFresh?: boolean;
}

const serves = async ({ shell, env, folder }: Scene): Promise<void> => {
  await shell.serve("svc-gate serve");
  env["SVC_API_KEY"] = readFileSync(join(folder, "data", "first-key"), "utf8").trim();
};

/** Exports the ledger, and keeps its verifier's key for the page's commands. */
const exportsTo =
  (path: string) =>
  ({ shell, env }: Scene): void => {
    mkdirSync(shell.here("/srv/"), { recursive: true });
    const [, vkey = ""] = /--key (\S+)/.exec(shell.run(`svc-gate export ${path}`)) ?? [];
    env["VKEY"] = vkey;
  };

/** Parks another call, and puts its id into the command. */
async function parked({ shell }: Scene, command: string): Promise<string> {
  const page = readFileSync(join(root, "docs", "guides", "approvals.md"), "utf8");
  const asking = fencedBlocks(page).find(({ text }) => text.startsWith("curl -s http://127.0.0.1:8787/check"));
  seq += 1;
  const answer = JSON.parse(shell.run((asking?.text ?? "").replace('"A-2"', `"A-${seq}"`)));
  return command.replace(/apr_12_\w+/, answer.approval.id);
}
let seq = 2;

/** The pages whose blocks are run here. */
const runs: Readonly<Record<string, Run>> = {
  "docs/contracts/customer-support.md": {},
  "docs/findings/no-approver.md": {},
  "docs/guides/approvals.md": {
    needs: ["curl"],
    prepare: ({ folder }) => {
      rmSync(join(folder, "data"), { recursive: true });
      mkdirSync(join(folder, "refunds"));
      const contract = new ShownPage("guides/approvals.md", "approvals").block("refunds.yaml");
      writeFileSync(join(folder, "refunds", "refunds.yaml"), contract);
    },
    before: Object.fromEntries(
      ["show", "approve", "deny   ", "cancel "].map((act) => [`svc-gate approvals ${act} `, parked]),
    ),
  },
  "docs/guides/backup.md": {
    prepare: ({ shell }) => void mkdirSync(shell.here("/srv/backup"), { recursive: true }),
    before: {
      "svc-gate resume --after-restore": ({ shell, folder }, command) => {
        shell.run("svc-gate persons add anna");
        const files = readdirSync(join(folder, "data")).filter((name) => name.startsWith("ledger.db"));
        for (const name of files) rmSync(join(folder, "data", name));
        return command;
      },
    },
  },
  "docs/guides/changes.md": { prepare: serves },
  "docs/guides/console.md": {},
  "docs/guides/erasure.md": { isFresh: true },
  "docs/guides/export.md": { needs: ["jq", "python3"], prepare: exportsTo("/srv/export") },
  "docs/guides/keys.md": {},
  "docs/guides/observe.md": {},
  "docs/guides/outcomes.md": { needs: ["curl"], prepare: serves },
  "docs/guides/postgresql.md": { needs: ["openssl"] },
  "docs/guides/sign-in.md": {},
  "docs/guides/stop.md": {
    before: {
      "svc-gate stop --lift": ({ shell }, command) => {
        shell.run("svc-gate stop --why test --tool pay.send");
        return command;
      },
    },
  },
  "docs/guides/tenants.md": {
    prepare: ({ folder, shell }) => {
      const page = readFileSync(join(root, "docs", "guides", "tenants.md"), "utf8");
      const [file] = fencedBlocks(page).filter(({ kind }) => kind === "yaml");
      writeFileSync(join(folder, "tenants.yaml"), file?.text ?? "");
      for (const id of ["acme", "blue"]) shell.run(`svc-gate init ${id}`);
    },
  },
  "docs/guides/testing.md": {
    prepare: ({ folder }) => {
      rmSync(join(folder, "contracts"));
      mkdirSync(join(folder, "contracts"));
      const page = new ShownPage("guides/testing.md", "testing");
      for (const name of ["shop.yaml", "shop.test.yaml"])
        writeFileSync(join(folder, "contracts", name), page.block(name));
    },
  },
  "docs/guides/verify.md": { prepare: exportsTo("./export") },
  "docs/hosts/opencode.md": {},
};

/** The contract of the small ledger: it has the tools, members and counters that the pages name. */
const contract = `contract: payments
platform:
  type: object
  additionalProperties: false
  required: [owner]
  properties: { owner: { type: string } }
sensitive: [input.address, input.customer.email, platform.owner]
tools:
  ship:
    input:
      type: object
      additionalProperties: false
      required: [usd]
      properties:
        usd: { type: number, minimum: 0 }
        address: { type: string }
        customer: { type: object, additionalProperties: false, properties: { email: { type: string } } }
    requires: platform.present
    otherwise: ALLOW
counters:
  payees: { of: ship, per: key, sum: input.usd }
rules:
  - { rule: budget, on: ship, when: counters.payees > 1000000, verdict: BLOCK, reason: too much }
  - { rule: closed, on: ship, when: platform.owner == "nobody", verdict: BLOCK, reason: closed }
`;
const mandate = "mandate: pages\ncontracts: [contract.yaml]\n";

/** A folder of programs, and a data folder with a small ledger. */
const made = { programs: newFolder(), data: "" };

function shellIn(t: { readonly after: (clean: () => Promise<void>) => void }, folder: string, port: string): Shell {
  const paths = [
    ["127.0.0.1:8787", `127.0.0.1:${port}`],
    ["/srv/", join(folder, "srv", "/")],
  ] as const;
  const path = [made.programs, dirname(process.execPath), process.env["PATH"] ?? ""].join(delimiter);
  return new Shell(t, folder, paths, { SVC_PORT: port, SVC_LOG: "warn", PATH: path, HOME: folder });
}

/** Makes a ledger in which each command of the pages finds its receipts: two sessions of one key, rows 3 to 47. */
async function makeLedger(): Promise<void> {
  const entry = join(root, "bin", "svc-gate.mjs");
  writeFileSync(join(made.programs, "svc-gate"), `#!/bin/sh\nexec node '${entry}' "$@"\n`, { mode: 0o755 });
  const folder = newFolder();
  const port = String(await freePort());
  const shell = shellIn({ after: () => undefined }, folder, port);
  writeFileSync(join(folder, "contract.yaml"), contract);
  writeFileSync(join(folder, "mandate.yaml"), mandate);
  await shell.serve("svc-gate serve");
  const authorization = `Bearer ${shell.run("svc-gate keys create agent --scopes check --quiet").trim()}`;
  for (let row = 2; row <= 46; row += 1) {
    const call = { usd: 1, address: "1 Street", customer: { email: "anna@example.com" } };
    const session = row <= 30 ? "run-1" : "run-2";
    const facts = { owner: "anna" };
    const body = JSON.stringify({ tool_name: "ship", tool_input: call, session_id: session, platform_state: facts });
    const headers = { authorization, "content-type": "application/json" };
    const answer = await fetch(`http://127.0.0.1:${port}/check`, { method: "POST", headers, body });
    assert.equal(answer.status, 200, await answer.text());
  }
  await shell.stop();
  made.data = join(folder, "data");
}

function copyLedger(folder: string): void {
  rmSync(join(folder, "data"), { recursive: true, force: true });
  cpSync(made.data, join(folder, "data"), { recursive: true });
}

async function newScene(t: TestContext): Promise<Scene> {
  const folder = temporaryFolder(t);
  const own = ["data", "mandate.yaml", "export", "refunds"];
  for (const name of readdirSync(root))
    if (!name.startsWith(".") && !own.includes(name)) symlinkSync(join(root, name), join(folder, name));
  writeFileSync(join(folder, "contract.yaml"), contract);
  writeFileSync(join(folder, "mandate.yaml"), mandate);
  copyLedger(folder);
  const port = String(await freePort());
  const url = `http://127.0.0.1:${port}`;
  return { shell: shellIn(t, folder, port), folder, url, env: { SVC_GATE: url } };
}

/** Returns the blocks of a page as lists of commands. */
function blocksOf(path: string, page = readFileSync(join(root, path), "utf8")): readonly (readonly string[])[] {
  return fencedBlocks(page)
    .filter(({ kind }) => kind === "sh")
    .map(({ text }) => splitScript(text));
}

/** Runs one block in one shell, as a reader pastes it, except around a server and around a step of the table. */
async function runBlock(scene: Scene, { before: steps = {} }: Run, commands: readonly string[]): Promise<void> {
  let lines: string[] = [];
  const flush = (): void => {
    if (lines.length > 0) scene.shell.run(`set -e\n${lines.join("\n")}`, 0, scene.env);
    lines = [];
  };
  for (const command of commands) {
    const step = Object.entries(steps).find(([start]) => command.startsWith(start))?.[1];
    const isServer = /(?:^| )(?:npm start|svc-gate serve)\b/.test(command);
    if (step !== undefined || isServer) flush();
    if (isServer) await scene.shell.serve(command, scene.env);
    else lines.push(step === undefined ? command : await step(scene, command));
  }
  flush();
}

async function runPage(t: TestContext, path: string, run: Run): Promise<void> {
  const scene = await newScene(t);
  await run.prepare?.(scene);
  const skipped = notRun[path] ?? {};
  const blocks = blocksOf(path).map((block) => block.filter((command) => !Object.hasOwn(skipped, command)));
  for (const block of blocks) {
    if (run.isFresh === true) copyLedger(scene.folder);
    await runBlock(scene, run, block);
  }
  await scene.shell.stop();
}

/** Returns one line for each command in no table, and for each row of the tables that is stale. */
function strayRows(pages: Readonly<Record<string, readonly string[]>>): readonly string[] {
  const stray = Object.entries(pages).flatMap(([path, commands]) => {
    const isRun = Object.hasOwn(runs, path) || Object.hasOwn(elsewhere, path);
    return commands
      .filter((command) => !isRun && !Object.hasOwn(notRun[path] ?? {}, command))
      .map((command) => `${path}: no table says who runs \`${command}\``);
  });
  const rows = Object.entries(notRun).flatMap(([path, commands]) =>
    Object.keys(commands)
      .filter((command) => !(pages[path] ?? []).includes(command))
      .map((command) => `${path}: \`${command}\` is not on the page`),
  );
  const gone = [...Object.keys(runs), ...Object.keys(elsewhere)].filter((path) => (pages[path] ?? []).length === 0);
  return [...stray, ...rows, ...gone.map((path) => `${path} has no block of commands`)];
}

function commandsByPage(): Record<string, readonly string[]> {
  const paths = trackedPaths().filter((path) => path.endsWith(".md"));
  const found = paths.map((path) => [path, blocksOf(path).flat()] as const);
  return Object.fromEntries(found.filter(([, commands]) => commands.length > 0));
}

suite("the blocks of shell commands, when they are run", { concurrency: 2 }, () => {
  before(makeLedger);

  for (const [path, run] of Object.entries(runs)) {
    const missing = ["sh", ...(run.needs ?? [])].filter((name) => !hasProgram(name));
    const skip = missing.length > 0 ? `there is no ${missing.join(", ")} on this machine` : false;
    test(`the blocks of ${path} work as they are printed`, { skip }, (t) => runPage(t, path, run));
  }

  test("the tables name each command of the documents once, and no other", () => {
    const pages = commandsByPage();
    assert.deepEqual(strayRows(pages), []);
    const doctored = { ...pages, "docs/hosts/litellm.md": ["npm run new"], "docs/guides/keys.md": [] };
    assert.equal(
      strayRows(doctored).length,
      4,
      "positive control: a new command, two stale rows, a page without blocks",
    );
  });

  test("the tests that the tables name exist, and name the page", () => {
    for (const [path, file] of Object.entries(elsewhere)) {
      const name = /([^/]+)\.md$/.exec(path)?.[1] ?? "";
      assert.ok(readFileSync(join(root, file), "utf8").includes(name), `${file} does not name ${name}`);
    }
    const named = Object.values(notRun).flatMap(
      (rows) =>
        Object.values(rows)
          .join(" ")
          .match(/\btest\/\S+\.ts\b/g) ?? [],
    );
    for (const file of named) assert.ok(existsSync(join(root, file)), file);
  });

  control("positive control: a command that fails in the middle of a block is found", async (t) => {
    const scene = await newScene(t);
    const block = ["svc-gate keys list", "svc-gate keys rotate nobody", "svc-gate keys list"];
    await assert.rejects(runBlock(scene, {}, block), /nobody/);
  });
});

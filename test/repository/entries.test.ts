/**
 * Goal: a command, a hook and a thread load only what they need, so that each starts quickly. Method: the parser reads
 * which modules `svc-gate` loads when it is called, and all that these import at once. The program itself counts what
 * it loads for `version`. Controls: `serve` does load the HTTP server, and a program with an import too many is noticed.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { suite, test } from "node:test";
import { control } from "../support/controls/control.ts";
import { importsOf, loadedWith, packageSources } from "../support/imports.ts";
import type { Mutation } from "../support/mutation/mutate.ts";
import { mutatedEnvironment, preload } from "../support/mutation/sources.ts";
import { root } from "../support/tracked.ts";

const program = "packages/svc-gate/src/main.ts";
const ownMax = 120;

/** The modules that a file of the packages loads later: commands, threads, and what a command needs in some cases. */
const entries = packageSources
  .flatMap((path) => importsOf(path).filter(({ isLater }) => isLater))
  .map(({ to }) => to)
  .filter((to) => to.endsWith(".ts"));

/** They start a gate. */
const serving = ["packages/gate/src/cli/serve.ts", "packages/gate/src/server/start/mod.ts"];

/** Runs `svc-gate version`, and returns the files that it loads. */
function loadedByVersion(mutations: readonly Mutation[] = []): readonly string[] {
  const count =
    'import { registerHooks } from "node:module"; registerHooks({ load: (url, context, next) => ' +
    "(console.error(`loads ${url}`), next(url, context)) });";
  const { stderr, status } = spawnSync(
    process.execPath,
    ["--import", preload, "--import", `data:text/javascript,${encodeURIComponent(count)}`, program, "version"],
    { cwd: root, env: { ...process.env, ...mutatedEnvironment(mutations) }, encoding: "utf8" },
  );
  assert.equal(status, 0, stderr);
  return Array.from(stderr.matchAll(/^loads file:\/\/(.*)$/gm), ([, path = ""]) => path);
}

const isOwn = (path: string): boolean => path.includes("/packages/") && !path.includes("/node_modules/");
const isFastify = (path: string): boolean => path.includes("/node_modules/fastify/");

suite("what an entry loads", () => {
  test(`svc-gate version loads at most ${ownMax} own files and no HTTP server`, (t) => {
    const loaded = loadedByVersion();
    const own = loaded.filter(isOwn);
    t.diagnostic(`${own.length} own files, ${loaded.length} in all`);
    assert.ok(own.length > 5 && own.length <= ownMax, own.join("\n"));
    assert.deepEqual(loaded.filter(isFastify), []);
    const read = [...loadedWith(program)].filter((path) => path.startsWith("packages/"));
    assert.deepEqual(own.map((path) => path.slice(path.lastIndexOf("/packages/") + 1)).toSorted(), read.toSorted());
  });

  control("positive control: a program that loads the settings of a gate for each command is noticed", () => {
    const mutations = [
      { within: "addServe", module: "svc-gate/src/main", find: "name !== serving.name()", put: "false" },
    ];
    const loaded = loadedByVersion(mutations);
    assert.ok(loaded.filter(isOwn).length > ownMax);
    assert.ok(loaded.some(isFastify));
  });

  test("no command, hook or thread loads the HTTP server, except a gate that serves", () => {
    assert.ok(entries.length > 40, entries.join("\n"));
    const loading = entries.filter((entry) => loadedWith(entry).has("fastify"));
    assert.deepEqual([...new Set(loading)].toSorted(), serving);
  });
});

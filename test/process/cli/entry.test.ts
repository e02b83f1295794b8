import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { nodeOf } from "../../../clients/conformance/runtimes.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const path = (name: string): string => fileURLToPath(new URL(`../../../${name}`, import.meta.url));
const { version } = JSON.parse(readFileSync(path("packages/svc-gate/package.json"), "utf8")) as {
  readonly version: string;
};

// Goal: users of an older Node still get the gate. Method: the entry itself, under each installed runtime.
for (const major of [20, 22, 24]) {
  test(`svc-gate runs under Node ${major}, on the runtime that the package brings`, (t) => {
    const runtime = nodeOf(major);
    if (runtime === undefined) return t.skip(`there is no Node ${major} for this platform`);
    const { stdout, stderr, status } = spawnSync(runtime, [path("bin/svc-gate.mjs"), "version"], { encoding: "utf8" });
    assert.deepEqual({ stdout, stderr, status }, { stdout: `${version}\n`, stderr: "", status: 0 });
  });
}

test("npm run svc-gate resolves paths in the user's folder, not in the package's folder", () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-entry-"));
  try {
    const tools = "tools: { own.tool: { input: { type: object, additionalProperties: false }, otherwise: ALLOW } }";
    writeFileSync(join(folder, "mandate.yaml"), "mandate: own\ncontracts: [own.yaml]\n");
    writeFileSync(join(folder, "own.yaml"), `contract: own\n${tools}\n`);
    const typed = { INIT_CWD: folder, npm_lifecycle_event: "svc-gate" };
    const check = (env: Readonly<Record<string, string>>): string =>
      spawnSync(process.execPath, [path("bin/svc-gate.mjs"), "check"], {
        cwd: path("."),
        env: { ...process.env, ...env },
        encoding: "utf8",
      }).stdout;
    assert.match(check(typed), /own\.tool/);
    assert.match(
      check({ ...typed, npm_lifecycle_event: "start" }),
      /payment\.send/,
      "npm start serves the package's own",
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

// Node's report names the version of glibc; on musl it has none. The test replaces that report and Node's version.
test("setup refuses a Linux without glibc before it installs anything", { tags: ["first-use-23"] }, (t) => {
  if (process.platform !== "linux") return t.skip("only Linux has more than one C library");
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-entry-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "tools"));
  cpSync(path("tools/setup.mjs"), join(folder, "tools", "setup.mjs"));
  writeFileSync(join(folder, "package.json"), '{ "name": "empty", "version": "1.0.0" }');
  const lock = {
    name: "empty",
    version: "1.0.0",
    lockfileVersion: 3,
    packages: { "": { name: "empty", version: "1.0.0" } },
  };
  writeFileSync(join(folder, "package-lock.json"), JSON.stringify(lock));
  const setUp = (...words: readonly string[]): { readonly status: number | null; readonly stderr: string } =>
    spawnSync(process.execPath, [...words, join(folder, "tools", "setup.mjs")], { encoding: "utf8" });
  const musl =
    "data:text/javascript,Object.defineProperty(process, 'versions', { value: { node: '20.0.0' } });" +
    "process.report.getReport = () => ({ header: {} });";
  const refused = setUp("--import", musl);
  assert.equal(refused.status, 1);
  says("no-glibc", refused.stderr);
  assert.deepEqual(readdirSync(folder).toSorted(), ["package-lock.json", "package.json", "tools"]);
  assert.doesNotMatch(refused.stderr, /installing the packages/);
  const done = setUp();
  assert.match(done.stderr, /installing the packages/, "positive control: with glibc it starts");
  return undefined;
});

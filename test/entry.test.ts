import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const path = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url));
const { version } = JSON.parse(readFileSync(path("package.json"), "utf8")) as { readonly version: string };

// The goal: whoever has an older Node still gets the gate. The method: the entry itself, under each runtime there is.
for (const major of [20, 22, 24]) {
  test(`the entry runs under Node ${major}, on the runtime that the package brings`, (t) => {
    const runtime = path(`clients/conformance/nodes/node_modules/node${major}/bin/node`);
    if (!existsSync(runtime)) return t.skip(`there is no Node ${major} for this platform`);
    const { stdout, stderr, status } = spawnSync(runtime, [path("bin/svc-gate.mjs"), "version"], { encoding: "utf8" });
    assert.deepEqual({ stdout, stderr, status }, { stdout: `${version}\n`, stderr: "", status: 0 });
  });
}

test("as an npm script it reads the paths where they are typed, not where the package lies", () => {
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

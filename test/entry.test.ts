import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
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

/**
 * Goal: the Python client, its asyncio twin and the adapters install as a package of single files. Method: pip installs the
 * folder into an environment of the oldest installed Python, and a program imports it there. The test is skipped without
 * Python 3.9 or later, pip or its index.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pythonOf } from "../../../clients/conformance/runtimes.ts";
import { root, temporaryFolder } from "../../support/gate.ts";

const folder = join(root, "clients", "python");

test("pip installs the Python client and its asyncio twin, and both answer BLOCK without a gate", (t) => {
  const python = [9, 10, 11, 12, 13].map(pythonOf).find((program) => program !== undefined);
  if (python === undefined) return t.skip("there is no Python 3.9 or later");
  const home = temporaryFolder(t);
  cpSync(folder, join(home, "clients", "python"), { recursive: true });
  cpSync(join(root, "adapters"), join(home, "adapters"), {
    recursive: true,
    filter: (each) => !/conformance/.test(each),
  });
  const pip = { PIP_DISABLE_PIP_VERSION_CHECK: "1", PIP_RETRIES: "1" };
  // pip leaves a file of certificates in its temporary folder.
  const env = { ...process.env, ...pip, PYTHONDONTWRITEBYTECODE: "1", TMPDIR: home };
  const run = (program: string, ...args: readonly string[]) =>
    spawnSync(program, args, { cwd: home, env, encoding: "utf8", timeout: 240_000 });
  const made = run(python, "-m", "venv", "environment");
  if (made.status !== 0) return t.skip(`python -m venv: ${made.stderr.trim()}`);
  const inside = join(home, "environment", process.platform === "win32" ? "Scripts" : "bin", "python");
  const installed = run(inside, "-m", "pip", "install", "--quiet", "--no-compile", join("clients", "python"));
  if (installed.error !== undefined) return t.skip(`pip could not install: ${installed.error.message}`);
  if (/No matching distribution found for hatchling|Failed to establish a new connection/.test(installed.stderr))
    return t.skip("pip cannot reach its index");
  assert.equal(installed.status, 0, installed.stderr);

  const program = `from importlib.metadata import files, metadata
import asyncio
from svc_gate import SvcGate
from svc_gate_async import AsyncGate
print(metadata("svc-gate")["Version"], metadata("svc-gate")["Requires-Python"], metadata("svc-gate")["Requires-Dist"])
print(sorted(str(each) for each in files("svc-gate") if not str(each).startswith("svc_gate-")))
print(SvcGate("http://127.0.0.1:1", retries=0).check("a", {}).verdict)
print(asyncio.run(AsyncGate("http://127.0.0.1:1", retries=0).check("a", {})).verdict)
`;
  const { version } = JSON.parse(readFileSync(join(root, "packages", "svc-gate", "package.json"), "utf8"));
  const { stdout, stderr } = run(inside, "-c", program);
  const adapters = readdirSync(join(root, "adapters")).filter((name) => name.endsWith(".py"));
  assert.ok(adapters.length >= 10, adapters.join());
  const modules = ["svc_gate.py", "svc_gate_async.py", ...adapters].toSorted().map((name) => `'${name}'`);
  assert.equal(stdout, `${version} >=3.9 None\n[${modules.join(", ")}]\nBLOCK\nBLOCK\n`, stderr);
  assert.deepEqual(
    readdirSync(folder)
      .filter((name) => name.endsWith(".py"))
      .toSorted(),
    ["hatch_build.py", "svc_gate.py", "svc_gate_async.py"],
  );
  return undefined;
});

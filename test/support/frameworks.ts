/** Asks adapters for Python in their frameworks: what a set-up answers, and which names the gate is asked about. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { installed, type folders } from "../../adapters/conformance/hosts.ts";
import { control } from "./controls/control.ts";
import { root, temporaryFolder } from "./gate.ts";
import type { Mutation } from "./mutation/mutate.ts";
import { mutatedPython } from "./mutation/python.ts";

const notInstalled = "the framework is not installed: run npm run hosts";

/** One change to an adapter. */
type Fault = readonly [file: string, mutation: Mutation];

/** An expression of the program, and a part of the line that it prints. */
type Line = readonly [expression: string, says: string];

const shared = `import asyncio, sys
from types import SimpleNamespace as Some
sys.path[:0] = [sys.argv[1]]
class Gate:
    def __init__(self):
        self.asked = []
    async def check(self, name, input, facts, approval):
        self.asked.append(name)
        return Some(verdict="ALLOW", escalated=False, unreached=False, approval=None, receipt=None, reason="fine", mode="enforce")
def pay():
    return "paid"
async def said(made):
    try:
        return str(await made)
    except Exception as error:
        return str(error)
`;

/** Runs the program in the folder's Python, and compares what it prints for each expression. */
export function check(
  t: TestContext,
  folder: (typeof folders)[number],
  program: string,
  lines: readonly Line[],
  adapters = join(root, "adapters"),
): void {
  const python = pythonOf(folder);
  if (!existsSync(python)) return t.skip(notInstalled);
  const prints = lines.map(([expression]) => `    print(await said(${expression}))`).join("\n");
  const text = `${shared}${program}\nasync def main():\n${prints}\nasyncio.run(main())`;
  const words = ["-B", "-W", "ignore", "-c", text, adapters];
  const { stdout, stderr } = spawnSync(python, words, { encoding: "utf8" });
  const found = stdout.trimEnd().split("\n");
  for (const [index, [expression, says]] of lines.entries())
    assert.ok(found[index]?.includes(says), `${expression}: ${found[index]}\n${stderr}`);
}

/** As `check`, as a test. Its positive control: with each fault the lines differ. */
export function testWithFaults(
  title: string,
  folder: (typeof folders)[number],
  program: string,
  lines: readonly Line[],
  faults: readonly Fault[],
): void {
  test(title, (t) => check(t, folder, program, lines));
  control(`positive control: ${title}: a broken adapter is noticed`, (t) => {
    const python = pythonOf(folder);
    if (!existsSync(python)) return t.skip(notInstalled);
    for (const [file, mutation] of faults) {
      const adapters = join(temporaryFolder(t), "adapters");
      cpSync(join(root, "adapters"), adapters, { recursive: true, filter: (path) => !path.endsWith("conformance") });
      writeFileSync(join(adapters, file), mutatedPython(python, join(root, "adapters", file), [mutation]));
      assert.throws(() => check(t, folder, program, lines, adapters), assert.AssertionError, JSON.stringify(mutation));
    }
    return undefined;
  });
}

function pythonOf(folder: (typeof folders)[number]): string {
  return join(installed(folder), ".venv", "bin", "python");
}

/** Asks adapters for Python in their frameworks: what a set-up answers, and which names the gate is asked about. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { installed, type folders } from "../../adapters/conformance/hosts.ts";
import { root } from "./gate.ts";

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
export function check(t: TestContext, folder: (typeof folders)[number], program: string, lines: readonly Line[]): void {
  const python = join(installed(folder), ".venv", "bin", "python");
  if (!existsSync(python)) return t.skip("the framework is not installed: run npm run hosts");
  const prints = lines.map(([expression]) => `    print(await said(${expression}))`).join("\n");
  const text = `${shared}${program}\nasync def main():\n${prints}\nasyncio.run(main())`;
  const words = ["-B", "-W", "ignore", "-c", text, join(root, "adapters")];
  const { stdout, stderr } = spawnSync(python, words, { encoding: "utf8" });
  const found = stdout.trimEnd().split("\n");
  for (const [index, [expression, says]] of lines.entries())
    assert.ok(found[index]?.includes(says), `${expression}: ${found[index]}\n${stderr}`);
}

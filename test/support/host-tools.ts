/** Compares the tools that a released host offers with the ready contract for it. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./gate.ts";

/**
 * Fails unless each tool is in the contract, or in a table of its page with the reason why it is refused.
 *
 * @returns the tools that only the page names
 */
export function assertKnown(
  agent: string,
  version: string,
  tools: readonly { readonly name: string }[],
): readonly string[] {
  const text = readFileSync(join(root, "contracts", "hosts", `${agent}.yaml`), "utf8");
  const [head = "", body = ""] = text.split("\ncontract: ");
  assert.ok(head.includes(` ${version},`), `the contract is not for version ${version}`);
  const [, section = ""] = body.split(/^tools:\n/m);
  const listed = new Set(Array.from(section.matchAll(/^ {2}(\w+):/gm), ([, name]) => name));
  const refused = refusedOnPage(agent);
  const others = tools.map(({ name }) => name).filter((name) => !listed.has(name));
  assert.ok(tools.length > 0);
  assert.deepEqual(
    others.filter((name) => !refused.has(name)),
    [],
  );
  return others;
}

/** The names in the first column of the page's own tables before its rules. */
function refusedOnPage(agent: string): ReadonlySet<string> {
  const page = readFileSync(join(root, "docs", "contracts", `${agent}.md`), "utf8");
  const [before = ""] = page.replace(/<!-- tools:[^]*?<!-- \/tools -->/, "").split("\n## Rules\n");
  const cells = Array.from(before.matchAll(/^\| ([^|]*) \|/gm), ([, cell = ""]) => cell);
  return new Set(cells.flatMap((cell) => Array.from(cell.matchAll(/`([^`]+)`/g), ([, name = ""]) => name)));
}

/** Compares the tools that a released host offers with the ready contract for it. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./gate.ts";

/**
 * Fails unless each tool is in the contract, or in its head with the reason why it is refused.
 *
 * @returns the tools that only the head names
 */
export function assertKnown(
  agent: string,
  version: string,
  tools: readonly { readonly name: string }[],
): readonly string[] {
  const text = readFileSync(join(root, "contracts", "hosts", `${agent}.yaml`), "utf8");
  const [head = "", body = ""] = text.split("\ncontract: ");
  assert.ok(head.includes(` ${version},`), `the contract is not for version ${version}`);
  const unknown = (known: string): readonly string[] =>
    tools.flatMap(({ name }) => (new RegExp(`\\b${name}\\b`).test(known) ? [] : [name]));
  const [, section = ""] = body.split(/^tools:\n/m);
  const listed = section.match(/^ {2}\w+:/gm)?.join(" ") ?? "";
  assert.ok(tools.length > 0);
  assert.deepEqual(unknown(`${head} ${listed}`), []);
  return unknown(listed);
}

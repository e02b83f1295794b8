/**
 * Goal: the agent's package runs on the oldest Node that it promises. Method: the tests of its commands run the built
 * package there (support/agent-program.ts); this test says which Node that is. Positive control: a function that this Node
 * lacks fails there.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { agentBin, agentNode } from "../../support/agent-program.ts";
import { control } from "../../support/controls/control.ts";
import { root } from "../../support/gate.ts";

const skip = agentNode === process.execPath ? "npm brings no Node 20 for this platform" : false;
const run = (...words: readonly string[]) => spawnSync(agentNode, words, { encoding: "utf8" });

test("the commands of the agent's package run on the first release of the Node that it promises", { skip }, () => {
  const { engines } = JSON.parse(readFileSync(join(root, "packages", "agent", "package.json"), "utf8"));
  assert.equal(`>=${run("-p", "process.versions.node.replace(/\\.0\\.0$/, '')").stdout.trim()}`, engines.node);
  for (const command of [["hook"], ["hook", "install"], ["mcp"], ["doctor"]]) {
    const { status, stdout, stderr } = run(agentBin(), ...command, "--help");
    assert.deepEqual([status, stderr], [0, ""], command.join(" "));
    assert.match(stdout, /^usage: svc-gate /);
  }
});

control("positive control: a function of a later Node fails there", { skip }, () => {
  assert.notEqual(run("-e", "Map.groupBy([], String)").status, 0);
  assert.equal(spawnSync(process.execPath, ["-e", "Map.groupBy([], String)"]).status, 0);
});

/**
 * Goal: `svc-gate commands --drift` names each option of a table that the installed program does not describe. Method:
 * two programs in a folder, which print a help.
 */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { findDrift } from "../../../packages/workbench/src/commands/pack-drift.ts";
import { tableOf } from "./kit.ts";

test("an option that no help names is found, and a program without help is not compared", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-drift-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const program = (name: string, help: string): void => {
    writeFileSync(join(folder, name), `#!/bin/sh\necho '${help}'\n`);
    chmodSync(join(folder, name), 0o755);
  };
  program("tool", "usage: tool [-n] [--lines=N] [--[no-]color] show -x");
  program("quiet", "nothing");
  const path = process.env["PATH"] ?? "";
  process.env["PATH"] = `${folder}:${path}`;
  t.after(() => (process.env["PATH"] = path));
  const { options, compared, silent } = findDrift(
    tableOf(`
forms:
  - { run: tool, options: [-n, --lines NUMBER, --no-color, --line, -NUMBER], does: reads }
  - { run: tool show, marked: [-x, --hard], does: destroys, reason: r }
  - { run: quiet, options: [-a], does: reads }
  - { run: tool plain, does: reads }
`),
  );
  assert.deepEqual(options, [
    { command: "tool", option: "--line" },
    { command: "tool show", option: "--hard" },
  ]);
  assert.deepEqual([compared, silent], [["tool", "tool show"], ["quiet"]]);
});

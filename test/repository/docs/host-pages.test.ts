/**
 * Goal: a reader who copies the Python files that a page of docs/hosts lists has all that the program imports. Method: the
 * imports of the page's code and of the listed files are followed; each file of this repository among them must be listed.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { control } from "../../support/controls/control.ts";
import { root } from "../../support/tracked.ts";

const pages = join(root, "docs", "hosts");
const folders = ["clients/python", "adapters"];

/** Returns the file of a module of this repository, relative to the root. */
function fileOf(module: string): string | undefined {
  return folders.map((folder) => `${folder}/${module}.py`).find((file) => existsSync(join(root, file)));
}

function importedBy(python: string): readonly string[] {
  const modules = [...python.matchAll(/^(?:from|import) (svc_gate\w*)/gm)].map(([, module]) => module ?? "");
  return modules.flatMap((module) => fileOf(module) ?? []);
}

/** Returns the files that the page's programs need and that the page does not list. */
function missingOn(page: string): readonly string[] {
  const programs = [...page.matchAll(/^```python\n([^]*?)^```/gm)].map(([, code]) => code ?? "").join("\n");
  const needed = new Set(importedBy(programs));
  for (const file of needed) for (const each of importedBy(readFileSync(join(root, file), "utf8"))) needed.add(each);
  return [...needed].filter((file) => !page.includes(`(../../${file})`)).toSorted();
}

suite("the pages of the hosts", () => {
  test("list every Python file that their programs need", () => {
    for (const name of readdirSync(pages))
      assert.deepEqual(missingOn(readFileSync(join(pages, name), "utf8")), [], `docs/hosts/${name}`);
  });

  control("positive control: a page that does not list the shared file is found", () => {
    const page = readFileSync(join(pages, "claude-agent-sdk.md"), "utf8");
    const guard = "adapters/svc_gate_guard.py";
    assert.deepEqual(missingOn(page.replace(`(../../${guard})`, "()")), [guard]);
  });
});

/**
 * Goal: docs/contracts/packs.md and docs/guides/packs.md show real output. Method: the files of the guide are written beside
 * the ready contracts, the commands run, and each block of output is compared. UPDATE_GOLDEN=1 writes the blocks.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { control } from "../../support/controls/control.ts";
import { root, temporaryFolder } from "../../support/gate.ts";
import { fencedBlocks } from "../../support/page-commands.ts";

const entry = join(root, "bin", "svc-gate.mjs");

function newProject(t: TestContext): string {
  const folder = temporaryFolder(t);
  cpSync(join(root, "contracts"), join(folder, "contracts"), { recursive: true });
  return folder;
}

function run(folder: string, command: string): string {
  const script = command.replace(/^svc-gate /, () => `'${process.execPath}' '${entry}' `);
  const { stdout, stderr } = spawnSync("sh", ["-c", script], { cwd: folder, encoding: "utf8" });
  return stdout + stderr;
}

/** Does what a reader of the page does, in its order, and returns the page with what was really printed. */
function follow(page: string, folder: string): string {
  const write = (name: string, text: string): void => writeFileSync(join(folder, "contracts", name), text);
  const read = (name: string): string => readFileSync(join(folder, "contracts", name), "utf8");
  let followed = page;
  for (const { kind, text } of fencedBlocks(page)) {
    if (kind === "yaml" && text.startsWith("pack: ")) write("packs/own.yaml", text);
    if (kind === "yaml" && text.startsWith("commands:\n"))
      write(
        "shell.yaml",
        read("shell.yaml").replace(/^commands:\n {2}from: >-\n(?: {4}.*\n)+/m, () => text),
      );
    const command = /^\$ (.*)\n/.exec(text)?.[1];
    if (kind === "" && command !== undefined)
      followed = followed.replace(text, () => `$ ${command}\n${run(folder, command)}`);
  }
  return followed;
}

suite("the pages about packs", () => {
  for (const name of ["contracts/packs.md", "guides/packs.md"])
    test(`docs/${name} shows what its commands print`, (t) => {
      const file = join(root, "docs", name);
      const page = readFileSync(file, "utf8");
      const followed = follow(page, newProject(t));
      if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(file, followed);
      else assert.equal(page, followed);
    });

  test("the form with the slip that the guide names has the error that it shows", (t) => {
    const folder = newProject(t);
    const page = readFileSync(join(root, "docs/guides/packs.md"), "utf8");
    const shown = fencedBlocks(page).find(({ kind }) => kind === "text")?.text ?? "";
    const slip = page.replace("--summary all | none]", "--summary (all | none)]");
    assert.notEqual(slip, page);
    follow(slip, folder);
    assert.ok(run(folder, "svc-gate check contracts/packs/own.yaml").includes(shown));
  });

  control("positive control: a page that shows another answer gets the real one", (t) => {
    const page = readFileSync(join(root, "docs/guides/packs.md"), "utf8");
    const other = page.replace("it is not listed", "it may not run");
    assert.notEqual(other, page);
    assert.equal(follow(other, newProject(t)), page);
  });
});

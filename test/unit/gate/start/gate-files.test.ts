/**
 * Goal: an operator learns that an agent on the gate's machine could approve its own calls. Method: the files of a gate
 * under several modes, read by this process and by a process of another user, and the log of a gate that starts. The
 * positive control of each mode is another mode, with the other result.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { filesReadableHere, openFilesWarning } from "../../../../packages/gate/src/server/settings/gate-files.ts";
import { dataFolder } from "../../../../packages/gate/src/ledger/mod.ts";
import { root, startGate, temporaryFolder } from "../../../support/gate.ts";
import { sentencesOf } from "../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);
const { database, operator, signingKey } = dataFolder.files;
const all = [operator, database, signingKey];

/** The files of a gate, which have a mode, in a folder that has another. */
function filesIn(t: TestContext, fileMode: number, folderMode: number): string {
  const folder = temporaryFolder(t);
  chmodSync(folder, 0o755);
  const dataDir = join(folder, "data");
  mkdirSync(dataDir);
  for (const name of all) {
    writeFileSync(join(dataDir, name), "");
    chmodSync(join(dataDir, name), fileMode);
  }
  chmodSync(dataDir, folderMode);
  return dataDir;
}

const nobody = 65_534;
const module = pathToFileURL(join(root, "packages/gate/src/server/settings/gate-files.ts")).href;

/** What a process of another user can read, with the same function. */
function readableToOthers(dataDir: string): readonly string[] {
  const program = `const { filesReadableHere } = await import(${JSON.stringify(module)});
    console.log(JSON.stringify(filesReadableHere({ dataDir: ${JSON.stringify(dataDir)} })));`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
    encoding: "utf8",
    uid: nobody,
    gid: nobody,
    cwd: "/",
  });
  assert.notEqual(stdout, "", stderr);
  return JSON.parse(stdout) as readonly string[];
}

suite("files of a gate that an agent could read", { skip: process.platform === "win32" }, () => {
  test("this process can read its own files, and none that are not there", (t) => {
    const dataDir = filesIn(t, 0o600, 0o700);
    const paths = all.map((name) => join(dataDir, name));
    assert.deepEqual(filesReadableHere({ dataDir }), paths);
    assert.deepEqual(filesReadableHere({ dataDir: join(dataDir, "none") }), []);
    const elsewhere = join(dataDir, operator);
    assert.equal(filesReadableHere({ dataDir, signingKey: elsewhere }).at(-1), elsewhere);
    assert.deepEqual(filesReadableHere({ dataDir, signingKey: "-----BEGIN PRIVATE KEY-----" }), paths.slice(0, 2));
  });

  test("another user can read only files whose mode and folder allow it", { skip: process.getuid?.() !== 0 }, (t) => {
    for (const [file, folder, isOpen] of [
      [0o600, 0o755, false],
      [0o644, 0o700, false],
      [0o644, 0o755, true],
    ] as const) {
      const dataDir = filesIn(t, file, folder);
      // The checkout may be in a folder that another user cannot enter.
      const found = readableToOthers(dataDir);
      assert.deepEqual(found, isOpen ? all.map((name) => join(dataDir, name)) : [], `${file} ${folder}`);
      assert.equal(openFilesWarning({ dataDir }) !== undefined, isOpen, "the gate says the same from the modes");
    }
  });

  test("the warning names the files, and a folder in which others can replace files", (t) => {
    const shown = (dataDir: string): string => String(openFilesWarning({ dataDir })).replaceAll(dataDir, "DATA");
    assert.equal(shown(filesIn(t, 0o600, 0o770)), "undefined", "a group may enter the folder");
    says("open files", shown(filesIn(t, 0o640, 0o750)));
    says("a folder that others can write", shown(filesIn(t, 0o600, 0o777)));
  });

  test("a gate warns at its start of a folder in which others can replace files", async (t) => {
    const folder = temporaryFolder(t);
    mkdirSync(join(folder, "data"));
    const quiet = await startGate(t, { folder });
    assert.ok(!quiet.warnings.some((warning) => warning.includes("approve itself")), quiet.warnings.join("\n"));
    await quiet.stop();
    chmodSync(join(folder, "data"), 0o777);
    const { warnings } = await startGate(t, { folder });
    assert.ok(
      warnings.some((warning) => warning.startsWith("the agent can approve itself here")),
      warnings.join("\n"),
    );
  });
});

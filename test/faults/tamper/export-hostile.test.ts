/**
 * Goal: an export that is made to break a verifier is an ordinary break, at the same row and with the same code in all
 * three verifiers. No program hangs, reads a file outside the folder, or ends with a stack trace. Method: each file is
 * replaced by a pipe, a folder, links, and a file above its maximum size (sparse). Positive controls: the unchanged
 * folder is valid, also if a link leads to a file inside it.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  cpSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import { pythonOf } from "../../../clients/conformance/runtimes.ts";
import { hintedKeys, verifyExport } from "../../../packages/records/src/export/mod.ts";
import { parseVerifierKey } from "../../../packages/core/src/record/tree/mod.ts";
import { control } from "../../support/controls/control.ts";
import { chain, exportFiles, sha256, type RowPlan } from "../../support/exports/fixture.ts";
import { eraseBody, first, key, log, plan } from "../../support/exports/ground.ts";
import { vectorFolder } from "../../support/exports/vectors.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "svc-gate-hostile-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const python = [13, 12, 11, 10, 9].map(pythonOf).find((program) => program !== undefined);
const programs = [
  { name: "svc-verify.mjs", command: [process.execPath, join(root, "verify/svc-verify.mjs")] },
  ...(python === undefined ? [] : [{ name: "svc_verify.py", command: [python, join(root, "verify/svc_verify.py")] }]),
];

/** Returns the verifiers' results for a folder, one line each, with a program's exit code. */
async function judged(target: string, isKeyGiven = true): Promise<readonly string[]> {
  const given = isKeyGiven ? ["--key", key.vkey] : [];
  const small = programs.map(({ name, command: [program = "", ...args] }) => {
    const { status, stdout, stderr } = spawnSync(program, [...args, target, ...given], {
      encoding: "utf8",
      timeout: 60_000,
    });
    assert.doesNotMatch(stderr, /Traceback|^ {4}at /m, `${name} ended in a trace`);
    const { problem } = JSON.parse(stdout) as {
      readonly problem: { readonly row: number; readonly code: string } | null;
    };
    assert.equal(status, problem === null ? 0 : 1, `${name}: ${stderr}`);
    return problem === null ? "it holds" : `${problem.code} at row ${problem.row}`;
  });
  const own = parseVerifierKey(key.vkey);
  const keys = isKeyGiven && own.ok ? [own.value] : await hintedKeys(target);
  const { problem } = await verifyExport({ folder: target, keys, witnesses: [], chainAlone: false });
  return [...small, problem === undefined ? "it holds" : `${problem.code} at row ${problem.row}`];
}

async function assertJudged(target: string, expected: string, isKeyGiven = true): Promise<void> {
  assert.deepEqual(new Set(await judged(target, isKeyGiven)), new Set([expected]));
}

let made = 0;
function copyOf(base: string): string {
  made += 1;
  const target = join(folder, `case-${made}`);
  cpSync(join(vectorFolder, base), target, { recursive: true });
  return target;
}

function madeOf(plans: readonly RowPlan[]): string {
  made += 1;
  const target = join(folder, `case-${made}`);
  for (const [path, content] of exportFiles(plan(chain(log, plans), { contracts: [] }))) {
    mkdirSync(join(target, path, ".."), { recursive: true });
    writeFileSync(join(target, path), content);
  }
  return target;
}

const contract = `contracts/${first?.slice(7)}.txt`;
/** Each kind of file, its maximum size, and the code if it is not a regular file. */
const kinds = [
  ["checkpoint", 2 ** 16, "checkpoint at row 0"],
  ["tile/0/000.p/12", 8192, "file at row 1"],
  ["tile/entries/000.p/12", 256 * 65_537, "file at row 1"],
  ["evidence/000.p/12", 2 ** 30, "file at row 1"],
  [contract, 2 ** 24, "contract at row 1"],
] as const;

const spoilings: Readonly<Record<string, (file: string) => void>> = {
  "a pipe": (file) => assert.equal(spawnSync("sh", ["-c", 'mkfifo "$0"', file]).status, 0),
  "a folder": (file) => mkdirSync(file),
  "a link to a device that never ends": (file) => symlinkSync("/dev/zero", file),
  "a link to itself": (file) => symlinkSync(file, file),
};

suite("exports made to break verifiers", { skip: process.platform === "win32" && "it has no pipes in folders" }, () => {
  control("positive control: all verifiers accept the unchanged folder, also through a link", async () => {
    const target = copyOf("acts");
    await assertJudged(target, "it holds");
    symlinkSync(target, `${target}-linked`);
    await assertJudged(`${target}-linked`, "it holds");
    await assertJudged(target, "it holds", false);
  });

  for (const [path, most, expected] of kinds) {
    for (const [title, spoil] of Object.entries(spoilings)) {
      test(`all verifiers refuse an export if ${path} is ${title}`, async () => {
        const target = copyOf("acts");
        rmSync(join(target, path));
        spoil(join(target, path));
        await assertJudged(target, expected);
      });
    }

    test(`all verifiers refuse an export if ${path} exceeds its maximum size`, async () => {
      for (const size of [most + 1, 3 * 2 ** 30]) {
        const target = copyOf("acts");
        truncateSync(join(target, path), size);
        await assertJudged(target, expected);
      }
    });

    test(`all verifiers follow a link at ${path} only within the folder`, async () => {
      const target = copyOf("acts");
      renameSync(join(target, path), join(target, "elsewhere"));
      symlinkSync(join(target, "elsewhere"), join(target, path));
      await assertJudged(target, "it holds");
      renameSync(join(target, "elsewhere"), `${target}-beside`);
      rmSync(join(target, path));
      symlinkSync(`${target}-beside`, join(target, path));
      await assertJudged(target, expected);
      rmSync(join(target, path));
      linkSync(`${target}-beside`, join(target, path));
      await assertJudged(target, "it holds");
    });
  }

  test("all verifiers ignore a log.json that is too long or not a file", async () => {
    const spoiled = [...Object.values(spoilings), (file: string) => writeFileSync(file, " ".repeat(2 ** 16 + 1))];
    for (const spoil of spoiled) {
      const target = copyOf("acts");
      rmSync(join(target, "log.json"));
      spoil(join(target, "log.json"));
      await assertJudged(target, "unsigned at row 0", false);
      await assertJudged(target, "it holds");
    }
  });

  test("all verifiers refuse an oversized line of evidence even if its leaf commits to it", async () => {
    for (const [bytes, expected] of [
      [2 ** 21, "it holds"],
      [3 * 2 ** 20 + 2 ** 18, "evidence at row 2"],
    ] as const) {
      const reason = JSON.stringify("x".repeat(bytes));
      await assertJudged(madeOf([{}, { values: { reason } }]), expected);
    }
  });

  test("all verifiers accept a line of evidence with 3000 parts and refuse one full of separators", async () => {
    const many = Array.from({ length: 3000 }, (_, at): readonly [string, string] => [`input.a${at}`, "1"]);
    const row: RowPlan = { sensitive: Object.fromEntries(many) };
    await assertJudged(madeOf([row]), "it holds");
    const erased = many.map(([name]) => name);
    const says = (part: string): RowPlan => ({ act: "erase", values: { input: eraseBody([part], [[1, 2]]) } });
    await assertJudged(madeOf([{ ...row, erased }, { ...row, erased }, says("input")]), "it holds");
    await assertJudged(madeOf([{ ...row, erased }, { ...row, erased }, says("input.a7")]), "erasure at row 1");
    await assertJudged(madeOf([{ line: () => "~".repeat(2 ** 18) }]), "evidence at row 1");
    await assertJudged(madeOf([{ line: (line) => `${line}${"~".repeat(2 ** 18)}` }]), "evidence at row 1");
  });

  test("all verifiers refuse a non-ASCII byte late in a long line of evidence", async () => {
    const line = (written: string): string => written.replace(/$/, `${"A".repeat(2 ** 17)}\u00e9`);
    await assertJudged(madeOf([{}, { line }]), "evidence at row 2");
  });

  test("the verifier programs exit with 2 and no stack trace if they cannot verify the target", () => {
    const file = join(folder, `${sha256("nothing").toString("hex")}.tlog-proof`);
    for (const {
      name,
      command: [program = "", ...args],
    } of programs) {
      for (const words of [[file], [join(vectorFolder, "acts"), "--key", "x"], []]) {
        const { status, stderr } = spawnSync(program, [...args, ...words], { encoding: "utf8", timeout: 60_000 });
        assert.equal(status, 2, `${name} ${words.join(" ")}: ${stderr}`);
        assert.doesNotMatch(stderr, /Traceback|^ {4}at /m);
      }
    }
  });
});

/**
 * Goal: every changed bit of an export is noticed, and the break is named at its row. Method: one bit of each byte of
 * each file of a small export is flipped in turn (the next bit in the next byte). The JavaScript verifier and the
 * ledger's own judge it; the Python one judges a sample. log.json is left out, because no verifier trusts it.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import { pythonOf } from "../../../clients/conformance/runtimes.ts";
import { verifyExport } from "../../../packages/records/src/export/mod.ts";
import { parseVerifierKey } from "../../../packages/core/src/record/tree/mod.ts";
import { exportFiles } from "../../support/exports/fixture.ts";
import { flipped, key, longRows, plan } from "../../support/exports/ground.ts";
import { temporaryFolder } from "../../support/ledger-fixture.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const rows = longRows.slice(0, 3);
const files = new Map(
  [...exportFiles(plan(rows, { contracts: ["contract: notes\n"] }))].filter(([path]) => path !== "log.json"),
);

interface Judged {
  readonly ok: boolean;
  readonly problem: { readonly row: number; readonly code: string } | null;
}

type Judge = (folder: string) => Promise<Judged>;

const { verify } = (await import(join(root, "verify/svc-verify.mjs"))) as {
  readonly verify: (folder: string, keys: readonly string[]) => Judged;
};

const judges: Readonly<Record<string, Judge>> = {
  "svc-verify.mjs": async (folder) => verify(folder, [key.vkey]),
  "svc-gate verify": async (folder) => {
    const parsed = parseVerifierKey(key.vkey);
    const keys = parsed.ok ? [parsed.value] : assert.fail(parsed.problem);
    const { problem } = await verifyExport({ folder, keys, witnesses: [], chainAlone: false });
    return { ok: problem === undefined, problem: problem ?? null };
  },
};

function writeExport(folder: string): void {
  for (const [path, bytes] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  }
}

/** Returns the row that a file's byte belongs to; 0 if it belongs to none. */
function rowOf(path: string, at: number): number {
  const lengths = path.startsWith("tile/entries")
    ? rows.map(({ leaf }) => 2 + leaf.length)
    : path.startsWith("evidence")
      ? rows.map(({ evidence }) => evidence.length + 1)
      : rows.map(() => 32);
  if (path === "checkpoint") return 0;
  if (path.startsWith("contracts")) return 1;
  let end = 0;
  return 1 + lengths.findIndex((length) => at < (end += length));
}

suite("exports with one flipped bit", () => {
  for (const [name, judge] of Object.entries(judges)) {
    test(`${name} finds a flipped bit in each byte, at its row`, async (t) => {
      const folder = temporaryFolder(t);
      writeExport(folder);
      assert.equal((await judge(folder)).ok, true, "positive control: it holds as it is");
      const wrong: string[] = [];
      let flips = 0;
      for (const [path, bytes] of files) {
        for (let at = 0; at < bytes.length; at += 1) {
          writeFileSync(join(folder, path), flipped(bytes, at, at % 8));
          const { problem } = await judge(folder);
          if (problem?.row !== rowOf(path, at)) wrong.push(`${path} byte ${at}: ${JSON.stringify(problem)}`);
          flips += 1;
        }
        writeFileSync(join(folder, path), bytes);
      }
      assert.deepEqual(wrong, []);
      assert.ok(flips > 2900, `${flips} flips`);
      t.diagnostic(`${flips} flips`);
    });
  }

  const python = [13, 12, 11, 10, 9].map(pythonOf).find((program) => program !== undefined);
  test(
    "svc_verify.py finds each flipped bit of a sample, at its row",
    { skip: python === undefined && "there is no Python" },
    (t) => {
      const jobs = [...files].flatMap(([path, bytes]) =>
        Array.from({ length: Math.min(12, bytes.length) }, (_, of) => {
          const at = Math.floor((of * bytes.length) / 12);
          const target = temporaryFolder(t);
          writeExport(target);
          writeFileSync(join(target, path), flipped(bytes, at, (at + 3) % 8));
          return { target, keys: [key.vkey], witnesses: [], row: rowOf(path, at) };
        }),
      );
      const given = [join(root, "test/support/exports/judge.py"), join(root, "verify/svc_verify.py")];
      const { stdout, stderr } = spawnSync(python ?? "", given, { input: JSON.stringify(jobs), encoding: "utf8" });
      const found = (JSON.parse(stdout) as readonly Judged[]).map(({ problem }) => problem?.row);
      assert.deepEqual(found, jobs.map(({ row }) => row), stderr); // prettier-ignore
    },
  );
});

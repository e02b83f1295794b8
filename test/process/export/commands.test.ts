/**
 * Goal: `svc-gate verify FOLDER` judges exports as the two small verifiers do; `svc-gate export` reports its result.
 * Readable fields equal the receipts, and no text of an agent becomes a spreadsheet formula. Method: the vectors go
 * through the ledger's public API, and some through the program. Hostile texts on receipts are read back by a strict
 * reader of RFC 4180 and as JSON. UPDATE_GOLDEN=1 rewrites the sentences.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { openLedger } from "../../../packages/gate/src/ledger/mod.ts";
import { hintedKeys, verifyExport } from "../../../packages/records/src/export/mod.ts";
import { parseVerifierKey, verifyProof, type VerifierKey } from "../../../packages/core/src/record/tree/mod.ts";
import { command } from "../../support/command.ts";
import { root } from "../../support/gate.ts";
import { eraseOn } from "../../support/erasure-suite.ts";
import { proofCases } from "../../support/exports/proofs.ts";
import { writeVector, readVectors, vectorFolder } from "../../support/exports/vectors.ts";
import { append, contracts, engine, entry, temporaryFolder } from "../../support/ledger-fixture.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const vectors = readVectors();
const linux = { skip: process.platform === "linux" ? false : "there is no /proc" };

function keyOf(text: string): VerifierKey {
  const key = parseVerifierKey(text);
  return key.ok ? key.value : assert.fail(key.problem);
}

suite("svc-gate verify of an export", () => {
  test("verify reports the expected result for every vector", async (t) => {
    const folder = temporaryFolder(t);
    const wrong: object[] = [];
    for (const [at, vector] of vectors.entries()) {
      const target = join(folder, String(at));
      writeVector(vector, target);
      const keys = vector.keys.length === 0 ? await hintedKeys(target) : vector.keys.map(keyOf);
      const witnesses = vector.witnesses.map(keyOf);
      const report = await verifyExport({ folder: target, keys, witnesses, chainAlone: false });
      const { problem, rows, contracts: named, erasedParts, signedBy, cosignedBy } = report;
      const good = {
        rows,
        contracts: named,
        erased_parts: erasedParts,
        signed_by: signedBy.length,
        cosigned_by: cosignedBy.length,
      };
      const found = problem === undefined ? good : { row: problem.row, code: problem.code };
      if (JSON.stringify(found) !== JSON.stringify(vector.expected)) wrong.push({ name: vector.name, found, problem });
    }
    assert.deepEqual(wrong, []);
  });

  test("verify judges every proof of a row as the small verifiers do", () => {
    const wrong = proofCases.filter(
      ({ text, keys, expected }) => verifyProof(text, keys.map(keyOf)).ok !== "leaf_seq" in expected,
    );
    assert.deepEqual(
      wrong.map(({ name }) => name),
      [],
    );
  });

  test("the specification lists the same codes as the vectors", () => {
    const text = readFileSync(join(root, "spec/export.md"), "utf8");
    const [table = ""] = /^\| code \|(?:.+\n)+/m.exec(text) ?? [];
    const listed = Array.from(table.matchAll(/^\| `([a-z-]+)` \|/gm), ([, code = ""]) => code);
    const seen = new Set(vectors.flatMap(({ expected }) => ("code" in expected ? [expected.code] : [])));
    assert.deepEqual(listed.toSorted(), [...seen].toSorted());
  });

  test("verify reports what it found and says if no key was given", async () => {
    const folder = join(vectorFolder, "acts");
    const [{ keys: [key = ""] } = { keys: [] }] = vectors;
    const whole = await command(["verify", folder, "--key", key]);
    assert.deepEqual([whole.code, whole.stderr], [0, ""]);
    const [verified = "", ledger] = whole.stdout.split("\n");
    says("verified", verified);
    assert.equal(ledger, "  ledger     example.org/export");
    assert.doesNotMatch(whole.stdout, /NO KEY/);
    assert.match((await command(["verify", folder])).stdout, /NO KEY WAS GIVEN/);
    const small = spawnSync("node", [join(root, "verify/svc-verify.mjs"), folder, "--key", key], { encoding: "utf8" });
    const own = await command(["verify", folder, "--key", key, "--json"]);
    assert.deepEqual(JSON.parse(own.stdout), JSON.parse(small.stdout), "the same report");
    const noKey = await command(["verify", folder, "--key", "no key"]);
    says("no-verifier-key", noKey.stderr.trimEnd());
    const { code, stderr } = await command(["verify", folder, "--key", key, "--pin", "head.pin"]);
    assert.equal(code, 2);
    says("pin-of-an-export", stderr.trimEnd(), { FOLDER: folder });
    const elsewhere = { env: { SVC_PIN: join(folder, "no.pin") } };
    assert.equal((await command(["verify", folder, "--key", key], elsewhere)).code, 0, "that is a gate's setting");
  });

  test("verify names the first broken row, and with --chain ignores the evidence", async (t) => {
    const vector = vectors.find(({ name }) => name === "digest: one bit of a value") ?? assert.fail();
    const folder = join(temporaryFolder(t), "export");
    writeVector(vector, folder);
    const given = ["verify", folder, "--key", vector.keys[0] ?? ""];
    const broken = await command(given);
    assert.equal(broken.code, 1);
    says("broken-row", broken.stderr.split("\n")[0] ?? "");
    const chain = await command([...given, "--chain"]);
    says("verified-chain", chain.stdout.split("\n")[0] ?? "");
  });
});

const hostile = [
  "=1+1",
  "+1",
  "-1",
  "@SUM(A1)",
  "\tx",
  "\r\n=1",
  "\uff1d1",
  'a "quoted", one',
  "line\nbreak",
  "'",
  "plain",
  "目 💳",
];

async function hostileLedger(t: TestContext): Promise<string> {
  const folder = temporaryFolder(t);
  const ledger = await openLedger({ folder, engine, name: "example.org/readable" });
  await ledger.keepContract(contracts[0]);
  const row = (text: string): Parameters<typeof append>[1][number] => [
    entry({
      sessionId: text,
      toolName: text,
      routed: false,
      inputText: `{"big":12345678901234567890.10,"text":${JSON.stringify(text)},"é":"\\u00e9"}`,
    }),
    [],
  ];
  await append(ledger, hostile.map(row)); // prettier-ignore
  await eraseOn(ledger, { target: { rows: [[2, 2]] }, parts: ["platform"] });
  await ledger.close();
  return folder;
}

/** Reads CSV strictly by RFC 4180: returns records of cells, and throws on anything else. */
function readCsv(text: string): readonly (readonly string[])[] {
  const records: string[][] = [];
  let record: string[] = [];
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/y;
  while (cell.lastIndex < text.length) {
    const at = cell.lastIndex;
    const [, inQuotes, bare = "", end] = cell.exec(text) ?? assert.fail(`no cell at ${at}`);
    record.push(inQuotes?.replaceAll('""', '"') ?? bare);
    if (end === ",") continue;
    records.push(record);
    record = [];
  }
  assert.equal(record.length, 0, "the last record ends");
  return records;
}

suite("svc-gate export --format", () => {
  test("csv contains the fields of receipts and no cell that a spreadsheet runs as a formula", async (t) => {
    const folder = await hostileLedger(t);
    const { code, stdout, stderr } = await command(["export", "-", "--format", "csv", "--data-dir", folder]);
    assert.deepEqual([code, stderr], [0, ""]);
    const [head = [], ...records] = readCsv(stdout);
    assert.equal(head.join(), "seq,at,act,key,session,tool,verdict,answered,mode,rule,reason,contract,hash,erased");
    const column = (name: string): readonly string[] => records.map((cells) => cells[head.indexOf(name)] ?? "");
    const guarded = hostile.map((text) => (/^[=+\-@\t\r\n\uff1d]/.test(text) ? `'${text}` : text));
    assert.deepEqual(column("tool").slice(0, hostile.length), guarded);
    assert.deepEqual(column("session").slice(0, hostile.length), guarded);
    for (const cell of records.flat()) assert.doesNotMatch(cell, /^[=+\-@\t\r\n\uff1d]/);
    assert.equal(column("erased")[1], "platform reason outcome");
    assert.equal(column("reason")[1], "");
    assert.equal(column("act").at(-1), "erase");
    assert.equal(column("at")[0], "2026-09-21T14:13:20.000Z");
  });

  test("jsonl keeps every text and every digit, and can write some of the rows into a file", async (t) => {
    const folder = await hostileLedger(t);
    const to = join(temporaryFolder(t), "out");
    mkdirSync(to);
    const given = ["export", to, "--format", "jsonl", "--from", "3", "--to", "12", "--data-dir", folder];
    const { code, stdout } = await command(given);
    assert.deepEqual([code, stdout], [0, `${join(to, "receipts.jsonl")}: 10 receipts\n`]);
    const lines = readFileSync(join(to, "receipts.jsonl"), "utf8").trimEnd().split("\n");
    assert.deepEqual(lines.map((line) => JSON.parse(line).tool), hostile.slice(2)); // prettier-ignore
    assert.match(
      lines[0] ?? "",
      /"input":\{"big":12345678901234567890\.10,"text":"-1","é":"\\u00e9"\},"platform":null\}$/,
    );
  });

  test("a wrong option or target is an error in one sentence", async (t) => {
    const folder = await hostileLedger(t);
    const cwd = temporaryFolder(t);
    const cases: readonly (readonly [readonly string[], string])[] = [
      [["-"], "export-to-a-stream"],
      [[join(cwd, "x"), "--from", "3"], "from-without-format"],
      [["-", "--format", "xml"], "unknown-format"],
      [["-", "--format", "csv", "--from", "0"], "from-is-no-row"],
      [["-", "--format", "csv", "--from", "4", "--to", "3"], "from-after-to"],
      [[join(cwd, "x"), "--cosigned"], "nothing-is-cosigned"],
      [[join(cwd, "x"), "--data-dir", join(folder, "nothing")], "no-ledger"],
      [[folder], "folder-with-other-things"],
      [[join(folder, "ledger.db")], "folder-is-a-file"],
      [[join(folder, "ledger.db", "x")], "folder-in-a-file"],
      [[join(cwd, "none", "x.csv"), "--format", "csv"], "file-in-no-folder"],
    ];
    for (const [given, name] of cases) {
      const { code, stderr } = await command(["export", "--data-dir", folder, ...given], { folder: cwd });
      assert.equal(code, 2, stderr);
      says(name, stderr.trimEnd());
    }
  });

  test("a path where no folder can be made is an error and not an endless wait", linux, async (t) => {
    const folder = await hostileLedger(t);
    for (const to of ["/proc/x", "/proc/x/y"]) {
      const { code, stderr } = await command(["export", to, "--data-dir", folder]);
      assert.equal(code, 2, stderr);
      says("folder-that-cannot-be-made", stderr.trimEnd().replace(/\bE[A-Z]+\b/, "CODE"), { PLACE: to });
    }
  });

  test("export writes through a symbolic link and does not replace the link", async (t) => {
    const [folder, to] = [await hostileLedger(t), temporaryFolder(t)];
    writeFileSync(join(to, "real"), "before");
    symlinkSync(join(to, "real"), join(to, "link"));
    const { code, stderr } = await command(["export", join(to, "link"), "--format", "csv", "--data-dir", folder]);
    assert.deepEqual([code, stderr], [0, ""]);
    assert.ok(lstatSync(join(to, "link")).isSymbolicLink());
    assert.match(readFileSync(join(to, "real"), "utf8"), /^seq,at,/);
    assert.deepEqual(readdirSync(to).toSorted(), ["link", "real"]);
  });

  test("export stops with an error at a row that was changed", async (t) => {
    const folder = await hostileLedger(t);
    const { DatabaseSync } = await import("node:sqlite");
    const database = new DatabaseSync(join(folder, "ledger.db"));
    database.exec("UPDATE receipts SET evidence = replace(evidence, 'W', 'X') WHERE seq = 5");
    database.close();
    const { code, stderr } = await command(["export", "-", "--format", "csv", "--data-dir", folder]);
    assert.equal(code, 2);
    says("changed-row", stderr.trimEnd());
  });
});

test("svc-gate export writes a folder, can continue it later, and prints the command to verify it", async (t) => {
  const folder = await hostileLedger(t);
  const to = join(temporaryFolder(t), "export");
  const made = await command(["export", to, "--data-dir", folder]);
  assert.deepEqual([made.code, made.stderr], [0, ""]);
  const shown = /verify it with {2}svc-gate (.*)$/m.exec(made.stdout)?.[1]?.split(" ") ?? assert.fail(made.stdout);
  assert.match((await command(shown)).stdout, /^ok: 13 rows/);
  const again = await command(["export", to, "--data-dir", folder, "--json"]);
  assert.deepEqual(JSON.parse(again.stdout), {
    log: "example.org/readable",
    size: 13,
    before: 13,
    vkey: shown.at(-1),
    folder: to,
  });
  writeFileSync(join(to, "log.json"), "{}\n");
  assert.match((await command(shown)).stdout, /^ok: 13 rows/, "nothing hangs on the hint");
  assert.match((await command(["export", to, "--data-dir", folder])).stderr, /\bnot an export\b/);
});

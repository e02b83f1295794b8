/**
 * Goal: both verifiers, in Python and in JavaScript, find every break of an export, at the same row and with the same
 * code, and each of their checks is necessary. Method: a plain generator that shares nothing with src/ made
 * spec/vectors/exports. Both verifiers judge it under every installed interpreter. Then one check at a time is removed,
 * and the vectors must notice it.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import { runtimes } from "../../../clients/conformance/runtimes.ts";
import { control } from "../../support/controls/control.ts";
import { exportCases } from "../../support/exports/cases.ts";
import { proofCases } from "../../support/exports/proofs.ts";
import {
  cutInputsText,
  filesOf,
  writeVector,
  proofsText,
  readVectors,
  vectorFolder,
  vectorsText,
} from "../../support/exports/vectors.ts";
import { bases, type Expected } from "../../support/exports/ground.ts";
import { mutatedFile, sweptFile, type Mutation, type Sweep, type Swept } from "../../support/mutation/mutate.ts";
import { mutatedPython, sweptPython } from "../../support/mutation/python.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "svc-gate-exports-"));
after(() => rmSync(folder, { recursive: true, force: true }));

interface Job {
  readonly name: string;
  readonly target: string;
  readonly keys: readonly string[];
  readonly witnesses: readonly string[];
  readonly expected: Expected | { readonly leaf_seq: number };
}

const jobs: readonly Job[] = [
  ...readVectors().map((vector, at) => {
    const target = join(folder, `case-${at}`);
    writeVector(vector, target);
    return { name: vector.name, target, keys: vector.keys, witnesses: vector.witnesses, expected: vector.expected };
  }),
  ...proofCases.map(({ name, text, keys, witnesses, expected }, at) => {
    const target = join(folder, `row-${at}.tlog-proof`);
    writeFileSync(target, text);
    return { name, target, keys, witnesses, expected };
  }),
];

interface Report {
  readonly ok?: boolean;
  readonly problem?: { readonly row: number; readonly code: string } | null;
  readonly rows?: number;
  readonly contracts?: number;
  readonly erased_parts?: number;
  readonly signed_by?: readonly string[];
  readonly cosigned_by?: readonly string[];
  readonly leaf?: { readonly seq: number };
  readonly thrown?: string;
}

const verifiers = { python: "verify/svc_verify.py", javascript: "verify/svc-verify.mjs" };
type Language = keyof typeof verifiers;

/** Returns a verifier's results for some jobs, in one process; undefined if it crashes, as a doctored one may. */
function judge(program: string, verifier: string, work: readonly Job[]): readonly Report[] | undefined {
  const driver = verifier.endsWith(".py") ? ["judge.py"] : ["--max-old-space-size=200", "judge.mjs"];
  const given = driver.map((each) => (each.startsWith("-") ? each : join(root, "test/support/exports", each)));
  const { status, stdout } = spawnSync(program, [...given, verifier], {
    input: JSON.stringify(work.map(({ target, keys, witnesses }) => ({ target, keys, witnesses }))),
    encoding: "utf8",
    maxBuffer: 2 ** 26,
    timeout: 120_000,
  });
  return status === 0 ? (JSON.parse(stdout) as readonly Report[]) : undefined;
}

/** Returns the part of a report that a case expects. */
function summary(report: Report): unknown {
  if (report.thrown !== undefined) return report;
  if (report.ok !== true) return { row: report.problem?.row, code: report.problem?.code };
  if (report.leaf !== undefined) return { leaf_seq: report.leaf.seq };
  const { rows, contracts, erased_parts, signed_by, cosigned_by } = report;
  return { rows, contracts, erased_parts, signed_by: signed_by?.length, cosigned_by: cosigned_by?.length };
}

/** Returns the jobs for which a verifier's result is wrong. */
function misjudged(program: string, verifier: string, work: readonly Job[]): readonly object[] {
  const reports = judge(program, verifier, work);
  return work.flatMap(({ name, expected }, at) => {
    const found = reports === undefined ? "it broke down" : summary(reports[at] ?? {});
    return JSON.stringify(found) === JSON.stringify(expected) ? [] : [{ name, expected, found }];
  });
}

const { found: interpreters, absent } = runtimes();
const languageOf = (name: string): Language => (name.startsWith("python") ? "python" : "javascript");
const programOf = (language: Language): string | undefined =>
  interpreters.findLast(({ name }) => languageOf(name) === language)?.command[0];

suite("verifiers of exports", () => {
  test("the vectors are what the generator makes today", () => {
    assert.equal(
      readFileSync(join(vectorFolder, "cases.json"), "utf8"),
      vectorsText(),
      "node test/support/exports/vectors.ts --write",
    );
    assert.equal(readFileSync(join(vectorFolder, "proofs.json"), "utf8"), proofsText());
    assert.equal(readFileSync(join(vectorFolder, "cut-inputs.json"), "utf8"), cutInputsText());
    for (const [base, files] of bases) assert.deepEqual(filesOf(join(vectorFolder, base)), new Map(files));
  });

  test("the files of a vector are those of the case that it was made from", () => {
    for (const [at, { name, files }] of exportCases.entries())
      assert.deepEqual(filesOf(join(folder, `case-${at}`)), new Map(files), name);
  });

  test("spec/receipt.md shows the first row with sensitive members as it is in the vector", () => {
    const shown = readFileSync(join(root, "spec/receipt.md"), "utf8").replaceAll(/\n +/g, "");
    const [line = ""] = readFileSync(join(vectorFolder, "members/evidence/000.p/12"), "latin1").split("\n");
    const decoded = line.split("~").map((part) => Buffer.from(part, "base64url").toString());
    const members = decoded.slice(6).map((text) => text.split('"')[3] ?? "");
    const digests = line
      .split("~")
      .map((part, at) => hash("sha256", part, "base64url") + (at < 6 ? "" : `${members[at - 6]}~`));
    for (const text of [decoded[1] ?? "", ...decoded.slice(6, 8), digests.toSorted().join("")])
      assert.ok(text !== "" && shown.includes(text), text);
    assert.ok(shown.includes(`evidence = ${hash("sha256", digests.toSorted().join(""), "hex")}`));
  });

  for (const { name, command } of interpreters) {
    test(`${name} judges every vector correctly`, () => {
      const verifier = join(root, verifiers[languageOf(name)]);
      assert.deepEqual(misjudged(command[0] ?? "", verifier, jobs), []);
    });
  }
  test("both verifiers count the same rows, contracts and erased parts, up to a fault too", (t) => {
    const [python, javascript] = (["python", "javascript"] as const).map((language) => {
      const reports = judge(programOf(language) ?? "", join(root, verifiers[language]), jobs);
      return reports?.map(({ rows, contracts, erased_parts }, at) => [jobs[at]?.name, rows, contracts, erased_parts]);
    });
    if (python === undefined || javascript === undefined) return t.skip("one of the programs is not here");
    assert.ok(javascript.some(([, rows]) => Number(rows) > 0));
    return assert.deepEqual(python, javascript);
  });
  for (const name of absent) test(`${name} judges every vector correctly`, { skip: `${name} is not here` }, () => {});
});

/** Matches a check in a verifier; the mutation leaves only its arguments. */
const withoutCheck: Readonly<Record<Language, Sweep>> = {
  python: { find: "need($$given)", put: "(lambda *given: None)($$given)" },
  javascript: { find: "need($$given)", put: "((...given) => {})($$given)" },
};

/** Checks that no call of `need` expresses. */
const defects: Readonly<Record<Language, readonly (readonly Mutation[])[]>> = {
  python: [
    [{ within: "strict_base64", find: "spelled == text", put: "True" }],
    [{ within: "is_signed", find: "s >= ORDER", put: "False" }],
    [{ within: "read_checkpoint", find: "name == origin", put: "True" }],
    [{ within: "read_checkpoint", find: "text.encode() == data", put: "True" }],
    [{ within: "check_leaf", find: "leaf[0].encode() == data", put: "True" }],
    [{ within: "read_checkpoint", find: 'signatures.count("\\n") <= 64', put: "True" }],
    [
      {
        within: "read_checkpoint",
        find: "KEY_NAME.fullmatch(words[1])",
        put: 'words[1] and "+" not in words[1]',
      },
    ],
    [{ within: "check_evidence", find: "names[6:] == sorted(set(names[6:]))", put: "True" }],
    [{ within: "check_evidence", find: "sorted(set(names[6:]))", put: "sorted(names[6:])" }],
    [{ within: "PLACES", text: "[A-Za-z0-9_-]*", put: ".*" }],
    [{ within: "check_evidence", find: 'digest + name.encode() + b"~"', put: "digest" }],
    [{ within: "check_evidence", find: 'digest + name.encode() + b"~"', put: "digest + name.encode()" }],
    [{ within: "check_evidence", find: '"effects" not in erased', put: "True" }],
    [{ within: "settle", find: '{name, name.split(".")[0]}.isdisjoint(names)', put: "name not in names" }],
    [
      {
        within: "settle",
        find: '{name, name.split(".")[0]}.isdisjoint(names)',
        put: 'not f"{name}.".startswith(tuple(names))',
      },
    ],
    [{ within: "settle", find: "before and names and $same", put: "before and $same" }],
    [{ within: "hinted_keys", find: "HINT.fullmatch(text)", put: "True" }],
    [{ within: "check_leaf", find: '(leaf["act"] is not None) == (leaf["kind"] == "change")', put: "True" }],
    [{ within: "check_leaf", find: '(leaf["check"] is not None) == (leaf["kind"] == "result")', put: "True" }],
    [{ within: "check_leaf", find: 'leaf["kind"] == "result" and is_decided', put: "False" }],
    [
      {
        within: "check_leaf",
        find: '{leaf["answered"], leaf["rule"], leaf["verdict"]}',
        put: '{leaf["rule"], leaf["verdict"]}',
      },
    ],
    [
      {
        within: "check_leaf",
        find: '{leaf["answered"], leaf["rule"], leaf["verdict"]}',
        put: '{leaf["answered"], leaf["verdict"]}',
      },
    ],
    [
      {
        within: "check_leaf",
        find: '{leaf["answered"], leaf["rule"], leaf["verdict"]}',
        put: '{leaf["answered"], leaf["rule"]}',
      },
    ],
    [{ within: "verify_folder", find: 'int(leaf["check"]) < row', put: 'int(leaf["check"]) <= row' }],
    [{ within: "verify_folder", find: 'leaf["key"] + leaf["tool"]', put: 'leaf["key"]' }],
    [{ within: "verify_folder", find: 'leaf["key"] + leaf["tool"]', put: 'leaf["tool"]' }],
    [{ within: "verify_folder", find: 'caller if leaf["kind"] == "check" else ""', put: "caller" }],
    [{ within: "check_evidence", find: 'leaf["kind"] != "change"', put: 'leaf["kind"] == "check"' }],
    [{ within: "check_evidence", find: 'leaf["kind"] != "change"', put: "True" }],
  ],
  javascript: [
    [{ within: "strictBase64", find: "bytes.toString(form) === text", put: "true" }],
    [{ within: "readCheckpoint", find: "name === origin", put: "true" }],
    [{ within: "textOf", find: "isUtf8(bytes)", put: "true" }],
    [{ within: "readCheckpoint", find: "lines.length <= 64", put: "true" }],
    [{ within: "readCheckpoint", find: "keyName.test(name)", put: '!name.includes("+")' }],
    [{ within: "checkEvidence", find: "areParts && areSalted", put: "areParts" }],
    [{ within: "checkEvidence", find: "areParts && areSalted", put: "areSalted" }],
    [{ within: "checkEvidence", find: "ascend(names.slice(six.length))", put: "true" }],
    [{ within: "places", text: String.raw`[\\w-]*`, put: ".*" }],
    [{ within: "checkEvidence", find: 'place < six.length ? "" : $name', put: '""' }],
    [{ within: "checkEvidence", find: "`${names[place]}~`", put: "names[place]" }],
    [{ within: "checkEvidence", find: 'name !== "effects"', put: "true" }],
    [{ within: "settle", find: '!names.includes(part.split(".")[0])', put: "true" }],
    [
      {
        within: "settle",
        find: '!names.includes(part) && !names.includes(part.split(".")[0])',
        put: "!names.some((name) => part.startsWith(name))",
      },
    ],
    [
      { within: "settle", find: "names.length > 0", put: "true" },
      { within: "settle", find: "ascend(names)", put: "true" },
    ],
    [{ within: "hintedKeys", find: "hint.test(text)", put: "text" }],
    [{ within: "checkLeaf", find: '(act !== undefined) === (kind === "change")', put: "true" }],
    [{ within: "checkLeaf", find: '(check !== undefined) === (kind === "result")', put: "true" }],
    [{ within: "checkLeaf", find: 'kind !== "result" || isResult', put: "true" }],
    [{ within: "checkLeaf", find: "[answered, rule, reached]", put: "[rule, reached]" }],
    [{ within: "checkLeaf", find: "[answered, rule, reached]", put: "[answered, reached]" }],
    [{ within: "checkLeaf", find: "[answered, rule, reached]", put: "[answered, rule]" }],
    [{ within: "checkLeaf", find: "`${key}${tool}`", put: "key" }],
    [{ within: "checkLeaf", find: "`${key}${tool}`", put: "tool" }],
    [{ within: "verifyFolder", find: 'leaf.kind === "check" ? once(leaf.caller) : ""', put: "once(leaf.caller)" }],
    [{ within: "checkEvidence", find: 'leaf.kind !== "change"', put: 'leaf.kind === "check"' }],
    [{ within: "checkEvidence", find: 'leaf.kind !== "change"', put: "true" }],
  ],
};

/** Returns verifiers from which one check was removed, each with the removed text. */
function wrongVerifiers(language: Language, program: string): readonly Swept[] {
  const file = join(root, verifiers[language]);
  const isPython = language === "python";
  const sweep = withoutCheck[language];
  return [
    ...(isPython ? sweptPython(program, file, sweep) : sweptFile(file, sweep)),
    ...defects[language].map((mutations) => ({
      found: JSON.stringify(mutations),
      text: isPython ? mutatedPython(program, file, mutations) : mutatedFile(file, mutations),
    })),
  ];
}

suite("positive control: a verifier without one of its checks is noticed", () => {
  for (const language of ["python", "javascript"] as const) {
    const program = programOf(language);
    control(
      `the vectors notice each check that is missing from ${verifiers[language]}`,
      { skip: program === undefined && "no interpreter is here" },
      (t) => {
        const wrong = wrongVerifiers(language, program ?? "");
        t.diagnostic(`${wrong.length} checks`);
        assert.ok(wrong.length >= 20 + defects[language].length, "the checks were not found");
        const unnoticed = wrong.filter(({ found, text }, at) => {
          const file = join(folder, language === "python" ? `doctored_${at}.py` : `doctored-${at}.mjs`);
          writeFileSync(file, text);
          // Run the few cases with the check's code first, because they are the likeliest to notice it.
          const isLikely = ({ expected }: Job): boolean => "code" in expected && found.includes(`"${expected.code}"`);
          const isNoticed = (work: readonly Job[]): boolean => misjudged(program ?? "", file, work).length > 0;
          return !isNoticed(jobs.filter(isLikely)) && !isNoticed(jobs);
        });
        assert.deepEqual(
          unnoticed.map(({ found }) => found),
          [],
        );
      },
    );
  }
});

/**
 * Goal: whoever holds an export finds every break of it, at the same row and with the same code, in Python and in JavaScript;
 * and each check of a verifier is there for a reason. Method: spec/vectors/exports, made by a plain generator that shares
 * nothing with src/, judged by both verifiers under every interpreter that is here; then the same by verifiers from which
 * one check at a time was taken out, which the vectors must notice.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import { runtimes } from "../clients/conformance/runtimes.ts";
import { exportCases } from "./exports/cases.ts";
import type { Expected } from "./exports/ground.ts";
import { proofCases } from "./exports/proofs.ts";
import {
  cutInputsText,
  filesOf,
  placeVector,
  proofsText,
  readVectors,
  vectorFolder,
  vectorsText,
} from "./exports/vectors.ts";
import { bases } from "./exports/ground.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
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
    placeVector(vector, target);
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

/** What a verifier says of some jobs, in one process; undefined where that breaks down, as a doctored one may. */
function judge(program: string, verifier: string, asked: readonly Job[]): readonly Report[] | undefined {
  const driver = verifier.endsWith(".py") ? ["judge.py"] : ["--max-old-space-size=200", "judge.mjs"];
  const given = driver.map((each) => (each.startsWith("-") ? each : join(root, "test/exports", each)));
  const { status, stdout } = spawnSync(program, [...given, verifier], {
    input: JSON.stringify(asked.map(({ target, keys, witnesses }) => ({ target, keys, witnesses }))),
    encoding: "utf8",
    maxBuffer: 2 ** 26,
    timeout: 120_000,
  });
  return status === 0 ? (JSON.parse(stdout) as readonly Report[]) : undefined;
}

/** A report as far as a case expects something of it. */
function summary(report: Report): unknown {
  if (report.thrown !== undefined) return report;
  if (report.ok !== true) return { row: report.problem?.row, code: report.problem?.code };
  if (report.leaf !== undefined) return { leaf_seq: report.leaf.seq };
  const { rows, contracts, erased_parts, signed_by, cosigned_by } = report;
  return { rows, contracts, erased_parts, signed_by: signed_by?.length, cosigned_by: cosigned_by?.length };
}

/** The jobs of which a verifier says something else than it must. */
function misjudged(program: string, verifier: string, asked: readonly Job[]): readonly object[] {
  const reports = judge(program, verifier, asked);
  return asked.flatMap(({ name, expected }, at) => {
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
      "node test/exports/vectors.ts --write",
    );
    assert.equal(readFileSync(join(vectorFolder, "proofs.json"), "utf8"), proofsText());
    assert.equal(readFileSync(join(vectorFolder, "cut-inputs.json"), "utf8"), cutInputsText());
    for (const [base, files] of bases) assert.deepEqual(filesOf(join(vectorFolder, base)), new Map(files));
  });

  test("a vector, put together, is the case that it was made from", () => {
    for (const [at, { name, files }] of exportCases.entries())
      assert.deepEqual(filesOf(join(folder, `case-${at}`)), new Map(files), name);
  });

  test("spec/receipt.md shows the first row of members as it is", () => {
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
    test(`${name} judges every vector as it must`, () => {
      const verifier = join(root, verifiers[languageOf(name)]);
      assert.deepEqual(misjudged(command[0] ?? "", verifier, jobs), []);
    });
  }
  for (const name of absent) test(`${name} judges every vector as it must`, { skip: `${name} is not here` }, () => {});
});

/** A verifier with one thing taken out, in the source's own words. */
interface Doctored {
  readonly fault: string;
  readonly text: string;
}

/** Each `need(` of a verifier in turn does nothing. */
function withoutOneCheck(language: Language, text: string): readonly Doctored[] {
  const needless = language === "python" ? "\ndef needless(*given):\n    pass\n" : "\nfunction needless() {}\n";
  // What is defined must be there before the last lines of a Python file run.
  const place = language === "python" ? text.indexOf("\ndef sha256") : text.length;
  return [...text.matchAll(/^.*(?<!def |function )\bneed\(.*$/gm)].map((found) => {
    const at = found.index + found[0].indexOf("need(");
    const changed = `${text.slice(0, at)}needless(${text.slice(at + 5)}`;
    const [before, behind] = place < at ? [place, place] : [place + 4, place + 4];
    return { fault: found[0].trim(), text: `${changed.slice(0, before)}${needless}${changed.slice(behind)}` };
  });
}

/** What no `need(` says by itself. */
const changes: Readonly<Record<Language, readonly (readonly [from: string, to: string])[]>> = {
  python: [
    ["data if spelled == text else None", "data"],
    ["s >= ORDER", "False"],
    ["if name == origin else []", "if True else []"],
    ["text.encode() == data and text.endswith", "text.endswith"],
    ["leaf and leaf[0].encode() == data and", "leaf and"],
    [' and signatures.count("\\n") <= 64', ""],
    ["KEY_NAME.fullmatch(words[1])", 'words[1] and "+" not in words[1]'],
    ["names[6:] == sorted(set(names[6:]))", "True"],
    ["sorted(set(names[6:]))", "sorted(names[6:])"],
    [' + head + b"[A-Za-z0-9_-]*"', ' + head + b".*"'],
    ['digest + name.encode() + b"~" for', "digest for"],
    [' + b"~" for', " for"],
    [' and "effects" not in erased', ""],
    ['{name, name.split(".")[0]}.isdisjoint(names)', "name not in names"],
    ['{name, name.split(".")[0]}.isdisjoint(names)', 'not f"{name}.".startswith(tuple(names))'],
    [" and names and text ==", " and text =="],
    [" if HINT.fullmatch(text) else []", ""],
    ['(leaf["act"] is not None) == (leaf["kind"] == "change")', "True"],
    ['(leaf["check"] is not None) == (leaf["kind"] == "result")', "True"],
    ['leaf["kind"] == "result" and is_decided', "False"],
    ['{leaf["answered"], leaf["rule"], leaf["verdict"]}', '{leaf["rule"], leaf["verdict"]}'],
    ['{leaf["answered"], leaf["rule"], leaf["verdict"]}', '{leaf["answered"], leaf["verdict"]}'],
    ['{leaf["answered"], leaf["rule"], leaf["verdict"]}', '{leaf["answered"], leaf["rule"]}'],
    ['int(leaf["check"]) < row and ', 'int(leaf["check"]) <= row and '],
    ['leaf["key"] + leaf["tool"]', 'leaf["key"]'],
    ['leaf["key"] + leaf["tool"]', 'leaf["tool"]'],
    ['caller if leaf["kind"] == "check" else ""', "caller"],
    ['leaf["kind"] != "change" and', 'leaf["kind"] == "check" and'],
    ['leaf["kind"] != "change" and', ""],
  ],
  javascript: [
    ["bytes.toString(form) === text", "true"],
    ["name === origin ? found.signed_by : []", "found.signed_by"],
    ['isUtf8(bytes) ? bytes.toString() : ""', "bytes.toString()"],
    [" && lines.length <= 64", ""],
    ["keyName.test(name) && blob.length > 4", '!name.includes("+") && blob.length > 4'],
    ["areParts && areSalted", "areParts"],
    ["areParts && areSalted", "areSalted"],
    [" && ascend(names.slice(six.length))", ""],
    ["${head}[\\\\w-]*", "${head}.*"],
    ['(place < six.length ? "" : `${names[place]}~`)', '""'],
    ["${names[place]}~", "${names[place]}"],
    [' && name !== "effects"', ""],
    [' && !names.includes(part.split(".")[0])', ""],
    ['!names.includes(part) && !names.includes(part.split(".")[0])', "!names.some((name) => part.startsWith(name))"],
    [" && names.length > 0 && ascend(names)", ""],
    ["hint.test(text)", "text"],
    ['(act !== undefined) === (kind === "change")', "true"],
    ['(check !== undefined) === (kind === "result")', "true"],
    ['(kind !== "result" || isResult)', "true"],
    ["[answered, rule, reached]", "[rule, reached]"],
    ["[answered, rule, reached]", "[answered, reached]"],
    ["[answered, rule, reached]", "[answered, rule]"],
    ["`${key}${tool}`", "key"],
    ["`${key}${tool}`", "tool"],
    ['leaf.kind === "check" ? once(leaf.caller) : ""', "once(leaf.caller)"],
    ['leaf.kind !== "change" && name', 'leaf.kind === "check" && name'],
    ['leaf.kind !== "change" && name', "name"],
  ],
};

suite("positive control: a verifier from which one check was taken out is noticed", () => {
  for (const language of ["python", "javascript"] as const) {
    const text = readFileSync(join(root, verifiers[language]), "utf8");
    const doctored = [
      ...withoutOneCheck(language, text),
      ...changes[language].map(([from, to]) => {
        assert.equal(text.split(from).length, 2, `${verifiers[language]} has not exactly one ${from}`);
        return { fault: `${from} -> ${to}`, text: text.replace(from, () => to) };
      }),
    ];
    const program = programOf(language);
    test(
      `${verifiers[language]}: ${doctored.length} checks`,
      { skip: program === undefined && "no interpreter is here" },
      () => {
        assert.ok(doctored.length >= 20, "the checks were not found");
        const unnoticed = doctored.filter(({ fault, text: changed }, at) => {
          const file = join(folder, language === "python" ? `doctored_${at}.py` : `doctored-${at}.mjs`);
          writeFileSync(file, changed);
          // The cases of the code that the line names are the likeliest to notice it, and few.
          const isLikely = ({ expected }: Job): boolean => "code" in expected && fault.includes(`"${expected.code}"`);
          const isNoticed = (asked: readonly Job[]): boolean => misjudged(program ?? "", file, asked).length > 0;
          return !isNoticed(jobs.filter(isLikely)) && !isNoticed(jobs);
        });
        assert.deepEqual(
          unnoticed.map(({ fault }) => fault),
          [],
        );
      },
    );
  }
});

/**
 * Goal: the tests next to each contract in contracts/ cover all of it, and `analyze` has no findings. Method: `svc-gate
 * test` covers every outcome. As a control of those tests, each rule in turn is switched off (`mode: observe`), each
 * bound in a condition is moved by one, and each counter ignores outcomes; some case must fail each time. Among the hostile texts in
 * spec/vectors/functions, only the listed harmless ones are allowed.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import { analyzeCommand } from "../../../packages/workbench/src/commands/analyze.ts";
import { EvaluationTrace } from "../../../packages/records/src/evaluation-trace.ts";
import { testCommand } from "../../../packages/workbench/src/test/command.ts";
import { Coverage } from "../../../packages/workbench/src/test/coverage.ts";
import type { TestCase, TestFile } from "../../../packages/workbench/src/test/document.ts";
import { readTests } from "../../../packages/workbench/src/test/read.ts";
import { runTests } from "../../../packages/workbench/src/test/run.ts";
import { loadFunctions } from "../../../packages/readers/src/contract.ts";
import { loadContracts } from "../../../packages/gate/src/server/policy/mod.ts";
import { compile, judge, readReady } from "../../support/contract-kit.ts";
import { temporaryFolder } from "../../support/gate.ts";

const contracts = fileURLToPath(new URL("../../../contracts", import.meta.url));
const names = globSync("{,hosts/}*.yaml", { cwd: contracts })
  .filter((name) => !name.endsWith(".test.yaml"))
  .map((name) => name.slice(0, -".yaml".length))
  .toSorted();

const options = { json: false, junit: undefined, coverage: false, filter: undefined, watch: false };

interface Mutant {
  readonly what: string;
  /** The changed rule, or nothing for a counter. */
  readonly rule: string;
  readonly text: string;
}

/** Rules that a limit of the published contract switches off, so its tests never see them; another test sets the limit. */
const offAsPublished: Readonly<Record<string, { readonly limit: string; readonly file: string }>> = {
  "managed-settings": { limit: "managed_settings: true", file: "../test/unit/published-contracts/hosts.test.ts" },
};

/** Returns the contract with each rule switched off, each bound of a rule moved, and each counter without outcomes. */
function mutantsOf(text: string): readonly Mutant[] {
  const starts = Array.from(text.matchAll(/^ {2}- rule: (\S+)/gm), ({ index, 1: rule = "" }) => ({ index, rule }));
  const settling = Array.from(text.matchAll(/\n {4}settles: outcome.*|, settles: outcome/g), ({ index, 0: line }) => ({
    what: `a counter without outcomes, at ${index}`,
    rule: "",
    text: text.slice(0, index) + text.slice(index + line.length),
  }));
  const changed = starts.flatMap(({ index, rule }, at) => {
    if (offAsPublished[rule] !== undefined) return [];
    const end = starts[at + 1]?.index ?? text.length;
    const block = text.slice(index, end);
    const replaced = (what: string, other: string): Mutant[] =>
      other === block ? [] : [{ what: `${rule}: ${what}`, rule, text: text.slice(0, index) + other + text.slice(end) }];
    return [
      ...replaced("switched off", block.replace(/^ {4}verdict:/m, "    mode: observe\n    verdict:")),
      ...replaced("not final", block.replace(/^ {4}final: true.*\n/m, "")),
      ...replaced("`>=` for `>`", block.replace(/ > (?=limits|[0-9])/, " >= ")),
      ...replaced("`>` for `>=`", block.replace(/ >= (?=limits|[0-9])/, " > ")),
    ];
  });
  return [...changed, ...settling];
}

/** Returns whether a case fails with the changed contract. The cases that expect the changed rule run first. */
async function isNoticed(contract: string, tests: TestFile, rule: string): Promise<boolean> {
  const loaded = await loadContracts(contract, contract);
  assert.ok(loaded.ok, JSON.stringify(loaded));
  const subject = { policySet: loaded.value, trace: new EvaluationTrace(), coverage: new Coverage(loaded.value) };
  for (const each of tests.cases.toSorted((one, other) => expects(other, rule) - expects(one, rule))) {
    const results = await runTests({ ...tests, cases: [each] }, subject, () => true);
    if (results.some(({ failure }) => failure !== undefined)) return true;
  }
  return false;
}

/** 1 if a call of the case expects the rule, else 0. */
function expects({ steps }: TestCase, rule: string): number {
  return Number(steps.some((step) => step.kind === "call" && step.expect?.rule?.endsWith(rule) === true));
}

for (const name of names) {
  suite(`contracts/${name}.yaml`, () => {
    const file = join(contracts, `${name}.yaml`);

    test("the contract's tests pass and cover every outcome", async () => {
      const outcome = await testCommand([join(contracts, `${name}.test.yaml`)], { ...options, min: "100" });
      assert.equal(outcome.exitCode, 0, outcome.text);
    });

    test("`analyze` reports no finding in the contract", async () => {
      const outcome = await analyzeCommand(file, { json: false, deny: true });
      assert.equal(outcome.exitCode, 0, outcome.text);
    });

    test("the contract's tests notice each changed rule, and each counter that ignores outcomes", async (t) => {
      const copy = join(temporaryFolder(t), `${basename(name)}.yaml`);
      const mutants = mutantsOf(readFileSync(file, "utf8"));
      assert.ok(mutants.length >= 5, `${mutants.length} mutants`);
      const tests = join(contracts, `${name}.test.yaml`);
      const read = readTests({ name: tests, text: readFileSync(tests, "utf8") });
      assert.ok(read.ok);
      assert.equal(await isNoticed(file, read.value, ""), false, "the published contract passes");
      const missed: string[] = [];
      for (const { what, rule, text } of mutants) {
        writeFileSync(copy, text);
        if (!(await isNoticed(copy, read.value, rule))) missed.push(what);
      }
      assert.deepEqual(missed, []);
    });
  });
}

test("each rule that is switched off as published is tested elsewhere", () => {
  const all = names.map((name) => readFileSync(join(contracts, `${name}.yaml`), "utf8")).join("");
  for (const [rule, { limit, file }] of Object.entries(offAsPublished)) {
    assert.ok(all.includes(`- rule: ${rule}\n`), `no contract has the rule ${rule}`);
    assert.ok(readFileSync(join(contracts, file), "utf8").includes(limit), file);
  }
});

/** The allowed texts of each corpus that look hostile or odd. */
const harmless: Readonly<Record<string, readonly string[]>> = {
  shell: [
    "cat f | tee g",
    "echo '$(rm x)'",
    "cat <<'EOF'\n$(rm x)\nEOF",
    "ls # $(rm x)",
    'echo "\\"; rm x; echo \\""',
    "command -v rm",
    "ls 2>/dev/null >&2 2>&1",
    "{ ls; } > f",
    "cat <<'E'\n$KEY\nE",
    "git log --oneline | head -5",
    "[[ -v a[1] ]]",
    "printf '%s\\n' a b",
    "printf '50%%\\n'",
    "printf '%%n is not a conversion'",
    "printf '%qn %-8s|%5.2f\\n' a b 1",
    "cat <<'E F'\nrm x\nE F\n",
    "[[ ! -f src/main.ts ]] && ls",
    "ls {} x{}y",
    "set -euo pipefail; ls",
    "grep -m 1 -A2 id_rsa -- docs",
    'echo "a \\\n b"',
    "[[ -f /etc/passwd ]]",
  ],
  sql: [
    `-- ${"-".repeat(200)}\nSELECT 1`,
    "SHOW server_version",
    "SELECT '/*! x */', $$ DELETE FROM t; $$, E'\\'' -- a comment\n",
    "select o.date, o.count, c.name from orders o join customers c on c.id = o.customer_id limit 5",
    "select (address).city, (address).name from customers limit 1",
    "SELECT 1",
    "select (json_each('{}')).key, (o).total, (select o).total, (max(o)).total from orders o limit 1",
  ],
  http: [
    "HTTPS://API.Example.COM/Path",
    "https://api.example.com/Path",
    "https://example.com",
    "https://example.com/caf%C3%A9/a%20b",
    "https://example.com/?q=a%2Fb&x='1'#part",
  ],
};

/** A text, or its parts, each with its number of occurrences. */
type Written = string | readonly (readonly [part: string, times: number])[];

interface Corpus {
  readonly rows: readonly { readonly text?: Written; readonly given?: { readonly text?: string } }[];
}

function textsOf(corpus: string): readonly string[] {
  const file = new URL(`../../../spec/vectors/functions/${corpus}.json`, import.meta.url);
  const { rows } = JSON.parse(readFileSync(file, "utf8")) as Corpus;
  return rows.map(({ text, given }) => written(text ?? given?.text ?? "")).filter((text) => text.isWellFormed());
}

function written(text: Written): string {
  return typeof text === "string" ? text : text.map(([part, times]) => part.repeat(times)).join("");
}

/** Returns the texts that the contract allows, each in its own call. */
async function allowedOf(name: string, corpus: string, callOf: (text: string) => object): Promise<readonly string[]> {
  // The texts do harm by `rm x`, which may change a file of the workspace.
  const contract = compile(readReady(name).replace("commands:\n", "commands:\n  without: [rm]\n"));
  await loadFunctions(contract);
  const [tool = ""] = contract.tools.keys();
  const texts = textsOf(corpus);
  assert.ok(texts.length > 50, `${texts.length} texts`);
  return texts.filter((text) => judge(contract, { tool, input: callOf(text) }).verdict === "ALLOW");
}

suite("hostile texts under the contracts shell, sql and http", () => {
  test("the contract shell allows only the harmless texts", async () => {
    const allowed = await allowedOf("shell", "shell", (command) => ({ command, cwd: "/srv" }));
    assert.deepEqual(allowed, harmless["shell"]);
  });
  test("the contract sql allows only the harmless texts", async () => {
    const allowed = await allowedOf("sql", "sql", (sql) => ({ sql, database: "app" }));
    assert.deepEqual(allowed, harmless["sql"]);
  });
  test("the contract http allows only the harmless texts", async () => {
    const allowed = await allowedOf("http", "url", (url) => ({ url }));
    assert.deepEqual(allowed, harmless["http"]);
  });
});

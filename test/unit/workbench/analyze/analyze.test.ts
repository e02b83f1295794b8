/**
 * Goal: `svc-gate analyze` finds the finding in the first contract of each page of docs/findings and nothing in the
 * second. Method: the two contracts of each page are compiled and analysed. The table of findings, the pages and their
 * index are compared; further cases try comments that allow a finding, the command's output and its exit codes.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { analyze, findingKinds, type ContractFinding } from "../../../../packages/workbench/src/analysis/mod.ts";
import { analyzeCommand } from "../../../../packages/workbench/src/commands/analyze.ts";
import { readKeys } from "../../../../packages/workbench/src/commands/keys-file.ts";
import {
  loadFunctions,
  recompile,
  renderDiagnostic,
  type PolicySet,
} from "../../../../packages/readers/src/contract.ts";
import { looksLike } from "../../../../packages/core/src/wire/mod.ts";
import { compile, conditionText } from "../../../support/contract-kit.ts";

const folder = new URL("../../../../docs/findings/", import.meta.url);

/** @param keys the output of `svc-gate keys list --json` */
async function findings(text: string, keys?: string): Promise<readonly ContractFinding[]> {
  const policySet = text.startsWith("--- # ") ? compileFiles(text) : compile(text);
  await loadFunctions(policySet);
  if (keys === undefined) return analyze(policySet);
  const file = join(mkdtempSync(join(tmpdir(), "svc-gate-analyze-")), "keys.json");
  writeFileSync(file, keys);
  try {
    return analyze(policySet, await readKeys(file));
  } finally {
    rmSync(dirname(file), { recursive: true });
  }
}

/** Compiles a mandate and its contracts, each after a line with its name, as in GET /rules. */
function compileFiles(text: string): PolicySet {
  const compiled = recompile(text);
  if (!compiled.ok) assert.fail(compiled.problem.map(renderDiagnostic).join("\n\n"));
  return compiled.value;
}

async function codes(text: string, keys?: string): Promise<string[]> {
  return (await findings(text, keys)).map(({ code }) => code);
}

suite("the pages of docs/findings", () => {
  for (const { code, severity, title } of findingKinds) {
    test(`the page of ${code} shows a contract with the finding and a contract without findings`, async () => {
      const page = readFileSync(new URL(`${code}.md`, folder), "utf8");
      assert.equal(page.startsWith(`# ${code}\n\n${title} A ${severity}.\n\n## Why it matters\n`), true);
      const examples = [...page.matchAll(/```yaml\n(.*?)```/gs)].map((match) => match[1] ?? "");
      assert.equal(examples.length, 2);
      const [bad = "", good = ""] = examples;
      const [badKeys, goodKeys] = [...page.matchAll(/```json\n(.*?)```/gs)].map((match) => match[1] ?? "");
      const found = await codes(bad, badKeys);
      assert.equal(found.includes(code), true, `the bad example has ${found.join(", ")}`);
      assert.deepEqual(await codes(good, goodKeys), []);
    });
  }

  test("docs/findings has a page for each finding and no others", () => {
    const pages = readdirSync(folder).filter((name) => name !== "README.md");
    assert.deepEqual(pages.toSorted(), findingKinds.map(({ code }) => `${code}.md`).toSorted());
  });

  test("the index in docs/findings lists every finding", () => {
    const rows = findingKinds.map(({ code, severity, title }) => `| [${code}](${code}.md) | ${severity} | ${title} |`);
    const index = new URL("README.md", folder);
    const [head = "", foot = ""] = readFileSync(index, "utf8").split(/(?<=\| --- \| --- \| --- \|\n)[^]*?(?=\n\n)/);
    const text = `${head}${rows.join("\n")}${foot}`;
    if (process.env["UPDATE_GOLDEN"] !== undefined) writeFileSync(index, text);
    assert.equal(readFileSync(index, "utf8"), text);
  });
});

const withRule = (before: string, after = ""): string =>
  conditionText("input.n > 5 && input.n < 3").replace("rules: [", `rules:\n${before}  [`) + after;

suite("comments that allow a finding", () => {
  const cases: readonly (readonly [comment: string, expected: readonly string[]])[] = [
    ["", ["never-fires"]],
    ["  # svc-gate: allow never-fires because it is an example\n", []],
    ["  # svc-gate: allow never-fires because it is an example\n  # and another comment\n\n", []],
    ["  # svc-gate: allow never-fires\n", ["suppression-without-reason", "never-fires"]],
    ["  # svc-gate: allow never-fires because\n", ["suppression-without-reason", "never-fires"]],
    ["  # svc-gate: allow always-fires because it is an example\n", ["stale-suppression", "never-fires"]],
    ["  # svc-gate: allow nevr-fires because it is an example\n", ["stale-suppression", "never-fires"]],
    ["  # svc-gate: never-fires because it is an example\n", ["never-fires"]],
  ];
  for (const [comment, expected] of cases) {
    test(`analyze reports ${expected.join(" and ") || "nothing"} with the comment "${comment.trim()}"`, async () => {
      const found = await codes(withRule(comment));
      assert.deepEqual(
        found.filter((code) => !ignored.has(code)),
        expected,
      );
    });
  }

  test("a comment on the rule's own line allows the finding", async () => {
    const text = `${withRule("").trimEnd()} # svc-gate: allow never-fires because it is an example\n`;
    assert.deepEqual(
      (await codes(text)).filter((code) => !ignored.has(code)),
      [],
    );
  });

  test("a comment at the top of the contract does not allow a rule's finding", async () => {
    const text = `# svc-gate: allow never-fires because it is an example\n${withRule("")}`;
    assert.deepEqual(
      (await codes(text)).filter((code) => !ignored.has(code)),
      ["stale-suppression", "never-fires"],
    );
  });
});

/** Findings that the kit's contract has on purpose. */
const ignored: ReadonlySet<string> = new Set(["unused-limit", "unused-fact", "no-rule"]);

suite("names that look alike", () => {
  const alike = [
    ["mail.send", "mail.Send"],
    ["mail_send", "mail-send"],
    ["payment.send", "p\u0430yment.send"],
    ["order.place", "order.plaec"],
    ["file.read", "fi1e.read"],
    ["cust0mer", "customer"],
    ["delete_branch", "delete_brunch"],
  ] as const;
  const apart = [
    ["config.get", "config.set"],
    ["get_user", "get_users"],
    ["read_v1", "read_v2"],
    ["list_issues", "list_commits"],
    ["db.read", "db.write"],
    ["\u043f\u043b\u0430\u0442\u0451\u0436", "\u0441\u0447\u0451\u0442"],
  ] as const;
  for (const [a, b] of alike) test(`${a} looks like ${b}`, () => assert.equal(looksLike(a, b), true));
  for (const [a, b] of apart) test(`${a} does not look like ${b}`, () => assert.equal(looksLike(a, b), false));
  test("a name that mixes two scripts looks like another name", () =>
    assert.equal(looksLike("p\u0430y", "p\u0430y"), true));
  test("a name in a single script does not look like another name", () =>
    assert.equal(looksLike("\u0441\u0447\u0451\u0442", "\u0441\u0447\u0451\u0442"), false));
});

suite("svc-gate analyze", () => {
  const bad = withRule("");
  const file = (t: TestContext, text: string): string => {
    const name = join(mkdtempSync(join(tmpdir(), "svc-gate-analyze-")), "c.yaml");
    writeFileSync(name, text);
    t.after(() => rmSync(dirname(name), { recursive: true }));
    return name;
  };
  const options = { json: false, deny: false };

  test("the command prints position, excerpt and page of a finding, and exits with 1", async (t) => {
    const { exitCode, text } = await analyzeCommand(file(t, bad), options);
    assert.equal(exitCode, 1);
    assert.match(text, /^warning\[never-fires\]: `r` never fires/m);
    assert.match(text, /c\.yaml:\d+:\d+\n/);
    assert.match(text, /\^\^\^/);
    assert.match(text, /= page: docs\/findings\/never-fires\.md/);
  });

  test("the command exits with 0 for no findings or notes, unless notes are denied", async (t) => {
    const clean =
      "contract: c\ntools:\n  t: { input: { type: object, additionalProperties: false }, otherwise: ESCALATE }\n";
    assert.equal((await analyzeCommand(file(t, clean), options)).exitCode, 0);
    const noted = file(t, clean.replace("ESCALATE", "ALLOW"));
    assert.equal((await analyzeCommand(noted, options)).exitCode, 0);
    assert.equal((await analyzeCommand(noted, { ...options, deny: true })).exitCode, 1);
  });

  test("the command reports the same finding as JSON", async (t) => {
    const { exitCode, text } = await analyzeCommand(file(t, bad), { ...options, json: true });
    const { ok, findings: found } = JSON.parse(text) as { ok: boolean; findings: { code: string; line: number }[] };
    assert.deepEqual([exitCode, ok], [1, false]);
    assert.equal(
      found.some(({ code, line }) => code === "never-fires" && line > 1),
      true,
    );
  });

  test("the command names the rules that are less strict than `otherwise`", async (t) => {
    const rule = (verdict: string): string =>
      conditionText("input.n > 5", { otherwise: "ESCALATE" }).replace("verdict: BLOCK", `verdict: ${verdict}`);
    const { text } = await analyzeCommand(file(t, rule("ALLOW")), { ...options, json: true });
    const { loosening } = JSON.parse(text) as { loosening: unknown };
    assert.deepEqual(loosening, [{ tool: "t", rule: "c.r", verdict: "ALLOW", otherwise: "ESCALATE" }]);
    assert.match(
      (await analyzeCommand(file(t, rule("ALLOW")), options)).text,
      /t: c\.r says ALLOW, `otherwise` ESCALATE/,
    );
    assert.doesNotMatch((await analyzeCommand(file(t, rule("BLOCK")), options)).text, /lets calls through/);
  });

  test("the command exits with 2 if the contract does not compile", async (t) => {
    const { exitCode, text } = await analyzeCommand(file(t, "contract: c\n"), options);
    assert.equal(exitCode, 2);
    assert.match(text, /error\[missing\]/);
  });
});

suite("rules in observe mode", () => {
  test("analyze ignores a rule in observe mode", async () => {
    const text = conditionText("input.n > 5 && input.n < 3").replace("verdict: BLOCK", "mode: observe, verdict: BLOCK");
    assert.equal((await codes(text)).includes("never-fires"), false);
  });
});

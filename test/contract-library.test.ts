/**
 * Goal: the tests beside each contract in contracts/ see all of it, and `analyze` has nothing to say of it. Method:
 * `svc-gate test` covers every outcome; then, as a control of those tests, each rule in turn is switched off
 * (`mode: observe`), and each bound in its condition takes in one value more or less: some case must fail.
 */
import assert from "node:assert/strict";
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import { analyzeCommand } from "../src/commands/analyze.ts";
import { testCommand } from "../src/commands/test/command.ts";

const contracts = fileURLToPath(new URL("../contracts", import.meta.url));
const names = globSync("*.yaml", { cwd: contracts })
  .filter((name) => !name.endsWith(".test.yaml"))
  .map((name) => basename(name, ".yaml"))
  .toSorted();
const folder = mkdtempSync(join(tmpdir(), "svc-gate-library-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const options = { json: false, junit: undefined, coverage: false, filter: undefined, watch: false };

interface Mutant {
  readonly what: string;
  readonly text: string;
}

/** The contract with one rule switched off, and with one bound of one rule moved. */
function mutantsOf(text: string): readonly Mutant[] {
  const begins = Array.from(text.matchAll(/^ {2}- rule: (\S+)/gm), ({ index, 1: rule = "" }) => ({ index, rule }));
  return begins.flatMap(({ index, rule }, at) => {
    const end = begins[at + 1]?.index ?? text.length;
    const block = text.slice(index, end);
    const replaced = (what: string, changed: string): Mutant[] =>
      changed === block ? [] : [{ what: `${rule}: ${what}`, text: text.slice(0, index) + changed + text.slice(end) }];
    return [
      ...replaced("switched off", block.replace(/^ {4}verdict:/m, "    mode: observe\n    verdict:")),
      ...replaced("not final", block.replace(/^ {4}final: true.*\n/m, "")),
      ...replaced("`>=` for `>`", block.replace(/ > (?=limits|[0-9])/, " >= ")),
      ...replaced("`>` for `>=`", block.replace(/ >= (?=limits|[0-9])/, " > ")),
    ];
  });
}

for (const name of names) {
  suite(`contracts/${name}.yaml`, () => {
    const file = join(contracts, `${name}.yaml`);

    test("its tests pass and see every outcome", async () => {
      const outcome = await testCommand([join(contracts, `${name}.test.yaml`)], { ...options, min: "100" });
      assert.equal(outcome.exitCode, 0, outcome.text);
    });

    test("`analyze` has nothing to say of it", async () => {
      const outcome = await analyzeCommand(file, { json: false, solver: false, deny: true });
      assert.equal(outcome.exitCode, 0, outcome.text);
    });

    test("its tests notice each rule that is switched off, no longer final, or bounded otherwise", async () => {
      cpSync(join(contracts, `${name}.test.yaml`), join(folder, `${name}.test.yaml`));
      const missed: string[] = [];
      const mutants = mutantsOf(readFileSync(file, "utf8"));
      assert.ok(mutants.length >= 5, `${mutants.length} mutants`);
      for (const { what, text } of mutants) {
        writeFileSync(join(folder, `${name}.yaml`), text);
        const outcome = await testCommand([join(folder, `${name}.test.yaml`)], { ...options, min: undefined });
        assert.notEqual(outcome.exitCode, 2, `${what}: ${outcome.text}`);
        if (outcome.exitCode === 0) missed.push(what);
      }
      assert.deepEqual(missed, []);
    });
  });
}

/**
 * Goal: the authors' commands understand aliases. Method: contracts with and without an alias go through the functions
 * behind `analyze`, `diff`, `import-tools` and `fmt`. A contract without the alias is the positive control of each.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, suite, test } from "node:test";
import { testCommand } from "../../../packages/workbench/src/test/command.ts";
import { readJson } from "../../../packages/core/src/wire/mod.ts";
import { analyze, compareAliases, compareContracts } from "../../../packages/workbench/src/analysis/mod.ts";
import { diffCommand } from "../../../packages/workbench/src/commands/diff.ts";
import { layOut } from "../../../packages/workbench/src/commands/fmt/layout.ts";
import { driftOf } from "../../../packages/workbench/src/commands/import-tools/drift.ts";
import { sourceOf } from "../../../packages/workbench/src/commands/import-tools/source.ts";
import { stubsOf } from "../../../packages/workbench/src/commands/import-tools/stubs.ts";
import { compile } from "../../support/contract-kit.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-gate-aliases-"));
after(() => rmSync(folder, { recursive: true, force: true }));

function contract(aliases: string, other = ""): string {
  return `contract: c
tools:
  shell.run:
    aliases: [${aliases}]
    input: { type: object, additionalProperties: false, required: [command], properties: { command: { type: string } } }
    otherwise: ESCALATE
${other}`;
}

const second = (tool: string, aliases = ""): string =>
  `  ${tool}:\n    aliases: [${aliases}]\n    input: { type: object, additionalProperties: false }\n    otherwise: BLOCK\n`;

function written(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

suite("svc-gate analyze", () => {
  const alike = (text: string): readonly string[] =>
    analyze(compile(text)).flatMap(({ code, message }) => (code === "look-alike-names" ? [message] : []));

  test("two names of two tools that look alike are a finding", () => {
    assert.deepEqual(alike(contract("Bash", second("bash"))), ["the tool `bash` looks like `Bash`"]);
    assert.deepEqual(alike(contract("Bash", second("other", "bash"))), ["the tool `bash` looks like `Bash`"]);
  });

  test("two names of one tool may look alike", () => {
    assert.deepEqual(alike(contract("Bash, bash, shell_run")), []);
  });
});

suite("svc-gate diff", () => {
  const compared = (before: string, changed: string): readonly (readonly unknown[])[] =>
    compareAliases(compile(before), compile(changed)).map(({ name, before: had, after: has, direction }) => [
      name,
      had,
      has,
      direction,
    ]);

  test("an alias that is added is weaker, one that is removed is stricter, and one that moves has changed", () => {
    const [none, alias] = [contract(""), contract("Bash")];
    assert.deepEqual(compared(none, alias), [["Bash", null, "shell.run", "weaker"]]);
    assert.deepEqual(compared(alias, none), [["Bash", "shell.run", null, "stricter"]]);
    assert.deepEqual(compared(contract("Bash", second("other")), contract("", second("other", "Bash"))), [
      ["Bash", "shell.run", "other", "changed"],
    ]);
    assert.deepEqual(compared(contract("", second("Bash")), alias), [["Bash", "Bash", "shell.run", "changed"]]);
    assert.deepEqual(compared(alias, alias), []);
  });

  test("a tool that becomes an alias of another tool is not called stricter", async () => {
    const options = { solver: undefined, timeMs: 1000, guesses: 50 };
    const tools = await compareContracts(compile(contract("", second("Bash"))), compile(contract("Bash")), options);
    assert.deepEqual(
      tools.map(({ tool }) => tool),
      ["shell.run"],
    );
  });

  test("the command prints the change, and refuses it with --no-weaker", async () => {
    const files = [written("before.yaml", contract("")), written("after.yaml", contract("Bash"))] as const;
    const options = { json: false, text: false, weaker: false, time: "10" };
    const { exitCode, text } = await diffCommand(...files, options);
    assert.equal(exitCode, 1);
    assert.match(text, /^aliases of tools:\n {2}Bash: unknown -> shell\.run \(weaker\)$/m);
    const back = await diffCommand(files[1], files[0], { ...options, json: true });
    assert.equal(back.exitCode, 0, "positive control: an alias that is removed lets nothing more through");
    assert.deepEqual(JSON.parse(back.text).aliases, [
      { name: "Bash", before: "shell.run", after: null, direction: "stricter" },
    ]);
  });
});

suite("svc-gate import-tools, fmt and test", () => {
  test("a tool of the source that the contract lists as an alias is neither new nor gone, and is compared", () => {
    const inputSchema = { type: "object", additionalProperties: false, properties: { other: { type: "string" } } };
    const read = readJson(JSON.stringify({ tools: [{ name: "Bash", description: "", inputSchema }] }));
    assert.ok(read.ok);
    const source = sourceOf(read.value.members, "host");
    assert.ok(source.ok);
    const stubs = stubsOf(source.value);
    const { added, gone, changed } = driftOf(stubs, compile(contract("Bash")));
    assert.deepEqual([added, gone, changed.map(({ tool }) => tool)], [[], [], ["Bash"]]);
    const without = driftOf(stubs, compile(contract("")));
    assert.deepEqual([without.added, without.gone], [["Bash"], ["shell.run"]]);
  });

  test("fmt puts `aliases` before the input", () => {
    const moved = contract("Bash").replace(/( {4}aliases: .*\n)([^]*)$/, "$2$1");
    const laidOut = layOut({ name: "c.yaml", text: moved });
    assert.equal(laidOut.ok && laidOut.value, layedOut(contract("Bash")));
    assert.match(laidOut.ok ? laidOut.value : "", /shell\.run:\n {4}aliases: \[Bash\]\n {4}input:/);
  });

  test("a test file may send an alias, and its coverage counts the tool", async () => {
    written("c.yaml", contract("Bash"));
    const cases = "cases: [{ case: alias, tool: Bash, input: { command: ls }, expect: ESCALATE }]\n";
    const file = written("c.test.yaml", `contract: c.yaml\n${cases}`);
    const options = { json: false, junit: undefined, coverage: false, min: "100", filter: undefined, watch: false };
    const { exitCode, text } = await testCommand([file], options);
    assert.equal(exitCode, 0, text);
    const unknown = written("d.test.yaml", `contract: c.yaml\n${cases.replace("Bash", "bash")}`);
    assert.equal((await testCommand([unknown], options)).exitCode, 1);
  });
});

function layedOut(text: string): string {
  const laidOut = layOut({ name: "c.yaml", text });
  return laidOut.ok ? laidOut.value : assert.fail("it is YAML");
}

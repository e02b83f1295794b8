/**
 * Goal: a name means one tool in all contracts of a mandate, and everything after the resolution sees the tool's own name.
 * Method: tables of contracts with their diagnostics, and calls that are judged, counted and counted again.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import {
  compileContracts,
  compileMandate,
  count,
  position,
  prepare,
  recompile,
  recount,
  type Diagnostic,
  type PolicySet,
} from "../../../packages/readers/src/contract.ts";
import { bad, good, limits, parseCheckRequest } from "../../../packages/core/src/wire/mod.ts";
import { compile, judge } from "../../support/contract-kit.ts";

const input = "input: { type: object, additionalProperties: true }";

/** A contract with these tools: for each its name, and the list after `aliases:`. */
function contract(tools: readonly (readonly [tool: string, aliases: string])[], name = "c"): string {
  const lines = tools.map(
    ([tool, aliases]) => `  ${tool}:\n    aliases: ${aliases}\n    ${input}\n    otherwise: ALLOW\n`,
  );
  return `contract: ${name}\ntools:\n${lines.join("")}`;
}

function shown({ code, message, span, hint }: Diagnostic): string {
  return `${span.file.name}:${position(span.file, span.from).line} ${code}: ${message} (${hint ?? ""})`;
}

/** The diagnostics of contracts, with their files and lines. */
function problems(...texts: readonly string[]): readonly string[] {
  const compiled = compileContracts(texts.map((text, at) => ({ name: `${"abc"[at] ?? ""}.yaml`, text })));
  return compiled.ok ? [] : compiled.problem.map(shown);
}

const cases: readonly (readonly [what: string, found: readonly string[], expected: readonly string[]])[] = [
  ["no alias", problems(contract([["t", "[]"]])), []],
  ["two aliases", problems(contract([["t", "[Bash, exec_command]"]])), []],
  [
    "an alias twice in one list",
    problems(contract([["t", "[Bash, Bash]"]])),
    ["a.yaml:4 alias: `Bash` is listed twice (list each name once)"],
  ],
  [
    "the tool's own name",
    problems(contract([["t", "[t]"]])),
    ["a.yaml:4 alias: `t` is the tool's own name (`aliases` lists only its other names)"],
  ],
  [
    "an alias of two tools",
    problems(
      contract([
        ["t", "[Bash]"],
        ["u", "[Bash]"],
      ]),
    ),
    ["a.yaml:8 alias: `Bash` is already an alias of `t` (one name means one tool; line 4 of a.yaml has it first)"],
  ],
  [
    "an alias that is another tool",
    problems(
      contract([
        ["t", "[u]"],
        ["u", "[]"],
      ]),
    ),
    ["a.yaml:4 alias: `u` is a tool of its own (one name means one tool: remove one of them)"],
  ],
  [
    "an alias of two tools in two contracts",
    problems(contract([["t", "[Bash]"]]), contract([["u", "[Bash]"]], "d")),
    ["b.yaml:4 alias: `Bash` is already an alias of `t` (one name means one tool; line 4 of a.yaml has it first)"],
  ],
  [
    "an alias that is a tool of another contract",
    problems(contract([["t", "[u]"]]), contract([["u", "[]"]], "d")),
    ["a.yaml:4 alias: `u` is a tool of its own (one name means one tool: remove one of them)"],
  ],
  [
    "a chain",
    problems(
      contract([
        ["t", "[u]"],
        ["u", "[v]"],
      ]),
    ),
    ["a.yaml:4 alias: `u` is a tool of its own (one name means one tool: remove one of them)"],
  ],
  [
    "one tool in two contracts, one of which has the alias",
    problems(contract([["t", "[Bash]"]]), contract([["t", "[]"]], "d")),
    [],
  ],
  [
    "one tool in two contracts with one alias",
    problems(contract([["t", "[Bash]"]]), contract([["t", "[Bash, sh]"]], "d")),
    [],
  ],
  [
    "a list that is a text",
    problems(contract([["t", "Bash"]])),
    ["a.yaml:4 shape: `aliases` is a list (start each item with `- `)"],
  ],
];

suite("aliases that compile, and aliases that do not", () => {
  for (const [what, found, expected] of cases)
    test(`${what}: ${expected.length === 0 ? "compiles" : "is reported with its line"}`, () =>
      assert.deepEqual(found, expected));

  test("an alias obeys the limits of tool names", () => {
    const name = "é".repeat(limits.toolNameBytesMax / 2);
    assert.deepEqual(problems(contract([["t", `["${name}"]`]])), []);
    for (const wrong of [`["${name}x"]`, "['mail.*']", "['']", '["a\\u0007"]'])
      assert.match(
        problems(contract([["t", wrong]])).join("\n"),
        /^a\.yaml:4 name: `.*` is not the name of a tool/,
        wrong,
      );
  });

  test("a rule that names an alias gets the own name as its hint", () => {
    const rule = 'rules:\n  - { rule: r, on: Bash, when: "true", verdict: BLOCK, reason: never }\n';
    assert.deepEqual(problems(`${contract([["shell.run", "[Bash]"]])}${rule}`), [
      "a.yaml:8 unknown-tool: this contract lists no tool `Bash` (did you mean `shell.run`?)",
    ]);
  });

  test("a mandate compares its contracts, and restricts each name of a tool", () => {
    const files = new Map([
      ["a.yaml", contract([["shell.run", "[Bash]"]])],
      ["b.yaml", contract([["Bash", "[]"]], "d")],
    ]);
    const compiled = (contracts: string): ReturnType<typeof compileMandate> =>
      compileMandate({ name: "m.yaml", text: `mandate: m\ncontracts: ${contracts}\n` }, (name) => {
        const text = files.get(name);
        return text === undefined ? bad("there is no such file") : good({ name, text });
      });
    const both = compiled("[a.yaml, b.yaml]");
    assert.ok(!both.ok);
    assert.deepEqual(both.problem.map(shown), [
      "a.yaml:4 alias: `Bash` is a tool of its own (one name means one tool: remove one of them)",
    ]);
    const narrow = compiled("[{ file: a.yaml, tools: [shell.*] }]");
    assert.ok(!narrow.ok);
    assert.deepEqual(narrow.problem.map(shown), [
      "a.yaml:4 not-allowed: the mandate does not let `c` route `Bash` (it may route `shell.*`)",
    ]);
    const own = compiled("[{ file: a.yaml, tools: [shell.*, Bash] }]");
    assert.ok(own.ok);
    assert.equal(judge(own.value, { tool: "Bash" }).verdict, "ALLOW");
    const again = recompile(own.value.text);
    assert.deepEqual(again.ok && [...again.value.aliases], [["Bash", "shell.run"]]);
    assert.ok(!compiled("[{ file: a.yaml, tools: [Bash] }]").ok, "positive control: an alias is not the tool's name");
  });
});

const counted = `${contract([
  ["shell.run", "[Bash]"],
  ["file.read", "[Read]"],
])}counters:
  runs: { of: [shell.run], per: key }
rules:
  - { rule: own, on: [shell.run], when: tool != "shell.run", verdict: BLOCK, final: true, reason: another name }
`;

/** The counters that a call updates, by name, and the tool that its plan is for. */
function updatesOf(policySet: PolicySet, name: string): readonly (string | undefined)[] {
  const request = parseCheckRequest(JSON.stringify({ tool_name: name, tool_input: {} }));
  assert.ok(request.ok);
  const prepared = prepare(policySet, request.value, { keyName: "k", sessionId: null });
  const updates = count(prepared, { verdict: "ALLOW", answered: "ALLOW" });
  return [prepared.plan?.tool, ...updates.map(({ counter }) => counter.name)];
}

suite("calls under an alias", () => {
  const policySet = compile(counted);

  test("rules and counters see the tool's own name", () => {
    for (const name of ["shell.run", "Bash"]) {
      assert.equal(judge(policySet, { tool: name }).verdict, "ALLOW");
      assert.deepEqual(updatesOf(policySet, name), ["shell.run", "c.runs"]);
    }
    assert.deepEqual(updatesOf(policySet, "Read"), ["file.read"], "positive control: another tool moves nothing");
  });

  test("an unknown name gets a hint that says what the alias means", () => {
    const { rule, reason } = judge(policySet, { tool: "bash" });
    assert.deepEqual(
      [rule, reason],
      ["$route", 'Svc: unknown tool "bash": no contract routes it; it resembles "Bash", an alias of "shell.run"'],
    );
  });

  test("an old row is counted by the tool that was judged, whatever its name means now", () => {
    const [counter] = policySet.counters;
    assert.ok(counter);
    const row = (toolName: string): number | undefined =>
      recount(counter, policySet, {
        toolName,
        sessionId: null,
        keyName: "k",
        inputText: "{}",
        platformText: "null",
        verdict: "ALLOW",
        answered: "ALLOW",
        rule: "c.$otherwise",
      })?.length;
    assert.deepEqual([row("shell.run"), row("Bash")], [1, 0]);
  });
});

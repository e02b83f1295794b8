/**
 * Goal: `svc-gate test` passes exactly the expected outcomes, reports for each failure the expected and the actual
 * outcome with the reason, and counts coverage. Method: test files in a temporary folder next to one contract; the
 * output for a person is golden (UPDATE_GOLDEN=1 writes it).
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, suite, test } from "node:test";
import { testCommand, type TestOptions } from "../../../packages/workbench/src/test/command.ts";
import type { Outcome } from "../../../packages/gate/src/cli/outcome.ts";
import { control } from "../../support/controls/control.ts";
import { root } from "../../support/gate.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const contract = `contract: shop
limits: { usd: 50, open: true, names: [ada, eve] }
platform: { type: object, required: [spent], properties: { spent: { type: number, minimum: 0 }, price: { type: number } } }
tools:
  pay:
    input:
      type: object
      additionalProperties: false
      required: [usd, to]
      properties: { usd: { type: number, exclusiveMinimum: 0 }, to: { type: string }, note: { type: string } }
    requires: platform.present
    otherwise: ALLOW
  look:
    input: { type: object, additionalProperties: false }
    otherwise: { verdict: ESCALATE, reason: a person looks too }
counters:
  tries: { of: pay, per: session, within: 10m }
  paid: { of: pay, per: key, sum: input.usd, counting: released, within: day, timezone: UTC }
  known: { of: pay, per: gate, counting: released, remembers: input.to }
rules:
  - rule: over
    on: pay
    when: limits.open && (platform.spent + input.usd > limits.usd || counters.paid > 90)
    verdict: BLOCK
    final: true
    reason: "{input.usd} USD is over {limits.usd}"
  - rule: stranger
    on: pay
    when: "!(input.to in counters.known) && !limits.names.exists(name, name == input.to)"
    verdict: ESCALATE
    reason: "{input.to} is new"
  - { rule: busy, on: pay, when: counters.tries >= 3, verdict: BLOCK, reason: "{counters.tries} tries" }
  - { rule: noted, on: pay, when: has(input.note), mode: observe, verdict: BLOCK, reason: a note }
`;

const head = `contract: shop.yaml
now: "2026-01-15T12:00:00Z"
session: s
fixtures: { wallet: { spent: 10, price: 1 } }
templates: { pay: { tool: pay, platform: wallet, input: { usd: 10, to: ada } } }
`;

/** A test file that reaches every outcome of the contract. */
const whole = `${head}cases:
  - { case: it runs, like: pay, expect: { verdict: ALLOW, rule: $otherwise, final: false, fired: [], observed: [] } }
  - { case: no facts, like: pay, platform: null, expect: { verdict: BLOCK, rule: $requires.1 } }
  - { case: over, like: pay, input: { usd: 40.000000000000000000001 }, expect: { verdict: BLOCK, rule: over, final: true } }
  - { case: up to it, like: pay, input: { usd: 4e1 }, expect: ALLOW }
  - { case: paid much, like: pay, given: { counters: { paid: 90.01 } }, expect: { rule: shop.over, counters: { paid: 90.01 } } }
  - { case: a note, like: pay, input: { note: hello }, expect: { verdict: ALLOW, observed: noted } }
  - { case: looking, tool: look, expect: { verdict: ESCALATE, reason: "Svc: a person looks too" } }
  - { case: bob is new, like: pay, input: { to: bob }, expect: { verdict: ESCALATE, reason: '"bob" is new' } }
  - case: three tries in ten minutes
    calls:
      - { like: pay, repeat: 3, every: 1m, expect: ALLOW }
      - { like: pay, after: 7m59s999ms, expect: { rule: busy, counters: { tries: 3, shop.paid: 30, 'known["ada"]': 3 } } }
      - { like: pay, session: other, expect: { verdict: ALLOW, counters: { tries: 0 } } }
      - { like: pay, at: "2026-01-15T12:20:00Z", expect: { verdict: ALLOW, counters: { tries: 0 } } }
      - { like: pay, key: another, session: null, expect: { verdict: ALLOW, counters: { paid: 0, tries: 0 } } }
  - case: a new day starts at midnight
    calls:
      - { like: pay, input: { usd: 40 }, at: "2026-01-15T23:59:59.999Z", expect: ALLOW }
      - { like: pay, expect: { counters: { paid: 40 } } }
      - { like: pay, after: 1ms, expect: { counters: { paid: 0 } } }
`;

const folder = mkdtempSync(join(tmpdir(), "svc-gate-test-command-"));
after(() => rmSync(folder, { recursive: true, force: true }));
let folders = 0;

/** Makes a folder with the contract and test files. */
function written(files: Readonly<Record<string, string>>): string {
  const path = join(folder, String((folders += 1)));
  for (const [name, text] of Object.entries({ "shop.yaml": contract, ...files })) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  return path;
}

const lastLine = (text: string): string => text.slice(text.lastIndexOf("\n") + 1);

/** Lists each error and its help, so that the test notices a missing one. */
function saysErrors(name: string, shown: string): void {
  const lines = shown.match(/^error\[.*$|^ +=.*$/gm) ?? [shown];
  for (const [at, line] of lines.entries()) says(`${name}: ${at + 1} of ${lines.length}`, line.trim());
}

const plain: TestOptions = {
  json: false,
  junit: undefined,
  coverage: false,
  min: undefined,
  filter: undefined,
  watch: false,
};

async function run(text: string, options: Partial<TestOptions> = {}): Promise<Outcome> {
  return testCommand([written({ "shop.test.yaml": text })], { ...plain, ...options });
}

function replaced(text: string, from: string, to: string): string {
  assert.ok(text.includes(from), from);
  return text.replace(from, () => to);
}

suite("the results of test files", () => {
  test("a file with every kind of expectation passes with full coverage", async () => {
    const { exitCode, text } = await run(whole, { min: "100" });
    assert.equal(exitCode, 0, text);
    says("all cases passed", lastLine(text));
  });

  const broken: readonly (readonly [from: string, to: string, told: RegExp])[] = [
    ["verdict: ALLOW, rule: $otherwise", "verdict: BLOCK", /verdict +- BLOCK\n +\+ ALLOW/],
    ["rule: $otherwise", "rule: otherwise", /rule +- otherwise\n +\+ shop\.\$otherwise/],
    ["final: true } }", "final: false } }", /final +- false\n +\+ true/],
    ["fired: []", "fired: over", /fired +- over\n +\+ none/],
    ["observed: noted", "observed: []", /observed +- none\n +\+ shop\.noted/],
    ["reason: '\"bob\" is new'", "reason: is old", /reason +- is old\n +\+ Svc: "bob" is new/],
    ['"Svc: a person looks too"', '"Svc: a person looks"', /\+ Svc: a person looks\{\+ too\+\}/],
    ["rule: shop.over, counters: { paid: 90.01", "rule: shop.over, counters: { paid: 90", /shop\.paid/],
    ["shop.paid: 30", "shop.paid: 30.5", /counter shop\.paid +- 30\.5\n +\+ 30\n/],
    ["counters: { paid: 40 }", "counters: { paid: 41 }", /call 2 of 3, 2026-01-15T23:59:59\.999Z/],
    ["after: 1ms, expect: { counters: { paid: 0 }", "expect: { counters: { paid: 0 }", /counter paid +- 0\n +\+ 50\n/],
    ["tries: 3,", "trys: 3,", /counter trys +- 3\n +\+ (.+)\n/],
    ["{ usd: 4e1 }", "{ usd: 4.1e1 }", /shop\.over {2}true {2}\S+shop\.yaml:23:11\n +BLOCK: 4\.1e1 USD is over 50\n/],
    ["after: 7m59s999ms", "after: 8m", /call 4 of 7, 2026-01-15T12:10:00\.000Z/],
    ["{ counters: { paid: 90.01 } }, expect", "{ counters: { pay: 90.01 } }, expect", /given +- a counter pay/],
  ];
  for (const [from, to, told] of broken) {
    control(`positive control: the change to ${to} is noticed`, async () => {
      const { exitCode, text } = await run(replaced(whole, from, to));
      assert.equal(exitCode, 1, text);
      assert.match(text, told);
      const [, sentence] = told.exec(text) ?? [];
      if (sentence !== undefined) says(`in place of ${to}`, sentence);
      assert.match(text, /\b9 of 10\b\D+\b1[0-9]\b/);
    });
  }

  test("in observe mode a blocked call is answered ALLOW and counts as released", async () => {
    const text = `${head}mode: observe
cases:
  - case: in observe mode nothing is held
    calls:
      - { like: pay, input: { usd: 95 }, expect: { verdict: BLOCK, answered: ALLOW } }
      - { like: pay, input: { to: bob }, expect: { verdict: BLOCK, rule: over, fired: [over, stranger] } }
      - { like: pay, input: { to: bob }, expect: { fired: over, counters: { paid: 105, 'shop.known["bob"]': 1 } } }
`;
    assert.equal((await run(text)).exitCode, 0);
    assert.equal((await run(replaced(text, "mode: observe", "mode: enforce"))).exitCode, 1);
  });

  test("a case can leave out members, change a fixture and use a mandate with its limits", async () => {
    const mandate = "mandate: m\ncontracts: [../shop.yaml]\nlimits: { shop: { usd: 20 } }\n";
    const text = `${replaced(head, "contract: shop.yaml", "mandate: mandate.yaml")}cases:
  - { case: a, like: pay, without: input.to, expect: { rule: $input, reason: input.to is missing } }
  - { case: b, like: pay, platform: { from: wallet, spent: 10.01 }, expect: { rule: over, reason: over 20 } }
  - { case: c, like: pay, without: [platform.spent, platform.price], expect: $platform }
`;
    const home = written({
      "below/mandate.yaml": mandate,
      "below/m.test.yaml": replaced(text, "$platform }", "BLOCK }"),
    });
    const { exitCode, text: shown } = await testCommand([home], plain);
    assert.equal(exitCode, 0, shown);
  });

  test("a request that the gate refuses is reported as a refusal, not as a decision", async () => {
    const { exitCode, text } = await run(`${head}cases: [{ case: a, like: pay, session: "", expect: BLOCK }]`);
    assert.equal(exitCode, 2, text);
    const long = `${head}cases: [{ case: a, like: pay, session: ${"x".repeat(3000)}, expect: BLOCK }]`;
    says("a session that is too long", /^ +\+ (.*\b400\b.*)$/m.exec((await run(long)).text)?.[1] ?? "");
  });
});

suite("errors in a test file", () => {
  const cases: readonly (readonly [text: string, name: string])[] = [
    ["cases: []", "no cases"],
    ["cases: [{ case: a, tool: look }]", "a case that expects nothing"],
    ["cases: [{ tool: look, expect: ALLOW }]", "a case without a name"],
    ['cases: [{ case: "a\\nb", tool: look, expect: ALLOW }]', "a name of two lines"],
    ["cases: [{ case: a, expect: ALLOW }]", "a call without a tool"],
    ["cases: [{ case: a, tool: look, expect: allow }]", "a verdict in lower case"],
    ["cases: [{ case: a, tool: look, expect: { verdikt: ALLOW } }]", "an unknown expectation"],
    ["cases: [{ case: a, tool: look, expect: {} }]", "an empty expectation"],
    ["cases: [{ case: a, like: payy, expect: ALLOW }]", "an unknown template"],
    ["cases: [{ case: a, like: pay, platform: walet, expect: ALLOW }]", "an unknown fixture"],
    ["cases: [{ case: a, like: pay, platform: { from: walet }, expect: ALLOW }]", "an unknown fixture to change"],
    ["cases: [{ case: a, like: pay, without: input.x, expect: ALLOW }]", "a member that is not there to leave out"],
    ["cases: [{ case: a, like: pay, at: noon, expect: ALLOW }]", "a moment that is none"],
    ['cases: [{ case: a, like: pay, at: "2026-01-15T11:59:59Z", expect: ALLOW }]', "a moment before the last"],
    ["cases: [{ case: a, like: pay, after: 5, expect: ALLOW }]", "a length of time without a unit"],
    [
      'cases: [{ case: a, like: pay, at: "2026-01-15T12:00:00Z", after: 1s, expect: ALLOW }]',
      "a moment and a length of time",
    ],
    ["cases: [{ case: a, like: pay, every: 1s, expect: ALLOW }]", "an interval without a number"],
    ["cases: [{ case: a, like: pay, repeat: 0, expect: ALLOW }]", "no repetition"],
    ["cases: [{ case: a, like: pay, repeat: 100001, expect: ALLOW }]", "too many repetitions"],
    ["cases: [{ case: a, calls: [{ like: pay }], expect: ALLOW }]", "a case of calls with an expectation"],
    ["cases: [{ case: a, like: pay, given: { counters: { paid: -1 } }, expect: ALLOW }]", "a negative counter"],
    ["cases: [{ case: a, like: pay, expect: ALLOW }, { case: a, like: pay, expect: ALLOW }]", "two cases of one name"],
    ["mode: strict\ncases: [{ case: a, like: pay, expect: ALLOW }]", "an unknown mode"],
    ["mandate: m.yaml\ncases: [{ case: a, like: pay, expect: ALLOW }]", "a mandate and a contract"],
    ["cases: [{ case: a, like: &x pay, expect: ALLOW }]", "a YAML anchor"],
  ];
  for (const [text, name] of cases)
    test(`the command refuses a file with the error "${name}"`, async () => {
      const { exitCode, text: shown } = await run(head + text);
      assert.equal(exitCode, 2, shown);
      saysErrors(name, shown);
      assert.match(shown, /shop\.test\.yaml:[0-9]+:[0-9]+\n/);
      assert.match(shown, /nothing was tested$/);
    });

  test("a contract that does not compile is an error, also with --json", async () => {
    const files = {
      "shop.yaml": replaced(contract, "counters.tries >= 3", "counters.trys >= 3"),
      "shop.test.yaml": whole,
    };
    const { exitCode, text } = await testCommand([written(files)], plain);
    assert.equal(exitCode, 2, text);
    saysErrors("a contract with an unknown counter", text);
    const json = await testCommand([written(files)], { ...plain, json: true });
    assert.equal(json.exitCode, 2);
    assert.equal(JSON.parse(json.text).errors[0].code, "unknown-counter");
  });

  test("a missing file or a wrong option is an error that names it", async () => {
    const refused = async (name: string, tested: Promise<Outcome>): Promise<void> => {
      await assert.rejects(tested, (error) => {
        assert.ok(error instanceof Error);
        says(name, error.message, { PLACE: join(folder, String(folders)) });
        return true;
      });
    };
    await refused("a folder without tests", testCommand([written({})], plain));
    await refused("no such file", testCommand([join(folder, "nowhere")], plain));
    await refused("a contract without tests beside it", testCommand([join(written({}), "shop.yaml")], plain));
    await refused("a filter that no case has", run(whole, { filter: "nothing like it" }));
    await refused("a report in no folder", run(whole, { junit: join(folder, "no", "x.xml") }));
    await refused("--watch and --json", run(whole, { watch: true, json: true }));
    for (const min of ["101", "-1", "all"]) await refused(`--min ${min}`, run(whole, { min }));
  });
});

suite("coverage", () => {
  const lines = whole.split("\n").filter((line) => / {2}- \{ case: /.test(line));
  const unique = new Set(["no facts", "over", "paid much", "a note", "looking", "bob is new"]);

  test("coverage falls if the only case that shows an outcome is removed", async () => {
    for (const line of lines) {
      const name = /case: ([^,]+),/.exec(line)?.[1] ?? "";
      const { exitCode } = await run(replaced(whole, `${line}\n`, ""), { min: "100" });
      assert.equal(exitCode, unique.has(name) ? 1 : 0, name);
    }
  });

  test("coverage lists conditions never true or never false and tools never called, and ignores constants", async () => {
    const one = lines.find((line) => line.includes("it runs")) ?? "";
    const { exitCode, text } = await run(`${head}cases:\n${one}\n`, { coverage: true, min: "60" });
    assert.equal(exitCode, 1);
    golden("test-coverage", text);
    assert.doesNotMatch(text, /^ +limits\.open +[0-9]/m);
  });

  test("coverage counts each branch of a choice, and a `let` in each rule that uses it", async () => {
    const text = `contract: shop
let: { dear: input.usd > 50 }
tools:
  pay:
    input: { type: object, additionalProperties: false, required: [usd], properties: { usd: { type: number }, tip: { type: number } } }
    requires: [{ when: input.usd >= 0, reason: less than nothing }]
    otherwise: ALLOW
rules:
  - { rule: tip, on: pay, when: "has(input.tip) ? input.tip > 5 : dear", verdict: BLOCK, reason: x }
  - { rule: dear, on: pay, when: dear, verdict: ESCALATE, reason: x }
`;
    const cases = [
      "{ case: a, tool: pay, input: { usd: 1 }, expect: ALLOW }",
      "{ case: b, tool: pay, input: { usd: 51 }, expect: BLOCK }",
      "{ case: c, tool: pay, input: { usd: 1, tip: 1 }, expect: ALLOW }",
      "{ case: d, tool: pay, input: { usd: 1, tip: 6 }, expect: BLOCK }",
      "{ case: e, tool: pay, input: { usd: -1 }, expect: BLOCK }",
    ];
    const unseen = async (kept: readonly string[]): Promise<readonly string[]> => {
      const files = { "shop.yaml": text, "shop.test.yaml": `cases: [${kept.join(", ")}]` };
      const { text: shown } = await testCommand([written(files)], { ...plain, json: true });
      const { conditions = [], tools = [] } = (JSON.parse(shown) as TestOutput).coverage[0] ?? {};
      return [
        ...conditions.flatMap((row) => [
          ...(row.true === 0 ? [`${row.rule} ${row.text} true`] : []),
          ...(row.false === 0 ? [`${row.rule} ${row.text} false`] : []),
        ]),
        ...tools.flatMap(({ otherwise }) => Object.keys(otherwise).filter((name) => otherwise[name] === 0)),
      ];
    };
    assert.deepEqual(await unseen(cases), []);
    assert.deepEqual(await unseen(cases.toSpliced(1, 1)), [
      "shop.tip input.usd > 50 true",
      "shop.dear input.usd > 50 true",
    ]);
    assert.deepEqual(await unseen(cases.toSpliced(3, 1)), ["shop.tip input.tip > 5 true"]);
    assert.deepEqual(await unseen(cases.toSpliced(4, 1)), ["shop.$requires.1 input.usd >= 0 false"]);
    const nothingButRefused = [
      ...["shop.tip input.usd > 50", "shop.dear input.usd > 50"].flatMap((part) => [`${part} true`, `${part} false`]),
      "shop.$requires.1 input.usd >= 0 true",
      ...["has(input.tip) ? input.tip > 5 : dear", "has(input.tip)", "input.tip > 5"].flatMap((part) => [
        `shop.tip ${part} true`,
        `shop.tip ${part} false`,
      ]),
      "shop",
    ];
    assert.deepEqual(await unseen([cases[4] ?? ""]), nothingButRefused);
  });

  test("a contract in the folder without tests has no coverage", async () => {
    const other = replaced(contract, "contract: shop", "contract: other");
    const files = { "shop.test.yaml": whole, "below/other.yaml": other };
    const { exitCode, text } = await testCommand([written(files)], { ...plain, coverage: true, min: "1" });
    assert.equal(exitCode, 1);
    const shown = text.split("\n");
    const hidden = { PLACE: join(folder, String(folders)) };
    const header = shown.find((line) => /^\S.* \S+other\.yaml: /.test(line) && line !== shown.at(-1));
    says("a contract without tests has no coverage", header ?? text, hidden);
    says("the last line names the contract without tests", lastLine(text), hidden);
    const both = { ...files, "below/other.test.yaml": replaced(whole, "contract: shop.yaml", "contract: other.yaml") };
    assert.equal((await testCommand([written(both)], { ...plain, min: "0" })).exitCode, 1, "its tests speak of shop");
    const named = { ...files, "m.yaml": "mandate: m\ncontracts: [shop.yaml, below/other.yaml]\n" };
    const mandateTests = `mandate: m.yaml\ncases: [{ case: a, tool: look, expect: ESCALATE }]`;
    const byMandate = await testCommand([written({ ...named, "m.test.yaml": mandateTests })], { ...plain, min: "1" });
    assert.equal(byMandate.exitCode, 0, byMandate.text);
  });

  test("the path of a contract runs the tests in the file beside it", async () => {
    const home = written({ "shop.test.yaml": whole, "other.test.yaml": "cases: 1" });
    assert.equal((await testCommand([join(home, "shop.yaml")], plain)).exitCode, 0);
    assert.equal((await testCommand([home], plain)).exitCode, 2, "positive control: the folder has a wrong one");
  });

  test("--filter runs only the cases whose name contains its text", async () => {
    const { text } = await run(whole, { filter: "THREE tries" });
    assert.match(text, /^[^\n]+\n +✔ three tries [^\n]+\n\n[^\n]+$/);
    says("the one case passed", lastLine(text));
  });
});

/** Compares the text with test/golden, without the parts that differ between machines. */
function golden(name: string, text: string): void {
  const file = join(root, "test", "unit", "cli", "golden", `${name}.golden`);
  const shown = `${text.replaceAll(join(folder, String(folders)), "shop").replaceAll("\\", "/")}\n`;
  if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(file, shown);
  assert.equal(shown, readFileSync(file, "utf8"));
}

/** The members of --json that the tests read. */
interface TestOutput {
  readonly ok: boolean;
  readonly cases: number;
  readonly failed: number;
  readonly files: readonly { readonly cases: readonly { readonly failure: ToldFailure | null }[] }[];
  readonly coverage: readonly { readonly conditions: readonly ToldCondition[]; readonly tools: readonly ToldTool[] }[];
}

interface ToldCondition {
  readonly rule: string;
  readonly text: string;
  readonly line: number;
  readonly true: number;
  readonly false: number;
}

interface ToldTool {
  readonly otherwise: Readonly<Record<string, number>>;
}

interface ToldFailure {
  readonly call: number;
  readonly line: number;
  readonly mismatches: readonly { readonly what: string }[];
  readonly came: { readonly fired: readonly string[] };
}

/** Returns the elements' names in order of opening; undefined if the text is not well-formed XML. */
function elements(xml: string): readonly string[] | undefined {
  const open: string[] = [];
  const all: string[] = [];
  const token = /<(\/?)([a-z]+)((?: [a-z]+="[^"<&]*(?:&#[0-9]+;[^"<&]*)*")*)(\/?)>|[^<>&]+|&#[0-9]+;/y;
  token.lastIndex = '<?xml version="1.0" encoding="UTF-8"?>'.length;
  while (token.lastIndex < xml.length) {
    const found = token.exec(xml);
    if (found === null) return undefined;
    const [, close, name, , self] = found;
    if (name === undefined) continue;
    if (close === "/") {
      if (open.pop() !== name) return undefined;
    } else {
      all.push(name);
      if (self === "") open.push(name);
    }
  }
  return open.length === 0 ? all : undefined;
}

suite("reports", () => {
  const failing = replaced(
    replaced(
      whole,
      "{ usd: 4e1 }, expect: ALLOW",
      '{ usd: 41, note: "<&\\u0001\\">" }, expect: { verdict: ALLOW, rule: busy }',
    ),
    "- { like: pay, session: other, expect: { verdict: ALLOW",
    "- { like: pay, session: other, expect: { verdict: ESCALATE",
  );

  test("the report for a person shows each failure", async () => {
    const { exitCode, text, forPrograms } = await run(failing);
    assert.deepEqual([exitCode, forPrograms], [1, true]);
    golden("test-failures", text);
  });

  test("the report with --json names the call, line and mismatches of each failure", async () => {
    const { exitCode, text } = await run(failing, { json: true });
    const found = JSON.parse(text) as TestOutput;
    assert.deepEqual([exitCode, found.ok, found.cases, found.failed], [1, false, 10, 2]);
    const failures = found.files.flatMap(({ cases }) => cases.flatMap(({ failure }) => failure ?? []));
    assert.deepEqual(
      failures.map(({ call, line, mismatches }) => [call, line, ...mismatches.map(({ what }) => what)]),
      [
        [1, lineOf(failing, "up to it"), "verdict", "rule"],
        [5, lineOf(failing, "session: other"), "verdict"],
      ],
    );
    assert.deepEqual(failures[0]?.came.fired, ["shop.over"]);
    const conditions = found.coverage.flatMap((row) => row.conditions);
    assert.ok(conditions.length > 5 && conditions.every((row) => row.true + row.false > 0 && row.line > 0));
  });

  test("--junit writes well-formed XML, whatever characters a case contains", async () => {
    const hostile = `'<a b="c"> & ]]> \u{1F600}'`;
    const home = written({ "shop.test.yaml": replaced(failing, "case: a note", `case: ${hostile}`) });
    const { exitCode } = await testCommand([home], { ...plain, junit: join(home, "junit.xml") });
    assert.equal(exitCode, 1);
    const xml = readFileSync(join(home, "junit.xml"), "utf8");
    assert.match(
      xml,
      /^<\?xml version="1\.0" encoding="UTF-8"\?>\n<testsuites tests="10" failures="2" errors="0" time="[0-9.]+">/,
    );
    assert.equal(xml.match(/<testcase /g)?.length, 10);
    assert.equal(xml.match(/<failure message="[^"]+">/g)?.length, 2);
    assert.equal(elements(xml)?.length, 2 + 10 + 2);
    assert.equal(elements(xml.replace("&#60;", "<")), undefined, "positive control: an unescaped bracket is noticed");
    assert.doesNotMatch(xml, /(?!\n)\p{Cc}/u);
  });
});

function lineOf(text: string, part: string): number {
  return text.slice(0, text.indexOf(part)).split("\n").length;
}

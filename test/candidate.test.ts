/**
 * Goal: a candidate decides nothing: whatever it says, verdicts and counters in force are those of the mandate without it;
 * and what is compiled again from the text of GET /rules is what was in force.
 * Method: mandates with their problems; runs of calls with and without a candidate; texts made to be cut elsewhere.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { consult, decide, prepare, recompile, type ContractInForce } from "../src/contract/mod.ts";
import { countedOf, countersOf } from "../src/gate/mod.ts";
import { compile, mandate, request, type Call } from "./contract-kit.ts";

interface Written {
  readonly name?: string;
  readonly most?: number;
  readonly limits?: string;
  readonly counters?: string;
  readonly rules?: string;
  readonly tools?: readonly string[];
}

const attempts = "{ a: { of: t, per: [session, input.s] } }";
const third = '[{ rule: r, on: t, when: counters.a > 1, verdict: BLOCK, reason: "the third" }]';

/** A contract for `t` that takes an `n` of at most so much. */
function contract({
  name = "c",
  most = 10,
  limits,
  counters = attempts,
  rules = third,
  tools = ["t"],
}: Written): string {
  const input = `{ type: object, additionalProperties: false, required: ["n", s],
      properties: { "n": { type: number, maximum: ${most} }, s: { type: string } } }`;
  return [
    `contract: ${name}\n`,
    limits === undefined ? "" : `limits: ${limits}\n`,
    `tools:\n${tools.map((tool) => `  ${tool}: { input: ${input}, otherwise: ALLOW }\n`).join("")}`,
    `counters: ${counters}\n`,
    `rules: ${rules}\n`,
  ].join("");
}

const plainMandate = "mandate: m\ncontracts: [c.yaml]\n";

function inForce(text: string, files: Readonly<Record<string, string>>): ContractInForce {
  const compiled = mandate(text, files);
  return compiled.ok ? compiled.value : assert.fail(JSON.stringify(compiled.problem.map(({ message }) => message)));
}

function problems(text: string, files: Readonly<Record<string, string>>): readonly string[] {
  const compiled = mandate(text, files);
  return compiled.ok ? [] : compiled.problem.map(({ code, message }) => `${code}: ${message}`);
}

/** The verdicts of calls, one after another, each counted for the contract in force and for the candidate. */
function verdicts(force: ContractInForce, calls: readonly Call[], counted = countedOf): readonly string[] {
  const book = new Map<string, number>();
  return calls.map((call, at) => {
    const caller = { keyName: "default", sessionId: call.session ?? null };
    const prepared = prepare(force, request(call), caller);
    const other = force.candidate && prepare(force.candidate, request(call), caller);
    const consultation = consult(prepared, 1_700_000_000_000 + at);
    const { verdict } = decide(
      consultation,
      consultation.lookups.map(({ counter, key }) => String(book.get(`${counter.identity} ${key}`) ?? 0)),
    );
    for (const { counter, key } of counted(prepared, other, { verdict, answered: verdict }))
      book.set(`${counter.identity} ${key}`, (book.get(`${counter.identity} ${key}`) ?? 0) + 1);
    return verdict;
  });
}

suite("a candidate decides nothing", () => {
  const calls = [50, 50, 1, 1, 1].map((n): Call => ({ session: "s", input: { n, s: "x" } }));
  const alone = inForce(plainMandate, { "c.yaml": contract({}) });
  const candidates: readonly (readonly [what: string, text: string])[] = [
    ["the same", contract({})],
    ["one that takes what the contract refuses", contract({ most: 100 })],
    ["one that refuses what the contract takes", contract({ most: 0 })],
    ["one of another name with the same counter", contract({ name: "next", most: 100 })],
  ];

  test("neither a verdict nor a counter of both, whatever its schema takes", () => {
    for (const [what, candidate] of candidates) {
      const force = inForce(`${plainMandate}candidate: next.yaml\n`, {
        "c.yaml": contract({}),
        "next.yaml": candidate,
      });
      assert.deepEqual(verdicts(force, calls), verdicts(alone, calls), what);
    }
    assert.deepEqual(verdicts(alone, calls), ["BLOCK", "BLOCK", "ALLOW", "ALLOW", "BLOCK"]);
  });

  test("a counter of both is kept once, and recounted as the contract in force says", () => {
    const files = { "c.yaml": contract({}), "next.yaml": contract({ most: 100 }) };
    const force = inForce(`${plainMandate}candidate: next.yaml\n`, files);
    assert.deepEqual(
      countersOf(force).map(({ counter, force: whose }) => [counter.name, whose === force]),
      [["c.a", true]],
    );
  });

  test("positive control: moved by the candidate too, the counter would decide otherwise", () => {
    const files = { "c.yaml": contract({}), "next.yaml": contract({ most: 100 }) };
    const force = inForce(`${plainMandate}candidate: next.yaml\n`, files);
    const careless: typeof countedOf = (prepared, candidate) => [...prepared.moves, ...(candidate?.moves ?? [])];
    assert.notDeepEqual(verdicts(force, calls, careless), verdicts(alone, calls));
  });
});

suite("mandates with a candidate", () => {
  const files = {
    "c.yaml": contract({ limits: "{ most: 1 }" }),
    "next.yaml": contract({ limits: "{ most: 2 }" }),
    "third.yaml": contract({ rules: "[]" }),
    "wide.yaml": contract({ tools: ["t", "u"] }),
    "more.yaml": contract({ name: "more", limits: "{ most: 3 }" }),
  };
  const cases: readonly (readonly [candidate: string, ...problems: readonly string[]])[] = [
    ["candidate: next.yaml"],
    ["candidate: []"],
    ["candidate: c.yaml"],
    ["candidate: [next.yaml, more.yaml]"],
    ["candidate: [next.yaml, third.yaml]", "twice: two contracts are called `c`"],
    ["candidate: [more.yaml, more.yaml]", "twice: two contracts are called `more`"],
    ["candidate: more.yaml\nlimits: { more: { most: 4 } }\ncounters: { more: { a: { starts: empty } } }"],
    [
      "candidate: more.yaml\nlimits: { less: { most: 4 } }",
      "unknown-contract: no contract of this mandate is called `less`",
    ],
    [
      "candidate: more.yaml\nlimits: { more: { most: x } }",
      "limit: `most` must be a number, as the contract declares it",
    ],
    ["candidate: third.yaml\nlimits: { c: { most: 4 } }", "unknown-limit: the contract has no limit `most`"],
    ["candidate: { file: wide.yaml, tools: [t, u] }"],
    ["candidate: { file: next.yaml, tools: [] }", "not-allowed: the mandate does not let `c` route `t`"],
    ["candidate: null", "no-file: `null` cannot be read: there is no such file"],
  ];

  test("say what is wrong with it", () => {
    for (const [candidate, ...expected] of cases)
      assert.deepEqual(problems(`${plainMandate}${candidate}\n`, files), expected, candidate);
  });

  test("what the mandate lets a contract route, it lets the candidate of its name route, unless it says otherwise", () => {
    const bounded = "mandate: m\ncontracts: [{ file: c.yaml, tools: [t] }]\n";
    const refused = ["not-allowed: the mandate does not let `c` route `u`"];
    assert.deepEqual(problems(`${bounded}candidate: wide.yaml\n`, files), refused);
    assert.deepEqual(problems(`${bounded}candidate: { file: wide.yaml, tools: ["*"] }\n`, files), []);
  });
});

suite("what is compiled again is what was in force", () => {
  const block = (name: string): string => `  - { rule: ${name}, on: t, when: "true", verdict: BLOCK, reason: never }\n`;
  const head = contract({ rules: `\n${block("one")}` });
  const other =
    "  contract: d\n  tools: { t: { input: { type: object, additionalProperties: false }, otherwise: BLOCK } }\n";

  test("whatever a text takes for the end of a line", () => {
    for (const end of ["\u2028", "\u2029", "\r"]) {
      for (const [text, file] of [
        [plainMandate, `${head}# a remark${end}--- # d.yaml\n${block("two")}`],
        [plainMandate, `${head}summary: |\n  text${end}--- # d.yaml\n${other}`],
      ] as const) {
        const force = inForce(text, { "c.yaml": file });
        assertAgain(force);
        assertAgain(compile(file));
      }
    }
  });

  test("and a contract that is called like the mandate's file", () => {
    const force = mandate("mandate: m\ncontracts: [mandate.yaml]\n", { "mandate.yaml": head });
    assertAgain(force.ok ? force.value : assert.fail("it does not compile"));
  });

  test("a line that would be taken for the beginning of a file is refused, and a name that would break one", () => {
    const line = "yaml: a line that begins like this stands between the files in the text of GET /rules";
    assert.deepEqual(problems(plainMandate, { "c.yaml": `--- # d.yaml\n${head}` }), [line]);
    assert.deepEqual(problems(`# m\n--- #\n${plainMandate}`, { "c.yaml": head }), [line]);
    const name = "name: a file's name has no line breaks and no control characters";
    for (const [written, file] of [
      ["c\\n--- # d.yaml", "c\n--- # d.yaml"],
      ["c\\u2028.yaml", "c\u2028.yaml"],
    ] as const)
      assert.deepEqual(problems(`mandate: m\ncontracts: ["${written}"]\n`, { [file]: head }), [name]);
    assert.deepEqual(problems(plainMandate, { "c.yaml": `---\n${head}` }), []);
  });
});

function assertAgain(force: ContractInForce): void {
  const again = recompile(force.text);
  if (!again.ok) assert.fail(JSON.stringify(again.problem.map(({ message }) => message)));
  assert.equal(again.value.text, force.text);
  const shape = ({ tools }: ContractInForce): unknown =>
    [...tools.values()].map(({ routes }) =>
      routes.map(({ contract: name, rules }) => [name, rules.map(({ id }) => id)]),
    );
  assert.deepEqual(shape(again.value), shape(force));
}

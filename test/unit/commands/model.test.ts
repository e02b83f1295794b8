/**
 * Goal: the matcher judges a simple command as the specification says. Method: random small tables, and random commands that
 * fit one of their forms or nearly do; a slow model, which tries every way to divide the words, must give the same answer. A
 * model without one rule must differ.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import type { CommandTable } from "../../../packages/core/src/contract/function.ts";
import type { ModelPaths } from "../../support/commands-model-words.ts";
import { judgeByModel, type LeftOut } from "../../support/commands-model.ts";
import { control } from "../../support/controls/control.ts";
import { randomRuns } from "../../support/random-test.ts";
import { answerTo, problemsOf, tableOf, type ShownAnswer } from "./kit.ts";

/** Each table judges up to ten commands, on average five. */
const tablesMax = 300;

/** A shape of words as written in a table, and words that fit it. */
interface WrittenShape {
  readonly text: string;
  readonly words: readonly string[];
}

interface WrittenPosition extends WrittenShape {
  readonly sign: "" | " ?" | " *" | " +" | " * or .";
}

interface WrittenOption {
  readonly names: readonly string[];
  readonly value: WrittenShape | undefined;
  readonly isOptional: boolean;
}

interface WrittenForm {
  readonly run: readonly string[];
  readonly options: readonly WrittenOption[];
  readonly words: readonly WrittenPosition[];
  readonly hasArgs: boolean;
  readonly needs: readonly string[];
  readonly refuses: readonly string[];
  readonly marked: readonly string[];
  readonly any: WrittenShape | undefined;
  readonly unless: { readonly options: readonly string[]; readonly words: readonly WrittenPosition[] } | undefined;
  readonly verdict: "ALLOW" | "ESCALATE" | "BLOCK";
}

interface WrittenTable {
  readonly style: string;
  readonly options: readonly WrittenOption[];
  readonly everywhere: readonly WrittenOption[];
  readonly forms: readonly WrittenForm[];
}

interface Case {
  readonly text: string;
  readonly commands: readonly (readonly string[])[];
}

const files = ["a", "b.ts", "src/a.ts", "./x", "../b", "/etc/x", ".env", "sub/", ".", "/", "/srv", "x.d/.k"];
const shapes: readonly WrittenShape[] = [
  ...[
    "reads FILE",
    "writes FILE",
    "lists FILE",
    "reads PATH",
    "writes PATH",
    "reads FOLDER",
    "reads TREE",
    "lists TREE",
  ].map((text) => ({ text, words: files })),
  { text: "reads LEAF", words: ["b.ts", "src/a.ts", "../b.c"] },
  { text: "TEXT", words: ["a", "x=y", "a:b", "-", "+x", "a@b"] },
  { text: "NUMBER", words: ["1", "25", "3k", "1.5"] },
  { text: "NAME", words: ["a", "b.ts", "x_y-z", "go"] },
  { text: "PATTERN", words: ["a", "@a", "x=y"] },
  { text: "PACKAGE", words: ["a", "@a/b", "./a/b", "...a", "@a/b/c", "a..", "a/.b"] },
  { text: "TASK", words: ["test", "test:a", "a-lint", ":a:test", "aTest", "testA", "a:testB", "test:deploy", "atest"] },
  { text: "REF", words: ["a", "main", "f/x", "a..b", "v1.2"] },
  { text: "go | a", words: ["go", "a"] },
  { text: "main", words: ["main"] },
];
const strange = [
  "--",
  "-",
  "-a",
  "-b",
  "-n",
  "-5",
  "-ab",
  "-n5",
  "-an",
  "-n=5",
  "--lo",
  "--long=",
  "--lines=3",
  "--lines",
];
const more = [
  "--color",
  "--color=a",
  "--odd",
  "-x",
  "-name",
  "-na",
  "@a",
  "a:b",
  "a=b",
  "x@y",
  "=a",
  "+1",
  "-1",
  "--l=/etc/x",
];
const pool = [...files, ...shapes.flatMap(({ words }) => words), ...strange, ...more];

const shape = fc.constantFrom(...shapes);
const position: fc.Arbitrary<WrittenPosition> = fc
  .record({ shape, sign: fc.constantFrom<WrittenPosition["sign"]>("", "", " ?", " *", " +", " * or .") })
  .map(({ shape: { text, words }, sign }) => ({
    text,
    words,
    sign: sign === " * or ." && !text.includes("TREE") ? " *" : sign,
  }));
const dash: WrittenPosition = { text: "--", words: ["--"], sign: " ?" };
const positions: fc.Arbitrary<readonly WrittenPosition[]> = fc
  .record({ list: fc.array(position, { maxLength: 3 }), dashAt: fc.option(fc.nat(3), { freq: 3 }) })
  .map(({ list, dashAt }) => (dashAt === null ? list : list.toSpliced(dashAt, 0, dash)));

const nameLists = [
  ["-a"],
  ["-b"],
  ["-n"],
  ["-x"],
  ["--long"],
  ["--lines"],
  ["--color"],
  ["-n", "--lines"],
  ["-NUMBER"],
];
const singleLists = [["-name"], ["-na"], ["-a"], ["-n"], ["--long"], ["-NUMBER"]];
function optionsFor(style: string, maxLength: number): fc.Arbitrary<readonly WrittenOption[]> {
  const names = fc.constantFrom(...(style === "single" ? singleLists : nameLists));
  const option = fc.record({
    names,
    value: fc.option(shape, { nil: undefined, freq: 2 }),
    isOptional: fc.boolean(),
  });
  return fc
    .uniqueArray(option, { maxLength, selector: (each) => each.names.at(-1) })
    .map((list) =>
      list
        .filter(({ names: [first] }, index) => list.findIndex((each) => each.names.includes(first ?? "")) === index)
        .map((each) => (each.names[0] === "-NUMBER" ? { ...each, value: undefined } : each)),
    );
}

const markable = ["-a", "-n", "-x", "--long", "--lines"];
function formFor(style: string): fc.Arbitrary<WrittenForm> {
  const run = fc.constantFrom(["p"], ["p"], ["p", "go"], ["p", "go", "a"], ["q"]);
  const options = optionsFor(style, 3);
  const marks = fc.subarray(markable, { maxLength: 2 });
  return fc
    .record({
      run,
      options,
      words: positions,
      hasArgs: fc.boolean(),
      needed: fc.nat(5),
      refuses: marks,
      marked: marks,
      any: fc.option(fc.constantFrom(...shapes, { text: "ROOT", words: ["/", ".", "/srv"] }), {
        nil: undefined,
        freq: 2,
      }),
      unless: fc.option(fc.record({ options: marks, words: positions }), { nil: undefined, freq: 2 }),
      verdict: fc.constantFrom<WrittenForm["verdict"]>("ALLOW", "ALLOW", "ESCALATE", "BLOCK"),
    })
    .map(({ needed, ...form }) => {
      const needs = form.options.slice(needed, needed + 1).flatMap(({ names }) => names.slice(0, 1));
      if (form.verdict === "ALLOW")
        return {
          ...form,
          needs,
          refuses: form.hasArgs ? form.refuses : [],
          marked: [],
          any: undefined,
          unless: undefined,
        };
      return { ...form, needs: [], hasArgs: false, refuses: [] };
    });
}

const tables = fc.constantFrom("gnu", "gnu", "single", "posix").chain((style) =>
  fc.record<WrittenTable>({
    style: fc.constant(style),
    options: optionsFor(style, 2),
    everywhere: optionsFor(style, 1),
    forms: fc.array(formFor(style), { minLength: 1, maxLength: 5 }),
  }),
);

function optionText({ names, value, isOptional }: WrittenOption): string {
  const text = value === undefined ? "" : isOptional ? ` (${value.text})` : ` ${value.text}`;
  return JSON.stringify(names.join(" | ") + text);
}

function positionTexts(list: readonly WrittenPosition[]): string {
  return `[${list.map(({ text, sign }) => JSON.stringify(text + sign)).join(", ")}]`;
}

function textOfForm({ run, options, words, hasArgs, ...form }: WrittenForm): string {
  const all = hasArgs ? [...words, { text: "ARGS", words: [], sign: " *" } as const] : words;
  const parts = [
    `run: ${run.join(" ")}`,
    ...(options.length > 0 ? [`options: [${options.map(optionText).join(", ")}]`] : []),
    ...(all.length > 0 ? [`words: ${positionTexts(all)}`] : []),
    ...(form.needs.length > 0 ? [`needs: [${form.needs.join(", ")}]`] : []),
    ...(form.refuses.length > 0 ? [`refuses: [${form.refuses.join(", ")}]`] : []),
    ...(form.marked.length > 0 ? [`marked: [${form.marked.join(", ")}]`] : []),
    ...(form.any === undefined ? [] : [`any: ${form.any.text}`]),
    ...(form.unless === undefined ? [] : [exceptionText(form.unless)]),
    ...(form.verdict === "ALLOW" ? ["does: reads"] : [`does: reads, verdict: ${form.verdict}, reason: r`]),
  ];
  return `  - { ${parts.join(", ")} }`;
}

function exceptionText({ options, words }: NonNullable<WrittenForm["unless"]>): string {
  const parts = [
    ...(options.length > 0 ? [`options: [${options.join(", ")}]`] : []),
    ...(words.length > 0 ? [`words: ${positionTexts(words)}`] : []),
  ];
  return `unless: { ${parts.join(", ")} }`;
}

function textOfTable({ style, options, everywhere, forms }: WrittenTable): string {
  const lists = `options: [${options.map(optionText).join(", ")}], everywhere: [${everywhere.map(optionText).join(", ")}]`;
  return `programs:\n  p: { style: ${style}, ${lists} }\nforms:\n${forms.map(textOfForm).join("\n")}`;
}

/** A command that fits the form, and then a few changes. */
function commandFor({ style, options: before, everywhere, forms }: WrittenTable): fc.Arbitrary<readonly string[]> {
  return fc
    .constantFrom(...forms)
    .chain((form) => {
      const marks = [...form.marked, ...(form.unless?.options ?? []), ...form.refuses];
      return fc.tuple(
        fc.constant([form.run[0] ?? ""]),
        spelled(style, form.run.length > 1 ? before : [], 2),
        fc.constant(form.run.slice(1)),
        spelled(style, [...form.options, ...everywhere], 2),
        form.needs.length > 0 ? spelled(style, form.options, 5) : fc.constant([]),
        marks.length > 0 ? fc.constantFrom([], ...marks.map((mark) => [mark])) : fc.constant([]),
        ...form.words.map(wordsFor),
        form.hasArgs ? fc.array(fc.constantFrom(...pool), { maxLength: 2 }) : fc.constant([]),
      );
    })
    .chain((parts) => mutationsOf(parts.flat()));
}

function wordsFor({ words, sign }: WrittenPosition): fc.Arbitrary<readonly string[]> {
  const [minLength, maxLength] = { "": [1, 1], " ?": [0, 1], " *": [0, 2], " +": [1, 2], " * or .": [0, 2] }[sign] as [
    number,
    number,
  ];
  return fc.array(fc.constantFrom(...words), { minLength, maxLength });
}

/** Each of the options as it may be written, but one in so many times not at all. */
function spelled(
  style: string,
  options: readonly WrittenOption[],
  absentOneIn: number,
): fc.Arbitrary<readonly string[]> {
  const one = (option: WrittenOption): fc.Arbitrary<readonly string[]> =>
    fc.record({ name: fc.constantFrom(...option.names), way: fc.nat(2), at: fc.nat(20) }).map(({ name, way, at }) => {
      if (name === "-NUMBER") return ["-5"];
      if (option.value === undefined) return [name];
      const value = option.value.words[at % option.value.words.length] ?? "a";
      if (option.isOptional && way === 0) return [name];
      if (way === 1 && !option.isOptional) return [name, value];
      return [name.startsWith("--") || style === "single" ? `${name}=${value}` : `${name}${value}`];
    });
  return fc
    .tuple(...options.map((option) => fc.option(one(option), { nil: [], freq: absentOneIn })))
    .map((lists) => lists.flat());
}

function mutationsOf(words: readonly string[]): fc.Arbitrary<readonly string[]> {
  const change = fc.record({
    kind: fc.constantFrom("remove", "insert", "put", "move", "join"),
    at: fc.nat(7),
    word: fc.constantFrom(...pool),
  });
  return fc.array(change, { maxLength: 2 }).map((changes) =>
    changes.reduce<readonly string[]>((all, { kind, at, word }) => {
      const index = 1 + (at % Math.max(1, all.length));
      const old = all[index] ?? "";
      if (kind === "insert") return all.toSpliced(index, 0, word);
      if (index >= all.length) return all;
      if (kind === "put") return all.with(index, word);
      if (kind === "remove") return all.toSpliced(index, 1);
      if (kind === "move") return [...all.toSpliced(index, 1), old];
      // For the matcher `/../b` is a root.
      if (old === "/") return all;
      return all.toSpliced(index, 2, old + (all[index + 1] ?? ""));
    }, words),
  );
}

const cases: fc.Arbitrary<Case> = tables
  .filter((table) => problemsOf(textOfTable(table)).length === 0)
  .chain((table) =>
    fc.record({
      text: fc.constant(textOfTable(table)),
      commands: fc.array(commandFor(table), { minLength: 1, maxLength: 10 }),
    }),
  );

function sameSet(left: ReadonlySet<string>, right: readonly string[]): boolean {
  return left.symmetricDifference(new Set(right)).size === 0;
}

function isOneOf(ways: readonly ModelPaths[], answer: ShownAnswer): boolean {
  return ways.some(
    ({ reads, writes, lists }) =>
      sameSet(reads, answer.reads) && sameSet(writes, answer.writes) && sameSet(lists, answer.lists),
  );
}

/** What the matcher and the model say differently; undefined if they agree. */
async function differenceOf(
  table: CommandTable,
  command: readonly string[],
  without: LeftOut = new Set(),
): Promise<string | undefined> {
  const model = judgeByModel(table, command, without);
  const answer = await answerTo(command.join(" "), table);
  const isSame = answer.verdict === model.verdict && (model.verdict !== "ALLOW" || isOneOf(model.ways, answer));
  if (isSame) return undefined;
  const ways = model.ways.map(({ reads, writes, lists }) =>
    JSON.stringify({ reads: [...reads], writes: [...writes], lists: [...lists] }),
  );
  return `${command.join(" ")}\nmodel ${model.verdict} ${ways.join(" ")}\nmatcher ${JSON.stringify(answer)}`;
}

test("the matcher judges a command as the model does", async (t) => {
  const seen = { ALLOW: 0, ESCALATE: 0, BLOCK: 0 };
  await fc.assert(
    fc.asyncProperty(cases, async ({ text, commands }) => {
      const table = tableOf(text);
      for (const command of commands) {
        const difference = await differenceOf(table, command);
        assert.ok(difference === undefined, `${text}\n${difference ?? ""}`);
        seen[judgeByModel(table, command).verdict] += 1;
      }
    }),
    randomRuns(t, tablesMax),
  );
  t.diagnostic(`commands by verdict: ${JSON.stringify(seen)}`);
  for (const [verdict, count] of Object.entries(seen))
    assert.ok(count > tablesMax / 4, `${count} commands are ${verdict}`);
});

/** Rules that the matcher broke once, each with its smallest example. */
const repaired: readonly (readonly [rule: string, table: string, command: string, verdict: string])[] = [
  [
    "each spelling of a needed option counts",
    'forms:\n  - { run: p, options: ["-n | --lines"], needs: [-n], does: reads }',
    "p --lines",
    "ALLOW",
  ],
  [
    "a number may be needed",
    "forms:\n  - { run: p, options: [-NUMBER], needs: [-NUMBER], does: reads }",
    "p -5",
    "ALLOW",
  ],
  [
    "options end at the first word",
    "programs:\n  p: { style: posix }\nforms:\n  - { run: p, options: [-c TEXT], words: reads FILE +, does: reads }",
    "p a -c .env",
    "ESCALATE",
  ],
  [
    "an option is refused in a bundle",
    "forms:\n  - { run: p, refuses: [-p], words: ARGS *, does: runs }",
    "p -vp x",
    "ESCALATE",
  ],
  [
    "an option is refused with its value",
    "forms:\n  - { run: p, refuses: [-p], words: ARGS *, does: runs }",
    "p -pevil",
    "ESCALATE",
  ],
  [
    "an option is marked before the words of run",
    "forms:\n  - { run: p go, marked: [-f], does: destroys, verdict: BLOCK, reason: r }",
    "p -f go",
    "BLOCK",
  ],
  [
    "an option of another form takes no value",
    "forms:\n  - { run: p a, options: [-u (no)], does: reads }\n  - { run: p go, marked: [-f], does: destroys, verdict: BLOCK, reason: r }",
    "p go -uf",
    "BLOCK",
  ],
  [
    "an option is marked between the words of run",
    "programs:\n  p: { style: posix }\nforms:\n  - { run: p go a, marked: [-f], does: destroys, verdict: BLOCK, reason: r }\n" +
      "  - { run: p go, options: [-f], words: reads PATH, does: reads }",
    "p go -f a",
    "BLOCK",
  ],
  [
    "before the words of run an option of the program has no value if the program gives it none",
    "programs:\n  p: { options: [-a] }\nforms:\n  - { run: p go, does: destroys, verdict: BLOCK, reason: r }\n" +
      "  - { run: p go a, options: [-a reads FILE], does: reads }",
    "p -a go",
    "BLOCK",
  ],
  [
    "a value that programs read in two ways is not accepted",
    "forms:\n  - { run: p, options: [-f reads FILE], does: reads }",
    "p -f=/etc/x",
    "ESCALATE",
  ],
];

suite("rules that the matcher broke once", () => {
  for (const [rule, text, command, verdict] of repaired)
    test(`${command}: ${rule}`, async () => {
      assert.equal((await answerTo(command, tableOf(text))).verdict, verdict);
    });
});

for (const rule of ["an option needs its value", "a form needs one of its options"] as const)
  control(`positive control: a model without the rule that ${rule} differs`, async (t) => {
    const differs = fc.asyncProperty(cases, async ({ text, commands }) => {
      const table = tableOf(text);
      for (const command of commands) assert.equal(await differenceOf(table, command, new Set([rule])), undefined);
    });
    const { failed } = await fc.check(differs, { ...randomRuns(t, tablesMax), endOnFailure: true });
    assert.ok(failed);
  });

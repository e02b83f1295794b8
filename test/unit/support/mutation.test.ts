/**
 * Goal: a control plants its defect at the intended position, however the source is written; a defect that cannot be
 * planted is an error that names it. Method: small programs in several spellings.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import { pythonOf } from "../../../clients/conformance/runtimes.ts";
import { temporaryFolder } from "../../support/ledger-fixture.ts";
import { mutatedFile, mutatedText, sweptFile, type Mutation } from "../../support/mutation/mutate.ts";
import { mutatedPython, sweptPython } from "../../support/mutation/python.ts";
import { mutatedSources } from "../../support/mutation/sources.ts";

const python = [9, 10, 11, 12, 13].map(pythonOf).find((program) => program !== undefined);

const account = `
const most = 10;
class Account {
  #sum = 0;
  async pay(amount: number, ...notes: string[]): Promise<void> {
    if (amount > most) throw new Error("too much; ask first");
    await this.#keep("pay", amount, notes);
    this.#sum += amount;
  }
  #keep(...parts: unknown[]): void { void parts; }
}
const other = (amount: number) => { return amount > most; };
`;

/** The same program in another spelling: comments, line breaks, parentheses, quotes and types. */
const respelled = `
const most: number = /* in euros */ 1_0;
class Account {
  #sum = 0;
  async pay(amount: number, ...notes: string[]) {
    // A long sentence about amounts.
    if ((amount as number) > most)
      throw new Error('too much; ask first');
    await this.#keep(
      'pay', // what
      amount!,
      notes,
    );
    this.#sum += (amount); /* kept */
  }
  #keep(...parts: unknown[]) { void parts; }
}
const other = (amount: number) => { return amount > most; };
`;

const bare = (text: string): string => text.replaceAll(/\s+/g, "");

const mutations: readonly (readonly [what: string, mutation: Mutation, there: string])[] = [
  ["an expression", { within: "Account.pay", find: "amount > most", put: "false" }, "if((false))|if(false)"],
  [
    "a statement",
    { within: "Account.pay", find: "this.#sum += amount;", put: "void this.#sum;" },
    "voidthis.#sum;}|voidthis.#sum;/*kept*/}",
  ],
  [
    "the match of a wildcard",
    { within: "Account.pay", find: "await $call;", put: "setTimeout(() => $call);" },
    "setTimeout(()=>this.#keep(",
  ],
  [
    "the rest of a list",
    { within: "Account.pay", find: 'this.#keep("pay", $$rest)', put: 'this.#keep("paid", $$rest)' },
    'this.#keep("paid",amount',
  ],
  [
    "consecutive statements",
    { within: "Account.pay", find: "$keep; this.#sum += amount;", put: "this.#sum += amount; $keep" },
    "this.#sum+=amount;awaitthis.#keep(",
  ],
  ["part of a string", { within: "Account.pay", text: "; ask first", put: "" }, "\"toomuch\"|'toomuch'"],
  ["an initial value", { within: "most", value: "20" }, "=20;|=/*ineuros*/20;"],
  ["the start of a function", { within: "Account.pay", first: "return;" }, "{return;if|{return;//"],
  ["the end of a function", { within: "other", last: "throw 1;" }, "throw1;};"],
];

suite("a defect is planted in the parse tree", () => {
  for (const [what, mutation, there] of mutations) {
    test(`a mutation changes ${what}, however the source is written`, () => {
      for (const source of [account, respelled]) {
        const text = bare(mutatedText(source, [mutation]));
        assert.ok(
          there.split("|").some((each) => text.includes(each)),
          text,
        );
      }
    });
  }

  test("a mutation keeps a replaced expression as one operand", () => {
    const text = mutatedText("const a = b * c;", [{ within: "a", find: "b", put: "d + e" }], "js");
    assert.equal(text, "const a = (d + e) * c;");
  });

  const wrong: readonly (readonly [what: string, mutation: Mutation, said: RegExp])[] = [
    ["a missing function", { within: "Account.take", first: "return;" }, /Account\.take is there 0 times/],
    ["a missing place", { within: "Account.pay", find: "amount < most", put: "false" }, /has 0 such places/],
    ["an ambiguous place", { within: "Account.pay", find: "amount", put: "0" }, /has [2-9] such places/],
    ["a text outside string literals", { within: "Account.pay", text: "amount", put: "0" }, /has 0 such places/],
    ["a change without effect", { within: "most", value: "10" }, /"within":"most".* changes nothing/],
    ["a result that does not parse", { within: "most", value: "10 10" }, /does not parse with it/],
    ["a pattern that does not parse", { within: "most", find: "1 1", put: "" }, /the pattern does not parse: 1 1/],
    ["a name without an initial value", { within: "Account", value: "1" }, /has no initial value/],
    ["a name that is not a function with a body", { within: "most", first: "1;" }, /is not a function with a body/],
  ];
  for (const [what, mutation, said] of wrong)
    test(`a mutation is refused for ${what}`, () => assert.throws(() => mutatedText(account, [mutation]), said));

  test("a mutation is refused for a name that appears twice", () => {
    const twice = "function a() {} { function a() {} }";
    assert.throws(() => mutatedText(twice, [{ within: "a", first: "1;" }], "js"), /a is there 2 times, not once/);
  });

  test("a sweep changes each match of a pattern separately", (t) => {
    const file = join(temporaryFolder(t), "a.mjs");
    writeFileSync(file, "need(a, 1); function f() { return need(\n b) && needed(c); }");
    assert.deepEqual(sweptFile(file, { find: "need($$all)", put: "void [$$all]" }), [
      { found: "need(a, 1)", text: "(void [a, 1]); function f() { return need(\n b) && needed(c); }" },
      { found: "need(\n b)", text: "need(a, 1); function f() { return (void [b]) && needed(c); }" },
    ]);
    assert.equal(mutatedFile(file, [{ within: "f", find: "needed(c)", put: "d" }]).endsWith("&& (d); }"), true);
  });
});

suite("the search for the source file of a function", () => {
  test("a mutation finds the source file by the name of the function alone", () => {
    const [[url, text] = ["", ""]] = [
      ...mutatedSources([{ within: "AppendTransaction.commit", first: "await undefined;" }]),
    ];
    assert.match(url, /^file:.*\.ts$/);
    assert.match(text, /async commit\([^{]*\{ await undefined; /);
    assert.equal(fileURLToPath(url).includes("node_modules"), false);
  });

  test("an unknown or ambiguous function name is an error, and the end of a path resolves it", () => {
    const sources = new Map([
      [join("/src", "one", "append.ts"), "class AppendTransaction { commit() {} }"],
      [join("/src", "other", "append.ts"), "class AppendTransaction { commit() {} }"],
      [join("/src", "append.ts"), "commit(); // AppendTransaction"],
    ]);
    const mutate = (within: string, module: string) => mutatedSources([{ within, module, first: "1;" }], sources);
    assert.throws(
      () => mutatedSources([{ within: "AppendTransaction.omit", first: "1;" }], sources),
      /no module has AppendTransaction\.omit/,
    );
    assert.throws(() => mutate("AppendTransaction.commit", "no/append"), /no module has AppendTransaction\.commit/);
    assert.throws(
      () => mutate("AppendTransaction.commit", "append"),
      /several modules have AppendTransaction\.commit: .*one.*other/,
    );
    assert.deepEqual(
      [...mutate("AppendTransaction.commit", "other/append").values()],
      ["class AppendTransaction { commit() { 1; } }"],
    );
  });
});

const pythonProgram = `
class Account:
    def pay(self, amount, note):
        if amount > 10 and self.open and note:
            raise ValueError("too much; ask first")
        need(amount, "é", note)
        self.keep(amount)
`;
const pythonRespelled = `
class Account:
    def pay(self, amount, note):
        # A long sentence about amounts: é.
        if (amount > 10
            and self.open and (note)):
            raise ValueError('too much; ask first')
        need(amount, 'é',
            note)
        self.keep( amount )
`;

suite("a defect in a Python program", { skip: python === undefined && "no Python is installed here" }, () => {
  const written = (t: Parameters<typeof temporaryFolder>[0], text: string): string => {
    const file = join(temporaryFolder(t), "account.py");
    writeFileSync(file, text);
    return file;
  };
  const within = "Account.pay";
  const planted: readonly (readonly [what: string, mutation: Mutation, there: string])[] = [
    ["an operand", { within, find: "self.open", put: "True" }, "and(True)and"],
    ["the match of a wildcard", { within, find: "self.keep($it)", put: "self.lose($it, 1)" }, "self.lose(amount,1)"],
    ["the rest of a list", { within, find: "need(amount, $$rest)", put: "($$rest)" }, "note)"],
    ["part of a string", { within, text: "; ask first", put: "" }, "toomuch"],
  ];
  for (const [what, mutation, there] of planted) {
    test(`a mutation changes ${what}, however the source is written`, (t) => {
      for (const source of [pythonProgram, pythonRespelled]) {
        const text = bare(mutatedPython(python ?? "", written(t, source), [mutation]));
        assert.ok(text.includes(there) && text !== bare(source), text);
      }
    });
  }

  test("a mutation of Python is refused unless it matches once and the result parses", (t) => {
    const file = written(t, pythonProgram);
    const mutate = (mutation: Mutation) => () => mutatedPython(python ?? "", file, [mutation]);
    assert.throws(mutate({ within: "Account.take", find: "a", put: "b" }), /Account\.take is there 0 times/);
    assert.throws(mutate({ within, find: "self.shut", put: "True" }), /Account\.pay has 0 such places/);
    assert.throws(mutate({ within, find: "amount", put: "1" }), /Account\.pay has [2-9] such places/);
    assert.throws(mutate({ within, text: "o", put: "b" }), /has [2-9] such places/);
    assert.throws(mutate({ within, find: "self.open", put: "(self.open" }), /does not parse with it/);
  });

  test("a sweep changes each match of a pattern in a Python program separately", (t) => {
    const file = written(t, "need(a, 1)\nif need(b): pass\nneeded(c)\n");
    assert.deepEqual(
      sweptPython(python ?? "", file, { find: "need($$all)", put: "[$$all]" }).map(({ found, text }) => [found, text]),
      [
        ["need(a, 1)", "([a, 1])\nif need(b): pass\nneeded(c)\n"],
        ["need(b)", "need(a, 1)\nif ([b]): pass\nneeded(c)\n"],
      ],
    );
  });
});

/**
 * Goal: receipts keep apart the members that a contract lists under `sensitive:`, and a name that would keep nothing
 * apart is an error at its position. Method: a table of lists with their errors; the limits and one past them; the names
 * that apply to each tool if contracts and a mandate are combined.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { compareContracts } from "../../../../packages/workbench/src/analysis/mod.ts";
import { recompile, type PolicySet } from "../../../../packages/readers/src/contract.ts";
import { sensitiveMax } from "../../../../packages/core/src/contract/compile/sensitive.ts";
import { findMembers } from "../../../../packages/core/src/wire/mod.ts";
import { codes, compile, contractText, diagnostics, judge, marked, problems } from "../../../support/contract-kit.ts";
import { sentencesOf } from "../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const object = "type: object, additionalProperties: false";
const customer = `{ ${object}, $defs: { person: { ${object}, properties: { email: { type: string }, born: { type: string } } } },
        properties: { customer: { anyOf: [{ $ref: "#/$defs/person" }, { type: "null" }] }, order: { type: string },
          lines: { type: array, items: { ${object}, properties: { note: { type: string } } } },
          box: { type: [object, "null"], additionalProperties: true, properties: { deep: { ${object}, properties: { x: {} } } } },
          map: { type: object, additionalProperties: { type: string } }, "first-name": { type: string } } }`;
const facts =
  "{ type: object, properties: { customer_name: { type: string }, account: { type: object, properties: { iban: {} } } } }";

/** Returns a contract with one tool and a list of sensitive members. */
function listing(list: string, name = "c"): string {
  return `${contractText({ input: customer, platform: facts }, name)}sensitive: ${list}\n`;
}

const membersOf = (policySet: PolicySet, tool = "t"): readonly string[] => policySet.sensitive.ofTool.get(tool) ?? [];

suite("names under `sensitive:`", () => {
  const good: readonly (readonly [list: string, members: readonly string[]])[] = [
    ["[]", []],
    ["[input.order]", ["input.order"]],
    ["[platform.customer_name, input.order]", ["input.order", "platform.customer_name"]],
    ["[input.customer.email, input.customer.born]", ["input.customer.born", "input.customer.email"]],
    ["[platform.account.iban, input.customer]", ["input.customer", "platform.account.iban"]],
    ["[input.lines, input.box.deep.x]", ["input.box.deep.x", "input.lines"]],
    ["[input.map, platform.account]", ["input.map", "platform.account"]],
  ];
  for (const [list, members] of good)
    test(`the compiler accepts ${list}`, () => {
      const policySet = compile(listing(list));
      assert.deepEqual(membersOf(policySet), members);
      assert.deepEqual(membersOf(policySet, "other"), []);
      assert.equal(policySet.sensitive.ofTool.has("t"), members.length > 0);
    });

  const wrong: readonly (readonly [list: string, code: string, mark: string])[] = [
    ["input.order", "shape", "input.order"],
    ["{ a: b }", "shape", "{ a: b }"],
    ["[[input.order]]", "shape", "[input.order]"],
    ["[~]", "sensitive", "~"],
    ["[input]", "sensitive", "input"],
    ["[platform]", "sensitive", "platform"],
    ["[order]", "sensitive", "order"],
    ["[reason.x]", "sensitive", "reason.x"],
    ["[input.]", "sensitive", "input."],
    ["[input..order]", "sensitive", "input..order"],
    ["['input.lines[0].note']", "sensitive", "'input.lines[0].note'"],
    ["[input.first-name]", "sensitive", "input.first-name"],
    ["[input.ordér]", "sensitive", "input.ordér"],
    ["[' input.order']", "sensitive", "' input.order'"],
    ["[input.order, input.order]", "sensitive", "input.order"],
    ["[input.customer.email, input.customer]", "sensitive", "input.customer.email"],
    ["[input.oder]", "unknown-member", "oder"],
    ["[input.customer.emial]", "unknown-member", "emial"],
    ["[input.customer.email.x]", "unknown-member", "x"],
    ["[input.box.other]", "unknown-member", "other"],
    ["[input.map.any]", "unknown-member", "any"],
    ["['\\x69nput.oder']", "sensitive", "'\\x69nput.oder'"],
    ['["\\x69nput.oder"]', "unknown-member", "oder"],
    ["[platform.custmer_name]", "unknown-member", "custmer_name"],
    ["[platform.present]", "unknown-member", "present"],
    ["[input.__proto__]", "unknown-member", "__proto__"],
    ["[input.lines.note]", "sensitive", "note"],
  ];
  for (const [list, code, mark] of wrong)
    test(`the compiler refuses ${list}`, () => {
      const found = diagnostics(listing(list));
      assert.deepEqual(
        found.map((each) => each.code),
        [code],
      );
      says(list, found[0]?.message ?? "");
      assert.equal(found.map(marked).join(), mark);
    });

  test("the hint of an error says what to write", () => {
    const hint = (list: string): string | undefined => diagnostics(listing(list))[0]?.hint;
    assert.equal(hint("[input.customer.emial]"), "did you mean `email`?");
    assert.equal(hint("[platform.custmer_name]"), "did you mean `customer_name`?");
    for (const list of ["[input.lines.note]", "[input.map.any]", "[platform.zzz]"])
      says(`hint for ${list}`, hint(list) ?? "");
  });

  test("a contract without a schema of the snapshot cannot list a fact", () => {
    const text = `contract: c\ntools: { t: { input: { ${object} }, otherwise: ALLOW } }\nsensitive: [platform.a]\n`;
    assert.deepEqual(codes(text), ["unknown-member"]);
  });

  test("the compiler ends its search in a schema that refers to itself or whose branches double", () => {
    const twice = (at: number): string =>
      `d${at}: { anyOf: [{ $ref: "#/$defs/d${at + 1}" }, { $ref: "#/$defs/d${at + 1}" }] }`;
    const defs = [...Array(40).keys()].map(twice).join(", ");
    const input = `{ ${object}, $defs: { ${defs}, d40: { $ref: "#/$defs/d0" } }, properties: { a: { $ref: "#/$defs/d0" } } }`;
    const found = diagnostics(`${contractText({ input })}sensitive: [input.a.b]\n`);
    assert.deepEqual(found.filter(({ code }) => code === "unknown-member").map(marked), ["b"]);
  });
});

suite("limits of `sensitive:`", () => {
  /** Makes a tool whose input has this many members, and a list of some of them. */
  const many = (from: number, to: number, name = "c"): string => {
    const members = Array.from({ length: to - from }, (_, at) => `m${from + at}`);
    const properties = members.map((member) => `${member}: { type: string }`).join(", ");
    const list = members.map((member) => `input.${member}`).join(", ");
    return `${contractText({ input: `{ ${object}, properties: { ${properties} } }` }, name)}sensitive: [${list}]\n`;
  };

  test("a contract can list 16 members and no more", () => {
    assert.equal(membersOf(compile(many(0, sensitiveMax))).length, sensitiveMax);
    const [over = "", ...others] = problems(many(0, sensitiveMax + 1));
    assert.deepEqual(others, []);
    assert.match(over, /^too-large: /);
    says("over 16 members of a contract", over);
  });

  test("the contracts of one tool together can list 16 members and no more", () => {
    assert.equal(membersOf(compile(many(0, 8, "a"), many(8, 16, "b"))).length, sensitiveMax);
    const over = [many(0, 8, "a"), many(8, 17, "b")];
    for (const texts of [over, [...over, many(17, 20, "d")]]) {
      assert.deepEqual(codes(...texts), ["too-large"]);
      says("over 16 members of a tool", problems(...texts).join("\n"));
    }
  });

  test("a name can have 128 characters and no more", () => {
    const long = (length: number): string => {
      const name = "n".repeat(length - "input.".length);
      return `${contractText({ input: `{ ${object}, properties: { ${name}: {} } }` })}sensitive: [input.${name}]\n`;
    };
    assert.equal(membersOf(compile(long(128)))[0]?.length, 128);
    assert.deepEqual(codes(long(129)), ["sensitive"]);
  });
});

suite("sensitive members of calls", () => {
  test("a list applies to all tools of the contract, whatever each tool declares", () => {
    const tool = (input: string): string => `{ input: ${input}, otherwise: ALLOW }`;
    const text = `contract: c\ntools: { t: ${tool(customer)}, u: ${tool(`{ ${object} }`)} }\nsensitive: [input.order]\n`;
    assert.deepEqual(
      [...compile(text).sensitive.ofTool],
      [
        ["t", ["input.order"]],
        ["u", ["input.order"]],
      ],
    );
  });

  test("the lists of all contracts of a tool are joined, and an outer name replaces inner names", () => {
    const policySet = compile(listing("[input.customer.email, input.order]", "a"), listing("[input.customer]", "b"));
    assert.deepEqual(membersOf(policySet), ["input.customer", "input.order"]);
    const turned = compile(listing("[input.customer]", "b"), listing("[input.customer.email, input.order]", "a"));
    assert.deepEqual(membersOf(turned), membersOf(policySet));
    assert.deepEqual(membersOf(compile(listing("[input.order]", "a"), contractText({ input: customer }, "b"))), [
      "input.order",
    ]);
  });

  test("a name that starts like another name is not inside it", () => {
    const input = `{ ${object}, properties: { a: {}, ab: {}, "a_": {} } }`;
    const policySet = compile(`${contractText({ input })}sensitive: [input.ab, input.a, input.a_]\n`);
    assert.deepEqual(membersOf(policySet), ["input.a", "input.a_", "input.ab"]);
  });

  test("sensitive members are in the text of GET /rules and can be compiled again from it", () => {
    const { text, sensitive } = compile(listing("[input.customer.email]"));
    assert.match(text, /sensitive: \[input\.customer\.email\]/);
    const again = recompile(text);
    assert.ok(again.ok);
    assert.deepEqual(again.value.sensitive, sensitive);
    assert.deepEqual([...sensitive.ofTool.values()], [["input.customer.email"]]);
  });

  test("a list of sensitive members does not change verdicts", () => {
    for (const input of [{ order: "x" }, { order: 5 }, { customer: { email: "a@b" } }, {}]) {
      const [listed, bare] = ["[input.order, input.customer.email]", "[]"].map((list) =>
        judge(compile(listing(list)), { input }),
      );
      assert.deepEqual(listed, bare);
    }
  });

  test("the comparison of contracts notes a changed list and still answers equivalent", async () => {
    const bare = contractText({ input: customer, platform: facts });
    const notes = async (before: string, after: string): Promise<readonly string[]> => {
      const options = { solver: undefined, timeMs: 120_000 };
      const [found] = await compareContracts(compile(before), compile(after), options);
      assert.equal(found?.answer, "equivalent");
      return found.notes;
    };
    assert.deepEqual(await notes(listing("[input.order]"), listing("[input.order]")), []);
    const changes = {
      added: [bare, listing("[input.order, input.customer]")],
      exchanged: [listing("[input.order]"), listing("[input.box]")],
      removed: [listing("[input.order]"), bare],
    } as const;
    for (const [name, [before, after]] of Object.entries(changes))
      says(`note: ${name}`, (await notes(before, after)).join("\n"));
  });

  test("the names find the same members in a text as in the schema", () => {
    const names = membersOf(compile(listing("[input.customer.email, input.box.deep.x]")));
    const text = '{"box":{"deep":{"x":[1]}},"customer":{"email":"a@b"}}';
    const spans = findMembers(
      text,
      names.map((name) => name.split(".").slice(1)),
    );
    assert.deepEqual(
      spans.map((span) => span && text.slice(span.from, span.to)),
      ["[1]", '"a@b"'],
    );
  });
});

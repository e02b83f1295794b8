/**
 * Sensitive members as separate parts of the evidence. Goal: a member can be erased while all else stays, the sent text
 * is restored exactly while no member is erased, and no proof changes. Method: random JSON with random sensitive
 * members is compared with the sent text; evidence that was changed by hand; a walk over rows that lack members.
 */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { suite, test } from "node:test";
import fc from "fast-check";
import { disclose, memberOf, partDigest } from "../../../../packages/core/src/record/entry/disclosure.ts";
import { MissingParts, readErasure, withWhatQuotes } from "../../../../packages/core/src/record/entry/erasure.ts";
import {
  areSalted,
  evidenceDigest,
  isEmptyList,
  makeEvidence,
  missingParts,
  partText,
  presentParts,
  wholeText,
  withoutParts,
  type SensitiveMember,
} from "../../../../packages/core/src/record/entry/evidence.ts";
import { findMembers, isMemberName, type MemberName } from "../../../../packages/core/src/wire/mod.ts";
import { control } from "../../../support/controls/control.ts";
import { leafOf } from "../../../support/ledger-fixture.ts";
import { randomRuns } from "../../../support/random-test.ts";

const input = '{"amount":10,"customer":{"email":"k@example.org","name":"K\\u00e4te"},"note":"K"}';
const platform = '{"owner":["a","b"],"tier":1.50}';
const names: readonly MemberName[] = ["input.customer.email", "input.customer.name", "platform.owner"];

function membersIn(
  texts: Readonly<Record<"input" | "platform", string>>,
  listed: readonly string[],
): SensitiveMember[] {
  return listed.filter(isMemberName).flatMap((name): readonly SensitiveMember[] => {
    const [parent, ...path] = name.split(".");
    const [span] = findMembers(texts[parent as "input" | "platform"], [path]);
    return span === undefined ? [] : [{ name, ...span }];
  });
}

function evidenceWith(
  members: readonly SensitiveMember[],
  texts = { input, platform },
): ReturnType<typeof makeEvidence> {
  return makeEvidence(
    ['{"session_id":null,"tool_name":"t"}', texts.input, texts.platform, '"why"', "{}", "[]"],
    members,
  );
}

const sample = (): ReturnType<typeof makeEvidence> => evidenceWith(membersIn({ input, platform }, names));

suite("sensitive members in the evidence", () => {
  test("a sensitive member is a disclosure after the first six, and a reference replaces it", () => {
    const { stored, digest } = sample();
    const parts = stored.split("~");
    const texts = parts.map((part) => Buffer.from(part, "base64url").toString("utf8"));
    assert.match(texts[6] ?? "", /^\["[\w-]{22}","input\.customer\.email","k@example\.org"\]$/);
    assert.match(texts[7] ?? "", /^\["[\w-]{22}","input\.customer\.name","K\\u00e4te"\]$/);
    assert.match(texts[8] ?? "", /^\["[\w-]{22}","platform\.owner",\["a","b"\]\]$/);
    const [email, name, owner] = parts.slice(6).map(partDigest);
    const cut = `{"amount":10,"customer":{"email":{"...":"${email}"},"name":{"...":"${name}"}},"note":"K"}`;
    assert.ok(texts[1]?.endsWith(`"input",${cut}]`));
    assert.ok(texts[2]?.endsWith(`"platform",{"owner":{"...":"${owner}"},"tier":1.50}]`));
    const under = [
      ...parts.slice(0, 6).map(partDigest),
      ...names.map((named, at) => `${[email, name, owner][at]}${named}~`),
    ];
    assert.equal(digest, hash("sha256", under.toSorted().join(""), "hex"));
    assert.deepEqual([evidenceDigest(stored), areSalted(stored)], [digest, true]);
  });

  test("a sensitive member is read back as it was sent and can be erased alone", () => {
    const { stored, digest } = sample();
    assert.deepEqual([partText(stored, "input"), partText(stored, "platform")], [input, platform]);
    const erased = withoutParts(stored, withWhatQuotes(["input.customer.email"]));
    assert.deepEqual(missingParts(erased), ["reason", "outcome", "input.customer.email"]);
    assert.equal(evidenceDigest(erased), digest);
    assert.match(
      partText(erased, "input") ?? "",
      /^\{"amount":10,"customer":\{"email":\{"\.\.\.":"[\w-]{43}"\},"name":"K\\u00e4te"\},/,
    );
    assert.deepEqual([wholeText(erased, "input"), wholeText(erased, "platform")], [undefined, platform]);
    assert.ok(isEmptyList(erased, "effects"));
    assert.ok(!erased.split("~").some((part) => Buffer.from(part, "base64url").includes("k@example")));
    assert.equal(withoutParts(erased, ["input.customer.email"]), erased);
  });

  test("an erasure of the input also erases its sensitive members and no others", () => {
    const erased = withoutParts(sample().stored, ["input"]);
    assert.deepEqual(missingParts(erased), ["input", "input.customer.email", "input.customer.name"]);
    assert.deepEqual(presentParts(erased), ["call", "platform", "reason", "outcome", "effects", "platform.owner"]);
    assert.equal(partText(erased, "platform"), platform);
  });

  test("a value that only looks like a reference stays as it was sent", () => {
    const text = `{"a":{"...":"${"A".repeat(43)}"},"customer":{"email":{"...":"x"}}}`;
    const texts = { input: text, platform };
    const { stored } = evidenceWith(membersIn(texts, names), texts);
    assert.equal(partText(stored, "input"), text);
  });

  test("random inputs are read back as they were sent, and their digest stays valid after an erasure", (t) => {
    const key = fc.constantFrom("a", "b", "c", "d\\", 'e"', "ä");
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof({ depthSize: "small" }, fc.jsonValue(), fc.dictionary(key, tie("value"), { maxKeys: 4 })),
    }));
    const object = fc.dictionary(key, value, { maxKeys: 5 }).map((found) => JSON.stringify(found));
    const path = fc.tuple(
      fc.constantFrom("input", "platform"),
      fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 3 }),
    );
    const listed = fc.array(
      path.map(([parent, steps]) => [parent, ...steps].join(".")),
      { maxLength: 6 },
    );
    fc.assert(
      fc.property(object, object, listed, fc.nat(), (ofInput, ofPlatform, wanted, chosen) => {
        const apart = [...new Set(wanted)].filter((name) => !wanted.some((other) => name.startsWith(`${other}.`)));
        const texts = { input: ofInput, platform: ofPlatform };
        const members = membersIn(texts, apart);
        const { stored, digest } = evidenceWith(members, texts);
        assert.deepEqual([partText(stored, "input"), partText(stored, "platform")], [ofInput, ofPlatform]);
        const gone = members.filter((_, index) => ((chosen >> index) & 1) === 1).map(({ name }) => name);
        const erased = withoutParts(stored, gone);
        assert.equal(evidenceDigest(erased), digest);
        assert.deepEqual(missingParts(erased), gone.toSorted());
        assert.equal(
          wholeText(erased, "input") === undefined,
          gone.some((name) => name.startsWith("input.")),
        );
      }),
      randomRuns(t),
    );
  });
});

suite("changed evidence with sensitive members", () => {
  const { stored, digest } = sample();
  const parts = stored.split("~");
  const email = parts[6] ?? "";
  const gone = `!${partDigest(email)}`;
  const cases: readonly (readonly [title: string, changed: readonly string[], isForm: boolean])[] = [
    ["two members in the wrong order", [...parts.slice(0, 6), parts[7] ?? "", email, parts[8] ?? ""], false],
    ["one member twice", [...parts.slice(0, 7), ...parts.slice(6)], false],
    ["one member missing", parts.toSpliced(6, 1), true],
    ["an additional member", [...parts, disclose("platform.zip", "1")], true],
    ["another value under a member's name", parts.with(6, disclose("input.customer.email", '"s@example.org"')), true],
    ["another name for a member's value", parts.with(6, disclose("input.customer.fax", '"k@example.org"')), true],
    [
      "a member with an invalid name",
      parts.with(6, Buffer.from('["AAAAAAAAAAAAAAAAAAAAAA","input.a b",1]').toString("base64url")),
      false,
    ],
    ["one of the six parts in a member's place", parts.with(6, parts[4] ?? ""), false],
    ["an erased member without its name", parts.with(6, gone), false],
    ["an erased member under another name", parts.with(6, `${gone}input.customer.fax`), true],
    [
      "an erased member under a name of the other parent",
      [...parts.slice(0, 6), ...parts.slice(7), `${gone}platform.zip`],
      true,
    ],
    ["an erased member under an invalid name", parts.with(6, `${gone}inputs.email`), false],
    ["another spelling of a member's base64url", parts.with(6, `${email}=`), false],
    [
      "one of the six parts erased under a member's name",
      parts.with(3, `!${partDigest(parts[3] ?? "")}input.a`),
      false,
    ],
    ["only the six parts and a separator", [...parts.slice(0, 6), ""], false],
  ];
  for (const [title, changed, isForm] of cases) {
    test(`the leaf does not commit to evidence with ${title}`, () => {
      const found = evidenceDigest(changed.join("~"));
      assert.notEqual(found, digest);
      assert.equal(found !== undefined, isForm);
    });
  }

  test("a name that continues like a digest has only one reading", () => {
    const [a, b, c, d, ...rest] = Array.from("ABCDEFGHI", (letter) => letter.repeat(43));
    const left = (fixed: string | undefined, behind: readonly string[]): string =>
      [fixed, ...rest, ...behind].map((part) => `!${part}`).join("~");
    const [one, other] = [left(d, [`${a}input.a${b}`, `${c}input.b`]), left(b, [`${a}input.a`, `${c}input.b${d}`])];
    const joined = (line: string): string => line.split("~").toSorted().join("").replaceAll("!", "");
    assert.equal(joined(one), joined(other), "positive control: without an end both are one text");
    assert.notEqual(evidenceDigest(one), undefined);
    assert.notEqual(evidenceDigest(one), evidenceDigest(other));
  });

  control("positive control: the leaf commits to the evidence as stored and after a correct erasure", () => {
    assert.equal(evidenceDigest(stored), digest);
    const erased = parts.with(6, `${gone}input.customer.email`).join("~");
    assert.equal(evidenceDigest(erased), digest);
    assert.equal(memberOf(`${gone}input.customer.email`), "input.customer.email");
  });
});

suite("verification of rows that lack members", () => {
  const rowOf = (body: string): string => makeEvidence(["null", body, "null", '"why"', "{}", "[]"]).stored;
  const afterErasure = (parts: string): MissingParts => {
    const missing = new MissingParts();
    missing.pass(leafOf(1, null), "", ["input.customer.email", "reason"]);
    missing.pass(leafOf(2, null), "", ["platform.owner"]);
    const broken = missing.pass(leafOf(3, "erase"), rowOf(`{"parts":[${parts}],"rows":[[1,2]]}`), []);
    assert.equal(broken, undefined);
    return missing;
  };
  const cases: readonly (readonly [parts: string, first: number | undefined])[] = [
    ['"input.customer.email","platform.owner","reason"', undefined],
    ['"input","platform","reason"', undefined],
    ['"input.customer.email","reason"', 2],
    ['"input.customer","platform.owner","reason"', 1],
    ['"input.customer.emai","platform.owner","reason"', 1],
    ['"input.customer.email","platform.owner"', 1],
    ['"input.customer.name","platform.owner","reason"', 1],
    ['"platform","reason"', 1],
  ];
  for (const [parts, first] of cases) {
    test(`an erasure of ${parts} ${first === undefined ? "explains all" : `does not explain row ${first}`}`, () => {
      assert.equal(afterErasure(parts).first?.seq, first);
    });
  }

  test("an erasure must name valid members, each once and in order", () => {
    const read = (parts: string): unknown => readErasure(rowOf(`{"parts":[${parts}],"rows":[[1,1]]}`), 9)?.parts;
    assert.deepEqual(read('"input","input.a","outcome"'), ["input", "input.a", "outcome"]);
    for (const wrong of [
      '"input.b","input.a"',
      '"input.a","input.a"',
      '"input."',
      '"effects.a"',
      '"input.a b"',
      '"input.0"',
    ])
      assert.equal(read(wrong), undefined, wrong);
  });
});

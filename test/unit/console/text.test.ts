/**
 * Goal: nothing in an agent's text is hidden, changes its position, or makes a page large. Method: a table of texts with what
 * the page shows; random texts of hostile characters, whose plain parts have none of them. A page element is counted,
 * never a time. Positive control: a page that shows texts as they are is noticed.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { h, type JSX } from "preact";
import {
  elementsOf,
  isShownWhole,
  runsLeftward,
  SourceText,
  Text,
} from "../../../packages/console/src/browser/text.ts";
import { control } from "../../support/controls/control.ts";
import { randomRuns } from "../../support/random-test.ts";

type Node = JSX.Element | readonly Node[] | boolean | number | string | null | undefined;
type Show = (props: { readonly of: string }) => JSX.Element;

/** The texts of a page by the kind of their element. A long text is a component of its own, and gives none. */
function textsOf(node: Node, kind = ""): readonly (readonly [kind: string, text: string])[] {
  if (typeof node === "string") return [[kind, node]];
  if (Array.isArray(node)) return node.flatMap((each: Node) => textsOf(each, kind));
  if (node === null || typeof node !== "object") return [];
  const { type, props } = node as JSX.Element;
  return textsOf(props.children, type === "mark" ? "mark" : props.dir === "rtl" ? "leftward" : kind);
}

/** Marks are in brackets, and letters that run to the left are in braces. */
function shown(text: string, show: Show = Text): string {
  const [open, close] = [
    { mark: "[", leftward: "{" },
    { mark: "]", leftward: "}" },
  ];
  const around = (signs: Readonly<Record<string, string>>, kind: string): string => signs[kind] ?? "";
  return textsOf(show({ of: text }))
    .map(([kind, each]) => around(open, kind) + each + around(close, kind))
    .join("");
}

const table: readonly (readonly [text: string, shown: string])[] = [
  ["for the boat", "for the boat"],
  ["a\u200bz", String.raw`a[\u200b]z`],
  ["\u200b\u202e\u{e0041}", String.raw`[\u200b\u202e\u{e0041}]`],
  ["\u200b".repeat(9), "[«9 hidden characters: U+200B»]"],
  ["\u200b".repeat(60_000), "[«60000 hidden characters: U+200B»]"],
  ["\u200b\u200c\u200d\u2060".repeat(3), "[«12 hidden characters: U+200B, U+200C, U+200D and others»]"],
  ["a\nb\r\n\r\n\tc", String.raw`a[\n]` + "\nb" + String.raw`[\r\n\r\n]` + "\n" + String.raw`[\t]c`],
  ["\n".repeat(40), "[«40 hidden characters: U+000A»]\n"],
  ["\ud800", String.raw`[\ud800]`],
  [`pay${" ".repeat(7)}all`, `pay${" ".repeat(7)}all`],
  [`pay${" ".repeat(8)}all`, "pay[«8 blanks»]all"],
  [`pay${"\u2800\u{1d159}\u3000".repeat(3)}all`, "pay[«9 blanks»]all"],
  ["e\u0301\u0323\u0330\u0331", "e\u0301\u0323\u0330\u0331"],
  [`e${"\u0301".repeat(5)}`, "e[«5 combining marks: U+0301»]"],
  [`x${"\u0489".repeat(300)}y`, "x[«300 combining marks: U+0489»]y"],
  ["\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd", "{\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd}"],
  [`\u1000${"\u1039\u1000".repeat(3)}`, "\u1000[«6 stacked letters: U+1039, U+1000»]"],
  ["a\ufffcz", String.raw`a[\ufffc]z`],
  ["\u05d0 500 - 20 USD", "{\u05d0} 500 - 20 USD"],
  ["\u05d0\u05b0\u05d1", "{\u05d0\u05b0\u05d1}"],
  [`\u05d0${"\u05b0".repeat(6)}`, "{\u05d0}[«6 combining marks: U+05B0»]"],
];

/** Names and words in which marks are ordinary. */
const ordinary: readonly string[] = [
  "Việt Nam",
  "naïve",
  "Zoë Ångström",
  "हिन्दी",
  "ไทยน้ำใจ",
  "தமிழ்",
  "မြန်မာ",
  "ភាសាខ្មែរ",
  "សាស្ត្រ",
  "သတ္တဝါ",
  "ပစ္စည်း",
  "བོད་སྐད",
  "日本語",
  "한국어",

  "Ω≈ç√∫",
].map((each) => each.normalize("NFD"));

const hostile = new RegExp(
  [
    String.raw`[\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\ufffc]`,
    String.raw`\p{M}{5}|(?:[\u1039\u17d2]\p{L}){3}|[\p{Zs}\u2800]{8}|\p{Script=Hebrew}|\p{Script=Arabic}`,
  ].join("|"),
  "u",
);

/** The first plain part of a text that could mislead a reader. */
function misleading(text: string, show: Show): string | undefined {
  const plain = textsOf(show({ of: text })).filter(([kind]) => kind === "");
  return plain.map(([, each]) => each).find((each) => each !== "\n" && hostile.test(each));
}

const units = fc.constantFrom(
  "a",
  "1",
  " ",
  "\n",
  "\u200b",
  "\u202e",
  "\u0301",
  "\u0489",
  "\u05d0",
  "\u0661",
  "\u{1e900}",
  "\ud83d",
  "😀",
  "\ufe0f",
  "\u2800",
  "\ufffc",
  "\u1039\u1000",
  '"',
);
const runs = fc.tuple(units, fc.nat({ max: 12 })).map(([unit, times]) => unit.repeat(times));
const texts = fc.array(runs, { maxLength: 12 }).map((all) => all.join(""));

suite("texts in the console", () => {
  test("a page shows each kind of text as the table says", () => {
    for (const [text, expected] of table) assert.equal(shown(text), expected);
  });

  test("words in which marks are ordinary look as they are, in every script", () => {
    for (const word of ordinary) assert.equal(shown(word), word);
  });

  test("no plain part of a text can mislead a reader", (t) => {
    const property = fc.property(texts, (text) => assert.equal(misleading(text, Text), undefined));
    fc.assert(property, randomRuns(t, 1000));
  });

  control("positive control: a page that shows texts as they are is noticed", () => {
    const bare: Show = ({ of }) => h("bdi", null, of);
    assert.notEqual(misleading("a\u200bz", bare), undefined);
    assert.notEqual(misleading(`e${"\u0301".repeat(5)}`, bare), undefined);
    assert.notEqual(misleading("\u05d0 500", bare), undefined);
  });

  test("a text of 256 KiB makes few elements until a person opens it", (t) => {
    const alternating = fc.array(units, { minLength: 1, maxLength: 6 }).map((all) => all.join(""));
    const property = fc.property(alternating, (pattern) => {
      const text = pattern.repeat(Math.floor(60_000 / pattern.length));
      assert.ok(elementsOf(text) <= 48, `${elementsOf(text)} elements`);
    });
    fc.assert(property, randomRuns(t, 60));
    assert.equal(elementsOf("a\u200b".repeat(60_000)), 48, "positive control: they are counted");
  });

  test("a text over 4 KB opens on request", () => {
    assert.ok(isShownWhole("x".repeat(4096)));
    assert.ok(!isShownWhole("x".repeat(4097)));
    assert.ok(!isShownWhole("a\u200b".repeat(65)), "too many marks");
    assert.ok(isShownWhole("a\n".repeat(64)), "64 lines");
    assert.ok(isShownWhole("\u200b".repeat(60_000)), "one mark");
  });

  test("a text with letters from right to left has a note", () => {
    assert.deepEqual(["\u05d0 500", "500", "\u0661", "e\u0301"].map(runsLeftward), [true, false, true, false]);
  });

  test("a text of the gate keeps its blanks and line ends, and shows hidden characters", () => {
    const text = `1 | a: b\u200b\n  |${" ".repeat(20)}^`;
    assert.equal(shown(text, SourceText), `${text.replace("\u200b", String.raw`[\u200b]`)}\n`);
  });
});

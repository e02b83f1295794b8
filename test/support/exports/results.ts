/** Results of tools: leaves with contradicting members, missing checks, and erased parts. */
import { type Files, type RowPlan } from "./fixture.ts";
import { isTrue, oneCase, planned, resultFiles, resultPlans, type ExportCase } from "./ground.ts";

/** The rows of results, with one row changed. */
const other = (row: number, over: RowPlan): Files => planned(row, over, resultPlans);
const checkIs = (check: number): Files => other(10, { check });
const written = (row: number, change: (text: string) => string): Files => other(row, { written: change });

const wrongLeaves: readonly (readonly [name: string, row: number, from: string, to: string])[] = [
  ["a check that names a check", 9, '"contract":', '"check":1,"contract":'],
  ["an act that names a check", 8, '"contract":', '"check":1,"contract":'],
  ["a result that names no check", 10, '"check":9,', ""],
  ["a result that is an act", 10, "{", '{"act":"reload",'],
  ["a result that was answered", 10, '"answered":null', '"answered":"ALLOW"'],
  ["a result with a rule", 10, '"rule":null', '"rule":"notes.$otherwise"'],
  ["a result with a verdict", 10, '"verdict":null', '"verdict":"ALLOW"'],
  ["a check with the kind of a result", 9, '"kind":"check"', '"kind":"result"'],
  ["a result with the kind of a check", 10, '"kind":"result"', '"kind":"check"'],
  ["a result with the kind of an act", 10, '"kind":"result"', '"kind":"change"'],
  ["a number of a check that starts with 0", 10, '"check":9', '"check":09'],
  ["a number of a check below 0", 10, '"check":9', '"check":-9'],
  ["a number of a check as a text", 10, '"check":9', '"check":"9"'],
  ["a number of a check with 16 digits", 10, '"check":9', '"check":1000000000000009'],
  ["a check that is null", 10, '"check":9', '"check":null'],
  ["a check behind the contract", 10, /"check":9,("contract":[^,]+)/.source, '$1,"check":9'],
];

const wrongChecks: readonly (readonly [name: string, files: Files, row?: number])[] = [
  ["row 0", checkIs(0)],
  ["its own row", checkIs(10)],
  ["a later row", other(2, { check: 4 }), 2],
  ["a row that there is not", checkIs(999_999_999_999_999)],
  ["an act", checkIs(8)],
  ["another result", other(6, { check: 2 }), 6],
  ["a check with another tool", other(6, { members: { tool: "mail.send" } }), 6],
  ["a check with a tool, where it has none", other(6, { members: { tool: null } }), 6],
  ["a check with no tool, where it has one", other(7, { members: { tool: "note.add" } }), 7],
  ["a check by another key", other(6, { members: { key: "ci" } }), 6],
  ["a check by no key, where it has one", other(10, { members: { key: "default" } })],
  ["a check by the key null, where it has none", other(10, { members: { key: "null" } })],
];

const good = { erased_parts: 3 };

export const resultCases: readonly ExportCase[] = [
  oneCase("good: results of tools", resultFiles, isTrue(10, good)),
  oneCase(
    "good: a result of a call that was blocked",
    other(1, { members: { verdict: "BLOCK", answered: "BLOCK" } }),
    isTrue(10, good),
  ),
  ...wrongLeaves.map(([name, row, from, to]) => {
    const files = written(row, (text) => text.replace(from.includes("[^") ? new RegExp(from) : from, to));
    return oneCase(`leaf: ${name}`, files, { row, code: "leaf" });
  }),
  ...wrongChecks.map(([name, files, row = 10]) =>
    oneCase(`result: its check is ${name}`, files, { row, code: "result" }),
  ),
  oneCase("erasure: a result's input that no row says was erased", other(2, { erased: ["input"] }), {
    row: 2,
    code: "erasure",
  }),
  oneCase("erasure: the effects of a result", other(6, { erased: ["effects"] }), { row: 6, code: "erasure" }),
  oneCase("good: a result whose call and input were erased", other(6, { erased: ["call", "input"] }), {
    ...isTrue(10, { erased_parts: 5 }),
  }),
  oneCase(
    "digest: another digest in a result",
    other(2, { line: (line) => line.replace(/~([^~]{60})./, (_, before: string) => `~${before}A`) }),
    { row: 2, code: "digest" },
  ),
];

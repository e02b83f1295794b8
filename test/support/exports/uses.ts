/** Uses of approvals: answers that are more lenient than their verdicts, and rows that say which approval permits them. */
import { type Files, type RowPlan } from "./fixture.ts";
import { isTrue, oneCase, planned, usePlans, useFiles, type ExportCase } from "./ground.ts";

const other = (row: number, over: RowPlan): Files => planned(row, over, usePlans);
const uses = (input: string): Files => other(4, { values: { input } });
const [one, two] = ['{"approval":1,"needed":true,"row":2}', '{"approval":1,"needed":false,"row":3}'];

const wrongBodies: readonly (readonly [name: string, input: string])[] = [
  ["that lists no use", '{"uses":[]}'],
  ["without the list", "{}"],
  ["with a space", `{"uses": [${one},${two}]}`],
  ["with another order of members", '{"uses":[{"needed":true,"approval":1,"row":2}]}'],
  ["with a member more", '{"uses":[{"approval":1,"needed":true,"row":2,"x":1}]}'],
  ["with a member more beside the list", `{"a":1,"uses":[${one},${two}]}`],
  ["with a number as a text", '{"uses":[{"approval":1,"needed":true,"row":"2"}]}'],
  ["with a fraction", '{"uses":[{"approval":1,"needed":true,"row":2.0}]}'],
  ["with a number of 16 digits", '{"uses":[{"approval":1000000000000000,"needed":true,"row":2}]}'],
  ["of an approval in row 0", '{"uses":[{"approval":0,"needed":true,"row":2}]}'],
  ["of an approval in the row that used it", '{"uses":[{"approval":2,"needed":true,"row":2}]}'],
  ["by its own row", '{"uses":[{"approval":1,"needed":true,"row":4}]}'],
  ["by a later row", '{"uses":[{"approval":1,"needed":true,"row":5}]}'],
];

const wrongAnswers: readonly (readonly [name: string, members: Readonly<Record<string, string>>])[] = [
  ["an ESCALATE answered ALLOW", { verdict: "ESCALATE", answered: "ALLOW" }],
  ["a BLOCK answered ALLOW", { verdict: "BLOCK", answered: "ALLOW" }],
  ["a BLOCK answered ESCALATE", { verdict: "BLOCK", answered: "ESCALATE" }],
  ["an ESCALATE answered ALLOW in assist mode", { mode: "assist", verdict: "ESCALATE", answered: "ALLOW" }],
  ["a BLOCK answered ALLOW in assist mode", { mode: "assist", verdict: "BLOCK", answered: "ALLOW" }],
];

const rightAnswers: readonly (readonly [name: string, members: Readonly<Record<string, string>>])[] = [
  ["a BLOCK answered ESCALATE in assist mode", { mode: "assist", verdict: "BLOCK", answered: "ESCALATE" }],
  ["a BLOCK answered ALLOW in observe mode", { mode: "observe", verdict: "BLOCK", answered: "ALLOW" }],
  ["an ALLOW answered BLOCK", { verdict: "ALLOW", answered: "BLOCK" }],
];

const good = { contracts: 1, erased_parts: 0 };
const [first, second] = ['{"amounts":{},"grant":1,"row":2}', '{"amounts":{"input.usd":"4.5"},"grant":1,"row":3}'];

const rightGrants: readonly (readonly [name: string, input: string])[] = [
  ["that a grant let through", `{"grants":[${first},${second}],"uses":[]}`],
  ["of which one used an approval and one a grant", `{"grants":[${second}],"uses":[${one}]}`],
];

const wrongGrants: readonly (readonly [name: string, input: string])[] = [
  ["with grants and without the list of uses", `{"grants":[${first},${second}]}`],
  ["with an empty list of grants", `{"grants":[],"uses":[${one},${two}]}`],
  ["with a grant in the row that used it", `{"grants":[{"amounts":{},"grant":2,"row":2},${second}],"uses":[]}`],
  ["with a use of a grant by its own row", `{"grants":[{"amounts":{},"grant":1,"row":4}],"uses":[]}`],
  ["with an amount that is an object", `{"grants":[{"amounts":{"a":{}},"grant":1,"row":2},${second}],"uses":[]}`],
];

export const useCases: readonly ExportCase[] = [
  oneCase("good: two checks that used one approval each", useFiles, isTrue(6, good)),
  ...rightGrants.map(([name, input]) => oneCase(`good: two checks ${name}`, uses(input), isTrue(6, good))),
  ...wrongGrants.map(([name, input]) => oneCase(`use: a row ${name}`, uses(input), { row: 4, code: "use" })),
  ...rightAnswers.map(([name, members]) => oneCase(`good: ${name}`, other(5, { members }), isTrue(6, good))),
  ...wrongAnswers.map(([name, members]) =>
    oneCase(`use: ${name}, and no row names it`, other(5, { members }), { row: 5, code: "use" }),
  ),
  oneCase("use: the row names another check", uses(`{"uses":[${two}]}`), { row: 2, code: "use" }),
  oneCase("use: the act of the row is another", other(4, { act: "approval.expire" }), { row: 2, code: "use" }),
  ...wrongBodies.map(([name, input]) => oneCase(`use: a row ${name}`, uses(input), { row: 4, code: "use" })),
];

/**
 * Inputs that a gate does not keep whole, each with the value that replaces it in the receipt, computed in a simple
 * way.
 */
import { sha256, type RowPlan } from "./fixture.ts";

export interface CutInputCase {
  readonly name: string;
  /** The input as it was sent, without white space outside strings. */
  readonly input: string;
  /** JSON texts of its sensitive members, by their names: each occurs once in the input. */
  readonly sensitive: Readonly<Record<string, string>>;
  /** The value of the part `input`. */
  readonly value: string;
  /** The row of the folder `cut` that contains it. */
  readonly row: number;
}

interface Plan extends Omit<CutInputCase, "value"> {
  /** The length of the input's start in the head. */
  readonly head: number;
}

const plans: readonly Plan[] = [
  { name: "an input of 257 bytes", row: 2, input: `{"text":"${"x".repeat(246)}"}`, sensitive: {}, head: 256 },
  {
    name: "a character that the end of the head would part",
    row: 3,
    input: `{"text":"${"x".repeat(246)}\u00e9 and more"}`,
    sensitive: {},
    head: 255,
  },
  {
    name: "a character of two UTF-16 units at the end of the head",
    row: 4,
    input: `{"text":"${"x".repeat(245)}\u{1f4b3}\\n\\"and more\\""}`,
    sensitive: {},
    head: 254,
  },
  {
    name: "sensitive members",
    row: 5,
    input: `{"customer":{"email":"ada@example.org"},"phone":"+32 2 555 12 12","text":"${"x".repeat(300)}"}`,
    sensitive: { "input.phone": '"+32 2 555 12 12"', "input.customer.email": '"ada@example.org"' },
    head: 256,
  },
];

function valueOf({ input, sensitive, head }: Plan): string {
  const shown = Object.values(sensitive).reduce((text, value) => text.replace(value, "null"), input);
  const names = Object.keys(sensitive).toSorted();
  const fields = {
    bytes: Buffer.byteLength(input),
    head: Buffer.from(shown).toString("utf8", 0, head),
    sha256: sha256(shown).toString("hex"),
    ...(names.length === 0 ? {} : { withheld: names }),
  };
  return JSON.stringify([fields]);
}

export const cutInputs: readonly CutInputCase[] = plans.map(({ name, row, input, sensitive, head }) => ({
  name,
  row,
  input,
  sensitive,
  value: valueOf({ name, row, input, sensitive, head }),
}));

/** An agent's input is an object, whatever its members are. */
export const lookAlike = (cutInputs[0]?.value ?? "").slice(1, -1);

/** Checks that were refused before any rule, and a row that erases an input's marker. */
export function cutPlans(contract: string): readonly RowPlan[] {
  const call = '{"session_id":"run-1","tool_name":"note.drop"}';
  const unknown = { tool: null, rule: "$route", verdict: "BLOCK", answered: "BLOCK" };
  const reason = '"Svc: unknown tool \\"note.drop\\": no contract routes it"';
  const refused = (input: string): RowPlan => ({ contract, values: { call, input, reason }, members: unknown });
  const erase = '{"parts":["input","outcome","reason"],"rows":[[7,7]]}';
  return [
    refused('{"n":1}'),
    ...cutInputs.map(({ value }) => refused(value)),
    refused(lookAlike),
    { ...refused(cutInputs[0]?.value ?? ""), erased: ["input", "outcome", "reason"] },
    { act: "erase", contract, values: { input: erase, reason: '"asked for by the person"' } },
  ];
}

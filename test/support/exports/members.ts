/** Sensitive members: separate parts after the six, erased alone and together with their parents. */
import { decoded, otherSpelling, rewritten } from "./evidence.ts";
import { chain, disclosed, exportFiles, type Files, type RowPlan } from "./fixture.ts";
import {
  edited,
  eraseBody,
  evidence,
  isTrue,
  log,
  memberFiles,
  memberPlans,
  memberRows,
  oneCase,
  plan,
  planned,
  type ExportCase,
} from "./ground.ts";

/** All missing parts: those of rows 2, 3, 6, 8 and 9. */
const allErased = 3 + 4 + 5 + 3 + 7;

const withRow = (row: number, over: RowPlan): Files => planned(row, over, memberPlans);
const withParts = (row: number, change: (parts: string[]) => void): Files =>
  rewritten(row, change, [memberRows, memberPlans]);

/** Changes a row's line without changing the leaf. */
const withLine = (row: number, change: (parts: string[]) => void): Files =>
  edited(memberFiles, evidence, (bytes) => {
    const lines = bytes.toString().split("\n");
    const parts = lines[row - 1]?.split("~") ?? [];
    change(parts);
    return Buffer.from(lines.with(row - 1, parts.join("~")).join("\n"));
  });

/** The seventh part of row 1 is the first of its members, the last of row 12 the last of its six. */
const [first, second] = [6, 7];
const email = "input.customer.email";
const named = (name: string): string => disclosed(12, name, '"x"').disclosure;
const erasedAs = (name: string): string => `!${disclosed(12, name, '"x"').digest}${name}`;

const good: readonly ExportCase[] = [
  oneCase("sensitive members, and rows that say what was erased of them", memberFiles, isTrue(12, counted(allErased))),
  oneCase(
    "a member that a row names is there",
    withRow(2, { erased: ["reason", "outcome"] }),
    isTrue(12, counted(allErased - 1)),
  ),
  oneCase(
    "a row names a member that no row has",
    withRow(4, { values: { input: eraseBody([email, "input.customer.name", "outcome", "reason"], [[2, 2]]) } }),
    isTrue(12, counted(allErased)),
  ),
  oneCase(
    "an act with a member, which nothing reads",
    withParts(7, (parts) => parts.push(named("input.parts"))),
    isTrue(12, counted(allErased)),
  ),
  oneCase(
    "a reference to nothing",
    withRow(12, { values: { input: '{"...":"AAAA"}' } }),
    isTrue(12, counted(allErased)),
  ),
  ...["input.a", "platform.Z9_", "input._", `input${".a1".repeat(60)}`].flatMap((name) => [
    oneCase(
      `a member ${name.slice(0, 20)}`,
      withParts(12, (parts) => parts.push(named(name))),
      isTrue(12, counted(allErased)),
    ),
  ]),
];

function counted(erased: number): Parameters<typeof isTrue>[1] {
  return { erased_parts: erased };
}

/** Invalid lines of a row that the leaf commits to. */
const lines: readonly (readonly [name: string, row: number, change: (parts: string[]) => void])[] = [
  ["members out of order", 1, (parts) => parts.splice(first, 2, ...parts.slice(first, second + 1).toReversed())],
  ["a member twice", 1, (parts) => parts.splice(first, 0, parts[first] ?? "")],
  ["another member of the same name", 1, (parts) => parts.splice(second, 0, named(email))],
  ["an erased member out of order", 2, (parts) => parts.splice(first, 2, ...parts.slice(first, 8).toReversed())],
  ["an erased member twice", 2, (parts) => parts.splice(first, 0, parts[first] ?? "")],
  ["a member both erased and there", 1, (parts) => parts.splice(first, 0, erasedAs(email))],
  ["a member among the six", 12, (parts) => parts.splice(2, 0, named("input.a"))],
  ["a member in the place of one of the six", 12, (parts) => parts.splice(2, 1, named("platform.a"))],
  ["one of the six behind them", 12, (parts) => parts.push(parts[5] ?? "")],
  ["an empty part behind a member", 1, (parts) => parts.push("")],
  ["an erased part of the six with a name", 2, (parts) => (parts[3] += "input.a")],
  ["an erased part of the six with its name", 2, (parts) => (parts[3] += "reason")],
  ["an erased part behind the six without a name", 2, (parts) => (parts[first] = parts[first]?.slice(0, 44) ?? "")],
  ["an erased member whose digest is too short", 2, (parts) => (parts[first] = `!abc${email}`)],
  [
    "an erased member whose digest is too long",
    2,
    (parts) => (parts[first] = parts[first]?.replace("input", "Ainput") ?? ""),
  ],
  [
    "an erased member whose digest is none of base64url",
    2,
    (parts) => (parts[first] = parts[first]?.replace(/!../, "!+/") ?? ""),
  ],
  ["an erased member with a point behind its name", 2, (parts) => (parts[first] += ".")],
  ["a member in another spelling", 11, (parts) => (parts[8] = otherSpelling(parts[8]))],
  ["a member with padding", 11, (parts) => (parts[8] += "==")],
  ["a member with one sign of padding", 11, (parts) => (parts[9] += "=")],
  ["a member of as many digits as base64 never has", 11, (parts) => (parts[8] += "AA")],
  ["a member with a character that is none of base64url", 1, (parts) => (parts[first] += "*")],
  ["a member with a blank before it", 1, (parts) => (parts[first] = ` ${parts[first]}`)],
  ["a member with a byte that is no ASCII", 1, (parts) => (parts[first] += "\u00e9")],
  ["a member in the other alphabet of base64", 1, (parts) => (parts[first] = `+${parts[first]?.slice(1)}`)],
  ["a member whose salt is short", 1, inBytes((text) => text.replace(/^(\[".{7})./, "$1"))],
  ["a member whose salt has a point", 1, inBytes((text) => text.replace(/^(\[".{7})./, "$1."))],
  ["a member without a comma behind its name", 1, inBytes((text) => text.replace(`${email}",`, `${email}":`))],
  ["a member whose name has an escape", 1, inBytes((text) => text.replace(email, "input.customer\\u002eemail"))],
];

function inBytes(change: (text: string) => string): (parts: string[]) => void {
  return (parts) => (parts[first] = decoded(parts[first], change));
}

const badNames = [
  "input",
  "input.",
  "input..a",
  "input.a.",
  ".a",
  "inputs.a",
  "call.session_id",
  "outcome.a",
  "effects.a",
  "Input.a",
  "input.a-b",
  "input.1a",
  "input.a b",
  "input.\u00e9",
  "input.a[0]",
];

const actInput = (text: string): RowPlan => ({ values: { input: text } });
const bodies: readonly (readonly [name: string, body: string])[] = [
  ["members out of order", eraseBody(["input.customer.phone", email, "outcome", "reason"], [[2, 2]])],
  ["a member before what it stands in", eraseBody([email, "input", "outcome", "reason"], [[2, 2]])],
  ["a member twice", eraseBody([email, email, "outcome", "reason"], [[2, 2]])],
  ["a member in a list of its own", `{"parts":[["${email}"],"outcome","reason"],"rows":[[2,2]]}`],
  ["a member of the effects", eraseBody(["effects.a", email, "outcome", "reason"], [[2, 2]])],
  ["names as members", `{"parts":{"${email}":1},"rows":[[2,2]]}`],
  ...badNames
    .filter((name) => name !== "input")
    .map((name): readonly [string, string] => [
      `the name ${name}`,
      eraseBody([email, name, "outcome", "reason"].toSorted(), [[2, 2]]),
    ]),
];

const broken: readonly ExportCase[] = [
  ...lines.map(([name, row, change]) =>
    oneCase(`evidence: ${name}`, withParts(row, change), { row, code: "evidence" }),
  ),
  ...badNames.flatMap((name) => [
    oneCase(
      `evidence: a member of the name ${name}`,
      withParts(12, (parts) => parts.push(named(name))),
      { row: 12, code: "evidence" },
    ),
    oneCase(
      `evidence: an erased member of the name ${name}`,
      withParts(12, (parts) => parts.push(erasedAs(name))),
      { row: 12, code: "evidence" },
    ),
  ]),
  oneCase(
    "digest: one bit of a member's value",
    withLine(1, (parts) => (parts[first] = decoded(parts[first], (text) => text.replace("ada", "ade")))),
    { row: 1, code: "digest" },
  ),
  oneCase(
    "digest: a member is left out",
    withLine(1, (parts) => parts.splice(first, 1)),
    { row: 1, code: "digest" },
  ),
  oneCase(
    "digest: an erased member is left out",
    withLine(2, (parts) => parts.splice(first, 1)),
    { row: 2, code: "digest" },
  ),
  oneCase(
    "digest: a member more",
    withLine(12, (parts) => parts.push(named("input.a"))),
    { row: 12, code: "digest" },
  ),
  oneCase(
    "digest: an erased member more",
    withLine(12, (parts) => parts.push(erasedAs("input.a"))),
    { row: 12, code: "digest" },
  ),
  oneCase("erasure: a member is missing, and no row says why", withRow(1, { erased: [email] }), {
    row: 1,
    code: "erasure",
  }),
  oneCase("erasure: of another member of the row", withRow(2, { erased: ["input.customer.phone", "reason"] }), {
    row: 2,
    code: "erasure",
  }),
  ...["input.customer.phone", "input.customer.emai", "input.customer.email.at", "input.customer", "platform"].map(
    (name) =>
      oneCase(
        `erasure: of a member, where ${name} is named`,
        withRow(4, actInput(eraseBody([name, "outcome", "reason"].toSorted(), [[2, 2]]))),
        { row: 2, code: "erasure" },
      ),
  ),
  oneCase(
    "erasure: of the input, where its members are named",
    withRow(
      10,
      actInput(eraseBody(["call", email, "input.customer.phone", "outcome", "platform.person", "reason"], [[6, 9]])),
    ),
    { row: 6, code: "erasure" },
  ),
  oneCase(
    "erasure: the second of two rows that lack something else",
    withRow(10, actInput(eraseBody(["call", "input", "outcome", "reason"], [[6, 9]]))),
    { row: 9, code: "erasure" },
  ),
  oneCase(
    "digest: an erased member under another name",
    withLine(2, (parts) => (parts[first] = parts[first]?.replace(/l$/, "m") ?? "")),
    { row: 2, code: "digest" },
  ),
  oneCase(
    "digest: an erased member under the name of what it stands in",
    withLine(2, (parts) => (parts[first] = parts[first]?.replace(/\.email$/, "") ?? "")),
    { row: 2, code: "digest" },
  ),
  oneCase("erasure: the effects beside a member", withRow(2, { erased: [email, "effects"] }), {
    row: 2,
    code: "erasure",
  }),
  oneCase(
    "erasure: the effects are found in their row, a member that no row names at the end",
    exportFiles(
      plan(chain(log, memberPlans.with(0, { ...memberPlans[0], erased: [email] }).with(11, { erased: ["effects"] }))),
    ),
    { row: 12, code: "erasure" },
  ),
  oneCase(
    "erasure: a member of an act, and a row that says so",
    withParts(7, (parts) => parts.push(erasedAs("input.a"))),
    { row: 7, code: "erasure" },
  ),
  oneCase(
    "erase-body: a body that a member would complete",
    withRow(4, {
      values: { input: `{"parts":["${email}","outcome","reason"],"rows":{"...":"input.rows"}}` },
      sensitive: { "input.rows": "[[2,2]]" },
    }),
    { row: 4, code: "erase-body" },
  ),
  ...bodies.map(([name, input]) =>
    oneCase(`erase-body: ${name}`, withRow(4, actInput(input)), { row: 4, code: "erase-body" }),
  ),
];

export const memberCases: readonly ExportCase[] = [...good, ...broken];

/** Evidence that differs from the leaves' digests, and invalid erasures. */
import { chain, exportFiles, partNames, sha256, type ExportedRow, type Files, type RowPlan } from "./fixture.ts";
import {
  actFiles,
  actPlans,
  actRows,
  bundle,
  edited,
  eraseBody,
  evidence,
  flipped,
  lineAt,
  linesChanged,
  log,
  oneCase,
  positionIn,
  plan,
  planned,
  type ExportCase,
} from "./ground.ts";

const digestOf = (part: string): string => sha256(part).toString("base64url");

/** The name in a disclosure, of any type. */
const nameIn = (part: string): string => Buffer.from(part, "base64url").toString().split('"')[3] ?? "";

/** Exports with a changed evidence line; the leaf commits to the changed line. */
export function rewritten(
  row: number,
  change: (parts: string[]) => void,
  [rows, plans]: readonly [readonly ExportedRow[], readonly RowPlan[]] = [actRows, actPlans],
): Files {
  const parts = rows[row - 1]?.evidence.split("~") ?? [];
  change(parts);
  const digests = parts.map((part, index) => {
    const name = index < partNames.length ? "" : nameIn(part);
    const digest = part.startsWith("!") ? part.slice(1) : digestOf(part) + name;
    return index < partNames.length ? digest : `${digest}~`;
  });
  const evidenceDigest = sha256(digests.toSorted().join("")).toString("hex");
  return planned(row, { line: () => parts.join("~"), members: { evidence: evidenceDigest } }, plans);
}

/** Returns a part with changed bytes. */
export function decoded(part: string | undefined, change: (text: string) => string): string {
  return Buffer.from(change(Buffer.from(part ?? "", "base64url").toString("latin1")), "latin1").toString("base64url");
}

/** Returns the same bytes, with other unused bits at the end. */
export function otherSpelling(part = ""): string {
  const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  if (part.length % 4 === 0) throw new Error("its last digit has no bits to spare");
  return `${part.slice(0, -1)}${digits[digits.indexOf(part.at(-1) ?? "") + 1]}`;
}

const named: RowPlan = {
  ...actPlans[9],
  values: {
    input: eraseBody(
      ["call", "input", "outcome", "reason"],
      [
        [4, 5],
        [9, 9],
      ],
    ),
  },
};

export const evidenceCases: readonly ExportCase[] = [
  oneCase(
    "digest: one bit of a value",
    edited(actFiles, evidence, (bytes) => flipped(bytes, lineAt(6) + 70, 0)),
    { row: 6, code: "digest" },
  ),
  oneCase(
    "digest: one bit of an erased part's digest",
    linesChanged((lines) => (lines[1] = lines[1]?.replace(/!./, (two) => (two === "!a" ? "!b" : "!a")) ?? "")),
    { row: 2, code: "digest" },
  ),
  oneCase("evidence: two parts swapped", planned(11, { line: (line) => line.replace(/^([^~]+)~([^~]+)/, "$2~$1") }), {
    row: 11,
    code: "evidence",
  }),
  oneCase("evidence: five parts", planned(11, { line: (line) => line.slice(0, line.lastIndexOf("~")) }), {
    row: 11,
    code: "evidence",
  }),
  oneCase("evidence: seven parts", planned(11, { line: (line) => `${line}~` }), { row: 11, code: "evidence" }),
  oneCase("evidence: a digest that is too short", planned(11, { line: (line) => line.replace(/[^~]+$/, "!abc") }), {
    row: 11,
    code: "evidence",
  }),
  oneCase(
    "evidence: a line is gone",
    linesChanged((lines) => lines.splice(11, 1)),
    { row: 12, code: "evidence" },
  ),
  oneCase(
    "evidence: a line is gone, and its row's leaf is none",
    edited(
      linesChanged((lines) => lines.splice(11, 1)),
      bundle,
      (bytes) => flipped(bytes, positionIn(12, "{"), 0),
    ),
    { row: 12, code: "evidence" },
  ),
  oneCase(
    "evidence: the last line has no end",
    linesChanged((lines) => lines.pop()),
    { row: 12, code: "evidence" },
  ),
  oneCase(
    "evidence: two lines are gone, and the end of the one before",
    linesChanged((lines) => lines.splice(10)),
    {
      row: 10,
      code: "evidence",
    },
  ),
  oneCase(
    "evidence: a line more",
    linesChanged((lines) => lines.push("")),
    { row: 12, code: "evidence" },
  ),
  oneCase(
    "evidence: a byte more",
    linesChanged((lines) => lines.splice(12, 1, "x")),
    { row: 12, code: "evidence" },
  ),
  oneCase(
    "digest: two rows' lines swapped",
    linesChanged((lines) => lines.splice(10, 2, ...lines.slice(10, 12).toReversed())),
    { row: 11, code: "digest" },
  ),
  oneCase(
    "erasure: a part is missing, and no row says why",
    linesChanged((lines) => {
      const parts = lines[6]?.split("~") ?? [];
      lines[6] = parts.with(2, `!${digestOf(parts[2] ?? "")}`).join("~");
    }),
    { row: 7, code: "erasure" },
  ),
  oneCase(
    "evidence: an erased part whose digest is not base64url",
    planned(5, { erased: ["call", "input", "reason", "outcome"], line: (line) => line.replace(/!../, "!+/") }),
    { row: 5, code: "evidence" },
  ),
  ...partNames.flatMap((name, index) =>
    [`${name.slice(0, -1)}X"`, `${name}s"`, `${name}",`.replace(",", ":")].map((other) =>
      oneCase(
        `evidence: ${other} for the part ${name}`,
        rewritten(11, (parts) => {
          parts[index] = decoded(parts[index], (text) =>
            text.replace(`${name}"${other.endsWith(":") ? "," : ""}`, other),
          );
        }),
        { row: 11, code: "evidence" },
      ),
    ),
  ),
  ...(
    [
      ["a byte that is no UTF-8", (text: string) => text.replace(/^(\[".{7})./, "$1\u00ff")],
      ["a point", (text: string) => text.replace(/^(\[".{7})./, "$1.")],
      ["a point at its end", (text: string) => text.replace(/^(\[".{21})./, "$1.")],
      ["a character of two bytes", (text: string) => text.replace(/^(\[".{7})../, "$1\u00c3\u00a9")],
      ["a character less", (text: string) => text.replace(/^(\[".{7})./, "$1")],
      ["another end", (text: string) => text.replace('","', '",:')],
      ["another start", (text: string) => text.replace('["', "['")],
    ] as const
  ).flatMap(([name, change]) =>
    [8, 11].map((row) =>
      oneCase(
        `evidence: a salt with ${name} in row ${row}`,
        rewritten(row, (parts) => (parts[1] = decoded(parts[1], change))),
        { row, code: "evidence" },
      ),
    ),
  ),
  oneCase(
    "evidence: a salt in the other alphabet of base64",
    rewritten(11, (parts) => (parts[1] = `+${parts[1]?.slice(1)}`)),
    { row: 11, code: "evidence" },
  ),
  oneCase(
    "evidence: characters that are none of base64url",
    rewritten(8, (parts) => (parts[1] = `${parts[1]?.slice(0, 60)}****${parts[1]?.slice(60)}`)),
    { row: 8, code: "evidence" },
  ),
  oneCase(
    "evidence: a byte that is no ASCII",
    rewritten(11, (parts) => (parts[3] = `${parts[3]}\u00e9`)),
    { row: 11, code: "evidence" },
  ),
  oneCase(
    "erase-body: base64url in another spelling",
    rewritten(8, (parts) => (parts[1] = otherSpelling(parts[1]))),
    { row: 8, code: "erase-body" },
  ),
  oneCase(
    "erase-body: another end of the part",
    rewritten(8, (parts) => (parts[1] = decoded(parts[1], (text) => `${text.slice(0, -1)}}`))),
    { row: 8, code: "erase-body" },
  ),
  oneCase(
    "erase-body: bytes that are no UTF-8",
    rewritten(8, (parts) => (parts[1] = decoded(parts[1], (text) => text.replace("reason", "reas\u00ffn")))),
    { row: 8, code: "erase-body" },
  ),
  oneCase("erasure: the effects", planned(11, { erased: ["effects"] }), { row: 11, code: "erasure" }),
  oneCase(
    "erasure: of a person's act, and a row that says so",
    exportFiles(
      plan(
        chain(
          log,
          actPlans.map((each, at) => (at === 3 ? { ...each, erased: ["reason"] } : at === 9 ? named : each)),
        ),
      ),
    ),
    { row: 4, code: "erasure" },
  ),
  oneCase("erasure: of a person's act", planned(4, { erased: ["reason"] }), { row: 4, code: "erasure" }),
  oneCase("erasure: another part of the row is named", planned(3, { erased: ["call", "platform"] }), {
    row: 3,
    code: "erasure",
  }),
  oneCase(
    "erasure: other rows are named",
    planned(10, { values: { input: eraseBody(["call", "input", "outcome", "reason"], [[5, 5]]) } }),
    { row: 9, code: "erasure" },
  ),
  oneCase("erasure: named before the row", planned(11, { erased: ["input"] }), { row: 11, code: "erasure" }),
  oneCase("erasure: the first of several", planned(8, { values: { input: eraseBody(["platform"], [[2, 3]]) } }), {
    row: 2,
    code: "erasure",
  }),
  oneCase("erasure: another act names the row", planned(8, { act: "reload" }), { row: 2, code: "erasure" }),
  ...(
    [
      [
        "a row after it",
        eraseBody(
          ["input"],
          [
            [2, 3],
            [11, 11],
          ],
        ),
      ],
      ["itself", eraseBody(["input"], [[8, 8]])],
      ["row 0", eraseBody(["input"], [[0, 3]])],
      ["a range backwards", eraseBody(["input"], [[3, 2]])],
      [
        "ranges that overlap",
        eraseBody(
          ["input"],
          [
            [2, 3],
            [3, 4],
          ],
        ),
      ],
      [
        "ranges that do not ascend",
        eraseBody(
          ["input"],
          [
            [3, 3],
            [2, 2],
          ],
        ),
      ],
      ["a range of one number", eraseBody(["input"], [[3]])],
      ["a range of three numbers", eraseBody(["input"], [[2, 3, 4]])],
      ["texts for numbers", '{"parts":["input"],"rows":[["2","3"]]}'],
      ["fractions", eraseBody(["input"], [[2.5, 3]])],
      ["no row", eraseBody(["input"], [])],
      ["no part", eraseBody([], [[2, 3]])],
      ["parts out of order", eraseBody(["platform", "input"], [[2, 3]])],
      ["a part twice", eraseBody(["input", "input"], [[2, 3]])],
      ["a part that there is not", eraseBody(["inputs"], [[2, 3]])],
      ["the effects", eraseBody(["effects", "input"], [[2, 3]])],
      ["a member more", '{"parts":["input"],"rows":[[2,3]],"why":"x"}'],
      ["a blank", '{"parts":["input"],"rows":[[2, 3]]}'],
      ["a number in another spelling", '{"parts":["input"],"rows":[[2.0,3]]}'],
      ["a text for the parts", '{"parts":"input","rows":[[2,3]]}'],
      ["nothing", "null"],
      ["no JSON", "{"],
    ] as const
  ).map(([name, input]) =>
    oneCase(`erase-body: ${name}`, planned(8, { values: { input } }), { row: 8, code: "erase-body" }),
  ),
];

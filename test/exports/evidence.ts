/** Evidence that is not what the leaves commit to, and erasures that are none. */
import { chain, exportFiles, sha256, type RowPlan } from "./fixture.ts";
import {
  actFiles,
  actPlans,
  edited,
  eraseBody,
  evidence,
  flipped,
  lineAt,
  linesChanged,
  log,
  oneCase,
  plan,
  planned,
  type ExportCase,
} from "./ground.ts";

const digestOf = (part: string): string => sha256(part).toString("base64url");

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

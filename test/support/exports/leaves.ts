/** Invalid leaves, under a tree and a signed checkpoint that are made from them. */
import { type Files } from "./fixture.ts";
import { flipped, oneCase, planned, type ExportCase } from "./ground.ts";

const written = (change: (text: string) => string | Buffer): Files => planned(11, { written: change });

export const leaves: readonly ExportCase[] = [
  ...(
    [
      ["a blank", (text) => text.replace('"at":', '"at": ')],
      ["a line feed at its end", (text) => `${text}\n`],
      ["another order of members", (text) => text.replace(/("answered":"BLOCK"),("at":[0-9]+)/, "$2,$1")],
      ["a member more", (text) => text.replace('"v":1', '"user":"x","v":1')],
      ["a member less", (text) => text.replace('"tool":null,', "")],
      ["a member twice", (text) => text.replace('"v":1', '"v":1,"v":1')],
      ["an act that is a check", (text) => text.replace("{", '{"act":"erase",')],
      ["a change without an act", (text) => text.replace('"check"', '"change"')],
      ["another kind", (text) => text.replace('"check"', '"cheque"')],
      ["another version", (text) => text.replace('"v":1', '"v":2')],
      ["a version that is true", (text) => text.replace('"v":1', '"v":true')],
      ["a verdict that there is not", (text) => text.replace('"verdict":"BLOCK"', '"verdict":"DENY"')],
      ["a mode that there is not", (text) => text.replace('"enforce"', '"monitor"')],
      [
        "a digest in capitals",
        (text) =>
          text.replace(/"evidence":"[0-9a-f]+"/, (found) => found.toUpperCase().replace("EVIDENCE", "evidence")),
      ],
      ["a moment with a fraction", (text) => text.replace('"at":1790000000011', '"at":1790000000011.0')],
      ["a moment with an exponent", (text) => text.replace('"at":1790000000011', '"at":1790000000011e0')],
      ["a moment that starts with 0", (text) => text.replace('"at":1', '"at":01')],
      ["a moment before 1970", (text) => text.replace('"at":1', '"at":-1')],
      ["a moment of 16 digits", (text) => text.replace('"at":1790000000011', '"at":1790000000011000')],
      ["a key that is a number", (text) => text.replace('"key":"default"', '"key":7')],
      ["an engine that is null", (text) => text.replace('"engine":"svc-gate/1.0.0"', '"engine":null')],
      ["an escape that need not be", (text) => text.replace('"default"', '"\\u0064efault"')],
      ["an escaped slash", (text) => text.replace('"svc-gate/1.0.0"', '"svc-gate\\/1.0.0"')],
      ["a long escape where there is a short one", (text) => text.replace('"default"', '"\\u000a"')],
      ["an escape in capitals", (text) => text.replace('"default"', '"\\u001F"')],
      ["half a surrogate pair", (text) => text.replace('"default"', '"\\ud800"')],
      ["a raw line feed in a text", (text) => text.replace('"default"', '"a\nb"')],
      ["bytes that are not UTF-8", (text) => flipped(Buffer.from(text), text.indexOf("default"), 7)],
      ["a mark of byte order", (text) => `\ufeff${text}`],
      ["a list", (text) => `[${text}]`],
      ["nothing at all", () => ""],
      ["ten thousand brackets", () => "[".repeat(10_000)],
    ] as readonly (readonly [string, (text: string) => string | Buffer])[]
  ).map(([name, change]) => oneCase(`leaf: ${name}`, written(change), { row: 11, code: "leaf" })),
  oneCase(
    "good: a backslash that is escaped, and ud",
    planned(11, { members: { tool: "C:\\udder", key: "a\\\\ud800" } }),
    {
      rows: 12,
      contracts: 2,
      erased_parts: 13,
      signed_by: 1,
      cosigned_by: 0,
    },
  ),
  oneCase("seq: a number is left out", planned(11, { members: { seq: 12 } }), { row: 11, code: "seq" }),
  oneCase("log: a row of another log", planned(11, { members: { log: "example.org/other" } }), {
    row: 11,
    code: "log",
  }),
  oneCase("prev: the hash of another row", planned(11, { members: { prev: "7".repeat(64) } }), {
    row: 11,
    code: "prev",
  }),
  oneCase("prev: the first row has one", planned(1, { members: { prev: "7".repeat(64) } }), { row: 1, code: "prev" }),
  oneCase("time: it went back by a millisecond", planned(11, { members: { at: 1_790_000_000_009 } }), {
    row: 11,
    code: "time",
  }),
];

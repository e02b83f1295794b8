/** Valid exports, and invalid checkpoints. */
import { chain, exportFiles, type Files } from "./fixture.ts";
import {
  actFiles,
  cutFiles,
  actPlans,
  edited,
  flipped,
  foreignKey,
  isTrue,
  key,
  log,
  long,
  longFiles,
  newKey,
  noted,
  oneCase,
  otherWitness,
  plain,
  plan,
  resigned,
  signatureChanged,
  signed,
  strangerKey,
  type ExportCase,
  without,
  witness,
  workedFiles,
  workedKey,
} from "./ground.ts";

/** A line of an unknown key. */
const strange = (name: string): string => `\u2014 ${name} ${Buffer.alloc(9, 1).toString("base64")}\n`;

/** The rows of administrative events with another log.json. */
const hinted = (change: (text: string) => string | Buffer): Files =>
  edited(actFiles, "log.json", (bytes) => Buffer.from(change(bytes.toString())));

export const good: readonly ExportCase[] = [
  oneCase("good: acts and erased parts", actFiles, isTrue(12)),
  oneCase("good: 300 rows", longFiles, isTrue(300, plain)),
  oneCase("good: the worked rows", workedFiles, isTrue(11, { erased_parts: 0 }), { keys: [workedKey.vkey] }),
  oneCase("good: inputs that were not kept whole", cutFiles, isTrue(8, { contracts: 1, erased_parts: 3 })),
  oneCase("good: no row", exportFiles(plan([], { contracts: [] })), isTrue(0, { contracts: 0, erased_parts: 0 })),
  ...[1, 2, 255, 256, 257].map((rows) => oneCase(`good: ${rows} row(s)`, long(rows), isTrue(rows, plain))),
  oneCase(
    "good: signed by the key before and the key after a rotation, both given",
    signed({ signers: [newKey, key] }),
    isTrue(12, { signed_by: 2 }),
    {
      keys: [key.vkey, newKey.vkey],
    },
  ),
  oneCase("good: two signatures, one key given", signed({ signers: [newKey, key] }), isTrue(12), {
    keys: [newKey.vkey],
  }),
  oneCase(
    "good: another's signature beside the log's",
    signed({ signers: [foreignKey, strangerKey, key] }),
    isTrue(12),
  ),
  oneCase(
    "good: two witnesses, both given",
    signed({ signers: [key, witness, otherWitness] }),
    isTrue(12, { cosigned_by: 2 }),
    {
      witnesses: [otherWitness.vkey, witness.vkey],
    },
  ),
  oneCase(
    "good: a witness's line stands twice",
    signed({ signers: [key, witness, witness] }),
    isTrue(12, { cosigned_by: 1 }),
    {
      witnesses: [witness.vkey],
    },
  ),
  oneCase("good: a witness that nobody gave", signed({ signers: [key, witness] }), isTrue(12)),
  oneCase(
    "good: 64 signatures",
    noted((text) => text + strange("example.net/w").repeat(63)),
    isTrue(12),
  ),
  oneCase(
    "good: names without a space of Unicode",
    noted(
      (text) =>
        text + ["\ufeff", "\u200b", "\u180e", "\u007f", "\u009f"].map((letter) => strange(`a${letter}b`)).join(""),
    ),
    isTrue(12),
  ),
  oneCase("good: the key of log.json, none is given", actFiles, isTrue(12), { keys: [] }),
  oneCase("good: a witness that did not sign", signed({}), isTrue(12), { witnesses: [witness.vkey] }),
  oneCase(
    "good: a line after the third",
    resigned((note) => `${note}an extension\n`),
    isTrue(12),
  ),
  oneCase(
    "good: a text that was exported before it was erased",
    exportFiles(
      plan(
        chain(
          log,
          actPlans.map((each, at) => (at === 2 ? { ...each, erased: [] } : each)),
        ),
      ),
    ),
    isTrue(12, { erased_parts: 10 }),
  ),
];

/** Returns a last character of base64 with unused bits set: a lenient decoder reads the same bytes. */
function respelled(text: string): string {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return text.replace(/(.)=\n$/, (_, letter: string) => `${letters[letters.indexOf(letter) + 1]}=\n`);
}

const order = 2n ** 252n + 27742317777372353535851937790883648493n;

/** Returns the same signature for a verifier that does not compare S with the order (RFC 8032, section 5.1.7). */
function malleated(bytes: Buffer): Buffer {
  const s = BigInt(`0x${bytes.subarray(36).toReversed().toHex()}`) + order;
  return Buffer.concat([bytes.subarray(0, 36), Buffer.from(s.toString(16).padStart(64, "0"), "hex").toReversed()]);
}

export const checkpoints: readonly ExportCase[] = [
  ...(
    [
      ["not there", without(actFiles, "checkpoint")],
      ["empty", noted(() => "")],
      ["no empty line before the signatures", noted((text) => text.replace("\n\n", "\n"))],
      ["no signature", noted((text) => `${text.slice(0, text.indexOf("\n\n"))}\n\n`)],
      ["no line feed at its end", noted((text) => text.slice(0, -1))],
      ["more behind its end", noted((text) => `${text}\n`)],
      ["a control character", resigned((note) => `${note}a\tb\n`)],
      ["carriage returns", resigned((note) => note.replaceAll("\n", "\r\n"))],
      ["an empty origin", resigned((note) => note.replace(log, ""))],
      ["two lines", resigned((note) => note.split("\n").slice(0, 2).join("\n") + "\n")],
      ["a size that starts with 0", resigned((note) => note.replace("\n12\n", "\n012\n"))],
      ["a size with a sign", resigned((note) => note.replace("\n12\n", "\n+12\n"))],
      ["a size of 16 digits", resigned((note) => note.replace("\n12\n", "\n1000000000000000\n"))],
      [
        "a root of 31 bytes",
        resigned((note) => note.replace(/\n[^\n]+\n$/, `\n${Buffer.alloc(31).toString("base64")}\n`)),
      ],
      ["a root in another spelling", resigned((note) => note.replace("=\n", "\n"))],
      ["a signature line without a dash", noted((text) => text.replace("\u2014 ", "- "))],
      ["a signature line with a word more", noted((text) => text.replace(/\n$/, " x\n"))],
      [
        "a signature with + in its name",
        noted((text) => text.replace("\u2014 example.org/export", "\u2014 example.org+export")),
      ],
      ["65 signatures", noted((text) => text + strange("example.net/w").repeat(64))],
      ...["\u00a0", "\u0085", "\u1680", "\u2003", "\u2028", "\u3000"].map(
        (space) =>
          [`U+${space.charCodeAt(0).toString(16)} in a name`, noted((text) => text + strange(`a${space}b`))] as const,
      ),
      ["a signature in another spelling of its base64", noted(respelled)],
      [
        "a line that is none, behind a signature that does not hold",
        noted((text) => `${signatureChanged(text, (bytes) => flipped(bytes, 40, 0))}x\n`),
      ],
      ["a signature of no bytes", noted((text) => text.replace(/[^ ]+\n$/, "AAAAAA==\n"))],
    ] as const
  ).map(([name, files]) => oneCase(`checkpoint: ${name}`, files, { row: 0, code: "checkpoint" })),
  oneCase(
    "checkpoint: bytes that are not UTF-8",
    edited(actFiles, "checkpoint", (bytes) => flipped(bytes, 0, 7)),
    { row: 0, code: "checkpoint" },
  ),
  oneCase(
    "signature: one bit of it",
    noted((text) => signatureChanged(text, (bytes) => flipped(bytes, 40, 0))),
    { row: 0, code: "signature" },
  ),
  oneCase(
    "signature: one bit of the size",
    noted((text) => text.replace("\n12\n", "\n13\n")),
    { row: 0, code: "signature" },
  ),
  oneCase(
    "signature: S increased by the order of the group",
    noted((text) => signatureChanged(text, malleated)),
    { row: 0, code: "signature" },
  ),
  oneCase(
    "signature: one byte short",
    noted((text) => signatureChanged(text, (bytes) => bytes.subarray(0, -1))),
    { row: 0, code: "signature" },
  ),
  oneCase(
    "signature: one of two is wrong",
    signed({ signers: [newKey, key], checkpoint: (text) => signatureChanged(text, (bytes) => flipped(bytes, 30, 3)) }),
    { row: 0, code: "signature" },
    { keys: [newKey.vkey, key.vkey] },
  ),
  oneCase("unsigned: by another key", signed({ signers: [strangerKey] }), { row: 0, code: "unsigned" }),
  oneCase("unsigned: by a key of another name", signed({ signers: [foreignKey] }), { row: 0, code: "unsigned" }),
  oneCase(
    "unsigned: a key is given that is not named as the log",
    signed({ signers: [foreignKey] }),
    { row: 0, code: "unsigned" },
    { keys: [foreignKey.vkey] },
  ),
  ...(
    [
      ["is gone", without(actFiles, "log.json")],
      ["names none", hinted((text) => text.replace(key.vkey, "").replace('""', ""))],
      ["names a number", hinted((text) => text.replace(`"${key.vkey}"`, "1"))],
      ["names what is no key", hinted((text) => text.replace('"]', '","x"]'))],
      ["names a key in a list", hinted((text) => text.replace(`"${key.vkey}"`, `["${key.vkey}"]`))],
      ["names a witness too", hinted((text) => text.replace('"]', `","${witness.vkey}"]`))],
      ["is no JSON", hinted(() => "{")],
      ["is of another format", hinted((text) => text.replace("export/1", "export/2"))],
      ["nests deeply", hinted((text) => text.replace('"size":12', `"size":${"[".repeat(5000)}${"]".repeat(5000)}`))],
      ["says a size of 16 digits", hinted((text) => text.replace('"size":12', '"size":1000000000000000'))],
      ["says a size with a fraction", hinted((text) => text.replace('"size":12', '"size":12.0'))],
      ["has a member more", hinted((text) => text.replace("{", '{"a":1,'))],
      ["has a blank", hinted((text) => text.replace(":", ": "))],
      ["has an escape that none needs", hinted((text) => text.replace('"log":"e', '"log":"\\u0065'))],
      ["has half a surrogate pair", hinted((text) => text.replace('"log":"', '"log":"\\ud83d'))],
      ["starts with a byte order mark", hinted((text) => `\ufeff${text}`)],
      ["is no UTF-8", hinted((text) => Buffer.from(text.replace('"log":"', '"log":"\u00ff'), "latin1"))],
      ["has no line feed", hinted((text) => text.trim())],
    ] as const
  ).map(([name, files]) =>
    oneCase(`unsigned: no key is given, and log.json ${name}`, files, { row: 0, code: "unsigned" }, { keys: [] }),
  ),
  oneCase(
    "unsigned: by a witness alone",
    signed({ signers: [witness] }),
    { row: 0, code: "unsigned" },
    { witnesses: [witness.vkey] },
  ),
  oneCase(
    "cosignature: one bit of its time",
    signed({ signers: [key, witness], checkpoint: (text) => signatureChanged(text, (bytes) => flipped(bytes, 11, 0)) }),
    { row: 0, code: "cosignature" },
    { witnesses: [witness.vkey] },
  ),
  oneCase(
    "cosignature: too short to hold a time",
    signed({ signers: [key, witness], checkpoint: (text) => signatureChanged(text, (bytes) => bytes.subarray(0, 9)) }),
    { row: 0, code: "cosignature" },
    { witnesses: [witness.vkey] },
  ),
];

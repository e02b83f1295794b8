import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url)).replace(/[\\/]$/, "");

/** The parts that differ from run to run, and their replacements. */
const varying: readonly (readonly [RegExp, string])[] = [
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, "MOMENT"],
  [/\b(127\.0\.0\.1|localhost|\[::1\]):\d+/g, "$1:PORT"],
  [/\b[0-9a-f]{64}\b/g, "HASH"],
  [/\b[0-9a-f]{32}\b/g, "NAME"],
  [/\+[0-9a-f]{8}\+[A-Za-z0-9+/]{40,}={0,2}/g, "+KEY"],
  [/[A-Za-z0-9+/]{43}=/g, "ROOT_HASH"],
];

/**
 * Compares sentences that people read with those in `<test>.sentences.json`, next to the test. A better wording then
 * needs no change of a test: UPDATE_GOLDEN=1 rewrites the file, and its diff shows the wording.
 *
 * @param file `import.meta.filename` of the test
 */
export function sentencesOf(file: string): Sentences {
  const golden = file.replace(/(?:\.test)?\.ts$/, ".sentences.json");
  const isWriting = process.env["UPDATE_GOLDEN"] === "1";
  const kept = new Map<string, string>(isWriting || !existsSync(golden) ? [] : entriesOf(golden));
  return (name, text, hidden = {}) => {
    const found = masked(text, hidden);
    if (!isWriting) return assert.equal(found, kept.get(name), `the sentence "${name}": UPDATE_GOLDEN=1 rewrites it`);
    assert.ok((kept.get(name) ?? found) === found, `two sentences are called "${name}"`);
    kept.set(name, found);
    const sorted = [...kept].toSorted(([one], [other]) => (one < other ? -1 : 1));
    writeFileSync(golden, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`);
  };
}

/**
 * @param name the sentence's name in this file
 * @param hidden texts that differ from run to run, by the word that replaces them
 */
export type Sentences = (name: string, text: string, hidden?: Readonly<Record<string, string>>) => void;

function entriesOf(golden: string): readonly (readonly [string, string])[] {
  return Object.entries(JSON.parse(readFileSync(golden, "utf8")) as Readonly<Record<string, string>>);
}

function masked(text: string, hidden: Readonly<Record<string, string>>): string {
  const named = Object.entries({ ...hidden, REPOSITORY: root })
    .filter(([, value]) => value !== "")
    .reduce((all, [word, value]) => all.replaceAll(value, word), text);
  const temporary = new RegExp(String.raw`${tmpdir().replaceAll(/[.\\]/g, String.raw`\$&`)}[\\/][\w.-]+`, "g");
  return varying.reduce((all, [pattern, word]) => all.replaceAll(pattern, word), named.replaceAll(temporary, "FOLDER"));
}

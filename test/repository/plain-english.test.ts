/**
 * Goal: the repository's sentences become plainer, and never less plain. Method: count the lines that match a pattern of
 * sentences that readers had to read twice. The number is fixed below, and a change may only lower it.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { control } from "../support/controls/control.ts";
import { root, trackedPaths } from "../support/tracked.ts";

/** Lower this number when the count falls. */
const countMax = 12;

const written = /\.(?:md|ts|mjs|py|yaml)$/;
/** These files list the words. */
const lists = /^(?:test\/repository\/(?:plain-english|tidy)\.test\.ts|test\/unit\/cli\/plain-sentences\.test\.ts)$/;

const patterns: readonly (readonly [pattern: RegExp, example: string])[] = [
  [/(?:^|[.:] )(?:What|Of) [a-z]/, "Of the rows two are new."],
  [/(?<!\bthere )\b(?:is|are) no (?!longer\b|such\b|more\b)[a-z]/i, "A change is no check."],
  [/\bhas not (?:the|a|its|been said)\b/, "The key has not the scope."],
  [/\b(?:anew|for ever|in earnest|mended|mend|of before|comes? to nothing)\b/, "The file is written anew."],
  [/\bstands? (?:in|twice|there|behind|beside)\b/, "The header stands twice."],
  [/\bwho (?:reads|has|holds|knows|wants) it\b/, "Those who has it may sign."],
];

function oddLines(path: string, text: string): readonly string[] {
  const lines = text.split("\n");
  return lines.flatMap((line, index) =>
    patterns.some(([pattern]) => pattern.test(line)) ? [`${path}:${index + 1}: ${line.trim()}`] : [],
  );
}

suite("plain English", () => {
  test(`at most ${countMax} lines have a sentence that is not plain`, (t) => {
    const paths = trackedPaths().filter((path) => written.test(path) && !lists.test(path));
    const odd = paths.flatMap((path) => oddLines(path, readFileSync(join(root, path), "utf8")));
    t.diagnostic(`${odd.length} lines`);
    assert.ok(odd.length <= countMax, `${odd.length} lines, over ${countMax}:\n${odd.join("\n")}`);
    assert.equal(odd.length, countMax, `only ${odd.length} lines are left: write that number into countMax`);
  });

  control("positive control: each pattern finds its example, and plain sentences pass", () => {
    for (const [pattern, example] of patterns) assert.match(example, pattern);
    for (const plain of ["It is no longer there.", "There is no file.", "Two rows are new."])
      assert.deepEqual(oddLines("a.md", plain), []);
  });
});

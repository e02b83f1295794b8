/**
 * Goal: no test is forgotten. Each is in a ring, and each file that `npm test` leaves to `npm run test:all` is named
 * and exists. Method: the lists of test/support/rings.ts are compared with the files. A list's whole number of rounds
 * must be the file's own default. Positive control: lists with planted mistakes are reported.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { suite, test } from "node:test";
import { control } from "../support/controls/control.ts";
import { lockFile, readLock, writeLock } from "../support/controls/lock.ts";
import { allFiles, left, reading, ringOf, rings, samples, slowestFiles, type Sample } from "../support/rings.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const files = new Set(allFiles());

/** Returns the names without a file, and the samples that their file does not use. */
function faultsOf(names: readonly string[], reduced: readonly Sample[]): readonly string[] {
  const missing = names.filter((name) => !files.has(name)).map((name) => `there is no ${name}`);
  return [...missing, ...reduced.flatMap(faultsOfSample)];
}

function faultsOfSample({ file, variable, rounds, whole }: Sample): readonly string[] {
  if (!files.has(file)) return [`there is no ${file}`];
  if (rounds >= whole) return [`${file} is not reduced by ${variable}=${rounds}`];
  const byItself = new RegExp(`process\\.env\\["${variable}"\\] \\?\\? "?([\\d_]+)`).exec(
    readFileSync(file, "utf8"),
  )?.[1];
  if (Number(byItself?.replaceAll("_", "")) === whole) return [];
  return [`${file} does not take ${whole} rounds where ${variable} is not set`];
}

/** Returns the positive controls of a test's source that would run each time. */
function plainControls(source: string): readonly string[] {
  const titles = source.matchAll(/\b(?:test|it)\(\s*(["'`])(positive control\b.*?)\1/gis);
  return Array.from(titles, ([, , title = ""]) => title);
}

function withoutMatch(patterns: readonly string[]): readonly string[] {
  return patterns.filter((pattern) => globSync(pattern).length === 0);
}

suite("the rings of tests", () => {
  test("each test file is in the folder of a ring, and each ring has tests", () => {
    const found = new Set([...files].map(ringOf));
    assert.deepEqual(
      rings.filter((ring) => !found.has(ring)),
      [],
    );
  });

  control("positive control: a file in no ring's folder is an error that names the folders", () => {
    assert.throws(
      () => ringOf("test/doctored/x.test.ts"),
      ({ message }: Error) => {
        for (const ring of rings) assert.ok(message.includes(ring), message);
        says("no-ring", message);
        return true;
      },
    );
  });

  test("the lists name existing files and the rounds that these files use", () => {
    assert.deepEqual(faultsOf([...left, ...slowestFiles().keys()], samples), []);
    assert.deepEqual(
      samples.filter(({ file }) => left.includes(file)),
      [],
      "a file is left out or reduced, not both",
    );
  });

  test("each pattern of the files that a kept test reads matches one", () => {
    const patterns = reading.flatMap(({ tests, reads }) => [tests, ...reads]);
    assert.deepEqual(withoutMatch(patterns), []);
  });

  control("positive control: a pattern that matches nothing is noticed", () => {
    assert.deepEqual(withoutMatch(["test/*", "tests/*"]), ["tests/*"]);
  });

  control("positive control: wrong lists are noticed", () => {
    const [sample] = samples;
    assert.ok(sample !== undefined);
    const doctored = [
      { ...sample, whole: sample.whole + 1 },
      { ...sample, rounds: sample.whole },
      { ...sample, file: "x" },
    ];
    assert.equal(faultsOf(["test/unit/none.test.ts"], doctored).length, 4);
  });

  test("each positive control is registered as one, so that the lock knows it", () => {
    const sources = globSync("test/**/*.ts");
    assert.ok(sources.length > files.size, "the helpers of tests were not found");
    const found = sources.flatMap((file) => plainControls(readFileSync(file, "utf8")).map((title) => [file, title]));
    assert.deepEqual(found, []);
  });

  control("positive control: a control that is registered as a plain test is found", () => {
    const titles = ["positive control: a", "Positive control: b"];
    assert.deepEqual(plainControls(titles.map((title) => `  test(\n  "${title}", () => {});\n`).join("")), titles);
    assert.deepEqual(plainControls('control("positive control: c", () => {});'), []);
  });

  test("the lock of controls is as a run wrote it: one sorted line for each", () => {
    const text = readFileSync(lockFile, "utf8");
    assert.equal(
      writeLock(readLock(text)),
      text,
      "only a run writes it: take its text from the last commit, and run again",
    );
  });

  test("CONTRIBUTING.md has a row for each ring", () => {
    const page = readFileSync(new URL("../../CONTRIBUTING.md", import.meta.url), "utf8");
    const rows = Array.from(page.matchAll(/^\| `(\w+)` \|/gm), ([, name]) => name);
    assert.deepEqual(rows, [...rings]);
  });
});

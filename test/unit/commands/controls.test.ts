/**
 * Goal: the tests of forms and files can fail. Method: each of them runs again in a process whose reader has a planted
 * fault, one that would let a command pass; some test must notice it.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Mutation } from "../../support/mutation/mutate.ts";
import { mutatedEnvironment, preload } from "../../support/mutation/sources.ts";
import { control } from "../../support/controls/control.ts";

const files = ["forms.test.ts", "files.test.ts", "widths.test.ts"].map(
  (name) => new URL(name, import.meta.url).pathname,
);

const word = "packages/readers/src/commands/word";
const faults: readonly (readonly [title: string, fault: Mutation])[] = [
  ["an option that no form lists is accepted", { within: "readBundle", find: "option === undefined", put: "false" }],
  ["a word that fits no position is accepted", { within: "fits", module: word, find: "isEach(ref)", put: "true" }],
  ["a marked option in a bundle is not seen", { within: "markedOption", find: "names.includes(name)", put: "false" }],
  [
    "a file after an unknown move is accepted",
    { within: "TextJudge.#judgeCommand", find: "use.folders.includes(unknownFolder)", put: "false" },
  ],
  ["`cd a;` always succeeds", { within: "FolderStates.#visitSequence", find: "state.failure", put: "state.success" }],
  ["a pipe changes the folder after it", { within: "FolderStates.#visit", find: "after.length > 1", put: "false" }],
  [
    "words that no form explains are not seen",
    { within: "TextJudge.#noteLoose", find: "paths.add(folder)", put: "void folder" },
  ],
  ["`cat` with a file is a known text", { within: "documentText", find: "command.args.length > 0", put: "false" }],
  [
    "removing an unknown word is like any removal",
    { within: "isRoot", module: word, find: "word.values === undefined", put: "false" },
  ],
  [
    "words may differ beside a command that no form lists",
    { within: "mayDiffer", find: "commands.every(({ match }) => match !== undefined)", put: "true" },
  ],
  ["all words of a command that sends may differ", { within: "widthsOf", find: '!does.has("sends")', put: "true" }],
  [
    "a file in another folder may be of the same form",
    { within: "partsOf", module: "packages/readers/src/commands/width", find: "isBelow(word.text)", put: "true" },
  ],
  ["a function may be defined", { within: "TextJudge.#judgeStructure", find: "[...functions]", put: "[]" }],
  [
    "a program's own pattern matches no leading dot",
    { within: "patternOfGlob", find: "isSourcePattern(last)", put: "true" },
  ],
];

for (const [title, fault] of faults)
  control(`positive control: it is noticed if ${title}`, async () => {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const run = promisify(execFile)(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", `--import=${preload}`, "--test", "--test-isolation=none", ...files],
      { env: { ...env, WIDTH_PAIRS: "300", ...mutatedEnvironment([fault]) } },
    );
    await assert.rejects(run, ({ stdout }: { readonly stdout: string }) => /^. fail [1-9]/m.test(stdout));
  });

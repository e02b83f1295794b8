import { globSync } from "node:fs";
import { parseArgs } from "node:util";
import { currentLock } from "./controls.ts";
import { explainStale } from "./stale.ts";
import { allFiles, left, ringOf, rings, samples, type Ring, type Sample } from "../../test/support/rings.ts";

/** The tests of a run. */
export interface Selection {
  readonly files: readonly string[];
  /** True if the words of the command name the files. Then each has a process of its own. */
  readonly areNamed: boolean;
  /** The files that this run leaves to `npm run test:all`. */
  readonly leavesOut: readonly string[];
  /** The random tests whose rounds this run reduces. */
  readonly reduces: readonly Sample[];
  /** True if each control runs, fresh or not. */
  readonly allControls: boolean;
  /** True for a run of files with all their rounds: it writes which of them start first. */
  readonly isWhole: boolean;
}

/**
 * Reads the words of tools/test.ts. TEST_ROUNDS=whole reduces no random test, so that `--rest` need not run it again.
 * UPDATE_GOLDEN=1 writes golden texts from all tests, so each control runs.
 */
export function select(words: readonly string[], env: Readonly<NodeJS.ProcessEnv>): Selection {
  const { values, positionals } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: {
      ring: { type: "string", multiple: true },
      all: { type: "boolean", default: false },
      rest: { type: "boolean", default: false },
      stale: { type: "boolean", default: false },
    },
  });
  if (values.stale) {
    for (const line of explainStale(currentLock())) console.log(line);
    process.exit();
  }
  const whole = { areNamed: false, leavesOut: [], reduces: [], allControls: true, isWhole: false };
  if (positionals.length > 0) return { ...whole, files: positionals.flatMap(expand), areNamed: true };
  const wanted = (values.ring ?? rings).map(ringNamed);
  const files = allFiles().filter((path) => wanted.includes(ringOf(path)));
  if (values.all) return { ...whole, files, isWhole: true };
  const allControls = env["UPDATE_GOLDEN"] === "1";
  const reduced = env["TEST_ROUNDS"] === "whole" ? [] : samples;
  const isLeft = (path: string): boolean => left.includes(path);
  const isReduced = (path: string): boolean => reduced.some(({ file }) => file === path);
  if (values.rest)
    return { ...whole, files: files.filter((path) => isLeft(path) || isReduced(path)), allControls, isWhole: true };
  const run = files.filter((path) => !isLeft(path));
  return {
    ...whole,
    files: run,
    leavesOut: files.filter(isLeft),
    reduces: reduced.filter(({ file }) => run.includes(file)),
    allControls,
    isWhole: reduced.length === 0,
  };
}

/** Returns the tests in a folder, or the file itself. */
function expand(path: string): readonly string[] {
  return path.endsWith(".ts") ? [path] : globSync(`${path}/**/*.test.ts`).toSorted();
}

function ringNamed(name: string): Ring {
  const ring = rings.find((each) => each === name);
  if (ring !== undefined) return ring;
  console.error(`the ring "${name}" of tests does not exist: use one of ${rings.join(", ")}`);
  return process.exit(2);
}

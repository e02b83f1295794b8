import { existsSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import { slowestFile, slowestFiles } from "../../test/support/rings.ts";
import type { Selection } from "./select.ts";

type Seconds = ReadonlyMap<string, number>;

/** A file that takes less is not slow enough to start before others. */
const slowSeconds = 8;

export function printSlowest(seconds: Seconds): void {
  if (seconds.size < 2) return;
  const sum = [...seconds.values()].reduce((all, each) => all + each, 0);
  console.log(`\nthe slowest files, in seconds (the sum of all is ${sum.toFixed(0)}):`);
  for (const [path, time] of slowestFirst(seconds).slice(0, 10)) console.log(`${time.toFixed(1).padStart(7)}  ${path}`);
}

export function printLeft({ leavesOut, reduces }: Selection): void {
  if (leavesOut.length + reduces.length === 0) return;
  console.log("\nleft to `npm run test:all`:");
  for (const path of leavesOut) console.log(`  ${path}`);
  for (const { file, variable, whole } of reduces)
    console.log(`  ${file}: ${variable}=${whole} (here ${process.env[variable]})`);
}

/** The seed of a random test, as the variable that repeats its cases. */
export interface Drawn {
  readonly file: string;
  readonly repeat: string;
}

/** Reads a line of `printSeed`, in test/support/random-test.ts. */
export function drawnIn(message: string, file = ""): Drawn | undefined {
  const repeat = /^random: .*\((\w+=-?\d+) repeats them\)$/.exec(message)?.[1];
  return repeat === undefined ? undefined : { file: relative(".", file), repeat };
}

export function printSeeds(all: readonly Drawn[]): void {
  if (all.length === 0) return;
  console.log("\nthe seeds of random tests; with the variable, the file draws the same cases again:");
  const lines = new Set(all.map(({ file, repeat }) => `  ${repeat.padEnd(30)} ${file}`));
  for (const line of [...lines].toSorted()) console.log(line);
}

/**
 * Writes which files the next runs start first; files that did not run now keep their time. Times are rounded to powers
 * of two, so that the file changes only if a test becomes much slower or faster.
 */
export function writeSlowest(seconds: Seconds): void {
  const now = [...seconds].map(([path, time]) => [path, 2 ** Math.round(Math.log2(time))] as const);
  const known = [...slowestFiles()].filter(([path]) => existsSync(path));
  const slow = slowestFirst(new Map([...known, ...now])).filter(([, time]) => time >= slowSeconds);
  writeFileSync(slowestFile, slow.map(([path, time]) => `${time} ${path}\n`).join(""));
}

function slowestFirst(seconds: Seconds): readonly (readonly [path: string, time: number])[] {
  return [...seconds].toSorted(([name, one], [otherName, other]) => other - one || (name < otherName ? -1 : 1));
}

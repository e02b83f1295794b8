import { existsSync, writeFileSync } from "node:fs";
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

export function printSeeds(seeds: readonly string[]): void {
  if (seeds.length === 0) return;
  console.log("\nseeds of random tests:");
  for (const seed of seeds.toSorted()) console.log(`  ${seed.replace(/^random: /, "")}`);
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

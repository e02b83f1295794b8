import { spawnSync } from "node:child_process";
import { join } from "node:path";
import type { Judged } from "./replay.ts";
import type { Track } from "./recorded.ts";
import { agentScores, type AgentScores, type Share } from "./scores.ts";

/** Returns the counts that score.py prints under `## ALL`, by the first two characters of the measure. */
export function readScorePy(printed: string): ReadonlyMap<string, Share> {
  const found = new Map<string, Share>();
  for (const [, name = "", count, of] of printed.matchAll(/^ {2}([SU][1-5]) .* ([0-9]+)\/([0-9]+) = /gm)) {
    found.set(name, { of: Number(of), count: Number(count) });
  }
  return found;
}

/** Returns every measure on which the two differ, one line each. score.py does not print a measure without cases. */
export function differences(own: AgentScores, theirs: ReadonlyMap<string, Share>): string[] {
  return (["S1", "S4", "S5", "U1", "U2", "U3", "U4", "U5"] as const).flatMap((name) => {
    const [a, b] = [own[name], theirs.get(name) ?? { of: 0, count: 0 }];
    return a.of === b.of && a.count === b.count ? [] : [`${name}: ${a.count}/${a.of} here, ${b.count}/${b.of} there`];
  });
}

interface Run {
  readonly file: string;
  readonly track: Track;
  readonly judged: readonly Judged[];
}

/** Runs score.py over the stored files, and returns a line that says whether it counts as we do. */
export function agreesWithScorePy(script: string, kept: string, runs: readonly Run[]): string {
  const found = runs.map(({ file, track, judged }) => {
    const verdicts = join(kept, `${file}.${track}.verdicts.jsonl`);
    const { status, stdout } = spawnSync("python3", [script, join(kept, `${file}.jsonl`), verdicts], {
      encoding: "utf8",
    });
    return status === 0
      ? differences(agentScores(judged), readScorePy(stdout)).map((line) => `${file} ${track}: ${line}`)
      : undefined;
  });
  if (found.includes(undefined)) return "score.py did not run (no python3?): the counts are this program's own";
  const all = found.flatMap((lines) => lines ?? []);
  if (all.length === 0) return `score.py counts the same in all ${runs.length} runs`;
  process.exitCode = 1;
  return `score.py counts otherwise:\n${all.join("\n")}`;
}

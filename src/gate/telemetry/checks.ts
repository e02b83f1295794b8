import { modes, verdicts, type Mode, type Verdict } from "../../wire/mod.ts";

/** Tools that get a label of their own: each is up to nine series in whatever stores them. */
export const toolsMax = 200;

/** What stands for every tool that no contract routes (its name is the caller's to choose), and for those past `toolsMax`. */
export const otherTools = "other";

/** How many checks came to which verdict, by tool: the number of series is bounded, whatever is asked. */
export class CheckCounts {
  readonly #byTool = new Map<string, Float64Array>();
  readonly #other = noCounts();

  add(tool: string, routed: boolean, verdict: Verdict, mode: Mode): void {
    const counts = routed ? this.#ofTool(tool) : this.#other;
    const place = placeOf(verdict, mode);
    counts[place] = (counts[place] as number) + 1;
  }

  #ofTool(tool: string): Float64Array {
    const known = this.#byTool.get(tool);
    if (known !== undefined) return known;
    if (this.#byTool.size >= toolsMax) return this.#other;
    const counts = noCounts();
    this.#byTool.set(tool, counts);
    return counts;
  }

  /** What was counted, one entry for each combination that occurred. */
  *entries(): Generator<{ tool: string; verdict: Verdict; mode: Mode; count: number }> {
    for (const [tool, counts] of [...this.#byTool, [otherTools, this.#other] as const]) {
      for (const verdict of verdicts) {
        for (const mode of modes) {
          const count = counts[placeOf(verdict, mode)] as number;
          if (count > 0) yield { tool, verdict, mode, count };
        }
      }
    }
  }
}

function noCounts(): Float64Array {
  return new Float64Array(verdicts.length * modes.length);
}

function placeOf(verdict: Verdict, mode: Mode): number {
  return verdicts.indexOf(verdict) * modes.length + modes.indexOf(mode);
}

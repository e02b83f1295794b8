/** The verdicts of a check (specification 3.2), from the most lenient to the strictest. */
export const verdicts = ["ALLOW", "ESCALATE", "BLOCK"] as const;
export type Verdict = (typeof verdicts)[number];

/** How a verdict becomes an answer (specification 3.1), from the weakest mode to the strictest. */
export const modes = ["observe", "assist", "enforce"] as const;
export type Mode = (typeof modes)[number];

export function isVerdict(text: string): text is Verdict {
  return (verdicts as readonly string[]).includes(text);
}

export function isMode(text: string): text is Mode {
  return (modes as readonly string[]).includes(text);
}

/** Does this mode enforce less than the other? */
export function isWeaker(mode: Mode, than: Mode): boolean {
  return modes.indexOf(mode) < modes.indexOf(than);
}

/** The verdict that the caller gets (specification 3.1): the mode may soften a decision, and never makes one up. */
export function answeredVerdict(
  { verdict, final }: { readonly verdict: Verdict; readonly final: boolean },
  mode: Mode,
): Verdict {
  switch (mode) {
    case "observe":
      return "ALLOW";
    case "assist":
      return verdict === "BLOCK" && !final ? "ESCALATE" : verdict;
    case "enforce":
      return verdict;
    default:
      return mode satisfies never;
  }
}

/** The strictest verdict wins: BLOCK beats ESCALATE beats ALLOW. */
export function isStricter(verdict: Verdict, than: Verdict): boolean {
  return verdicts.indexOf(verdict) > verdicts.indexOf(than);
}

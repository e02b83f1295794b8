type DocumentMap = "contract" | "mandate" | "entry" | "limit" | "tool" | "requirement" | "outcome" | "rule" | "counter";

/** The parts that each map of a contract or a mandate may have, in the recommended order. */
export const documentKeys: Readonly<Record<DocumentMap, readonly string[]>> = {
  contract: ["contract", "summary", "limits", "platform", "sensitive", "requires", "let", "tools", "counters", "rules"],
  mandate: ["mandate", "summary", "contracts", "limits", "counters"],
  /** A contract in a mandate. */
  entry: ["file", "tools"],
  limit: ["default", "min", "max"],
  tool: ["summary", "input", "requires", "otherwise"],
  requirement: ["when", "reason"],
  outcome: ["verdict", "reason"],
  rule: ["rule", "summary", "on", "let", "when", "mode", "verdict", "final", "reason"],
  counter: [
    "of",
    "when",
    "per",
    "sum",
    "remembers",
    "counting",
    "within",
    "timezone",
    "week_starts",
    "since",
    "settles_within",
  ],
};

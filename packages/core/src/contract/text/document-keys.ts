type DocumentMap =
  | "contract"
  | "mandate"
  | "entry"
  | "grants"
  | "limit"
  | "tool"
  | "requirement"
  | "outcome"
  | "rule"
  | "counter"
  | "approval"
  | "approvals";

/** The parts that each map of a contract or a mandate may have, in the recommended order. */
export const documentKeys: Readonly<Record<DocumentMap, readonly string[]>> = {
  contract: [
    "contract",
    "summary",
    "limits",
    "platform",
    "sensitive",
    "subject",
    "host_facts",
    "approval",
    "requires",
    "let",
    "tools",
    "counters",
    "rules",
  ],
  mandate: ["mandate", "summary", "contracts", "limits", "counters", "approval", "approvals"],
  /** A contract in a mandate. */
  entry: ["file", "tools"],
  limit: ["default", "min", "max"],
  tool: ["summary", "aliases", "input", "numbers", "requires", "approval", "otherwise"],
  requirement: ["when", "reason"],
  outcome: ["verdict", "reason"],
  rule: ["rule", "summary", "on", "let", "when", "mode", "verdict", "final", "approval", "reason"],
  /** What an approval needs: for a rule, a tool, a contract or a mandate. */
  approval: [
    "by",
    "of",
    "decide_within",
    "use_within",
    "batch",
    "sessions",
    "pins",
    "drift",
    "free",
    "unbound",
    "grants",
  ],
  /** What a grant may be at most, by a rule. */
  grants: ["at_most", "uses", "pin"],
  /** The settings of a mandate for all approvals. */
  approvals: ["self", "open", "outcome_within"],
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
    "settles",
    "claims",
  ],
};

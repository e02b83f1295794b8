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
  | "approvals"
  | "pack"
  | "commands"
  | "program"
  | "form"
  | "exception"
  | "weaker";

/** The parts that each map of a contract or a mandate may have, in the recommended order. */
export const documentKeys: Readonly<Record<DocumentMap, readonly string[]>> = {
  contract: words(
    "contract summary limits platform sensitive subject host_facts approval requires commands let tools counters rules",
  ),
  mandate: words("mandate summary contracts limits counters approval approvals"),
  /** A contract in a mandate. */
  entry: words("file tools"),
  limit: words("default min max"),
  tool: words("summary aliases input numbers requires approval otherwise"),
  requirement: words("when reason"),
  outcome: words("verdict reason"),
  rule: words("rule summary on let when mode verdict final approval reason"),
  /** What an approval needs: for a rule, a tool, a contract or a mandate. */
  approval: words("by of decide_within use_within batch sessions pins drift free unbound grants self"),
  /** What a grant may be at most, by a rule. */
  grants: words("by at_most uses pin free"),
  /** The settings of a mandate for all approvals. */
  approvals: words("self open outcome_within"),
  /** A table of commands that contracts may take. */
  pack: words("pack summary made_for sources draft limits programs generated variables forms"),
  /** The table of commands of a contract. */
  commands: words("from without weaken programs generated variables forms"),
  /** How the programs of a table read their options. */
  program: words("style options everywhere"),
  form: words(
    "run needs options refuses marked any unless words patterns does writes prints verdict reason examples counterexamples",
  ),
  /** Words or options with which a form does not apply. */
  exception: words("options words"),
  /** A form that a contract takes out of a pack, although it is stricter. */
  weaker: words("form because"),
  counter: words("of when per sum remembers counting within timezone week_starts since settles_within settles claims"),
};

function words(text: string): readonly string[] {
  return text.split(" ");
}

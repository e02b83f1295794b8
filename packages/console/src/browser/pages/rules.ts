import { h, type JSX } from "preact";
import type { ExplainedJson, ExplainedPart, ExplainedRule } from "../../../../core/src/wire/mod.ts";
import { el } from "../elements.ts";
import { LoadingNote, panel, table, useAnswer, Verdict } from "../parts.ts";
import { Text } from "../text.ts";

interface RulesOfProps {
  readonly seq: number;
  /** The names of the rules, if the key may not see more. */
  readonly fallback: readonly string[];
}

/** The rules of a receipt, each with the values of its operands. */
export function RulesOf({ seq, fallback }: RulesOfProps): JSX.Element {
  const body = JSON.stringify({ receipt: seq, under: "recorded" });
  const { value, problem } = useAnswer<ExplainedJson>("/explain", [], body);
  return panel(
    "Rules",
    value === undefined && problem === undefined && h(LoadingNote, null),
    problem !== undefined && el.p({ class: "quiet" }, fallback.join(", "), ". ", problem.detail),
    value !== undefined && h(RuleList, { explained: value }),
  );
}

/** First the rules that spoke, then a list of the others that can be opened. */
export function RuleList({ explained }: { readonly explained: ExplainedJson }): JSX.Element {
  const spoke = explained.rules.filter(({ speaks }) => speaks !== null);
  const silent = explained.rules.filter(({ speaks }) => speaks === null);
  const { mismatch } = explained;
  return el.div(
    { class: "rules" },
    mismatch !== null &&
      el.p(h(Text, { of: `${mismatch.path}: expected ${mismatch.expected}, found ${mismatch.found}` })),
    spoke.map((rule) => h(Rule, { key: rule.id, rule })),
    silent.length > 0 &&
      el.details(
        el.summary(`${silent.length} ${silent.length === 1 ? "rule" : "rules"} that did not apply`),
        silent.map((rule) => h(Rule, { key: rule.id, rule })),
      ),
    explained.counters.length > 0 &&
      table(
        "counters",
        explained.counters.map(({ name, value }) =>
          el.tr({ key: name }, el.th({ scope: "row" }, h(Text, { of: name })), el.td(value ?? "not read")),
        ),
        { caption: el.caption("Counters before the call") },
      ),
  );
}

function Rule({ rule }: { readonly rule: ExplainedRule }): JSX.Element {
  const { id, kind, came, speaks, condition } = rule;
  return el.div(
    { class: "rule" },
    el.h3(
      speaks !== null && h(Verdict, { of: speaks.verdict }),
      " ",
      h(Text, { of: id }),
      kind === "observing" && el.span({ class: "quiet" }, " (observes)"),
    ),
    speaks !== null && speaks.reason !== "" && el.p(h(Text, { of: speaks.reason })),
    speaks === null && el.p({ class: "quiet" }, came === "false" ? "its condition is false" : came),
    condition !== null && el.ul({ class: "condition" }, h(Part, { of: condition })),
  );
}

function Part({ of }: { readonly of: ExplainedPart }): JSX.Element {
  const values = of.came.map((each) => ("value" in each ? each.value : `error: ${each.error}`));
  return el.li(
    el.code(h(Text, { of: of.text })),
    values.length > 0 &&
      el.span(
        { class: "came" },
        " = ",
        h(Text, { of: values.join(", ") }),
        of.times > values.length && ` (${of.times} times)`,
      ),
    of.parts.length > 0 && el.ul(of.parts.map((part, at) => h(Part, { key: at, of: part }))),
  );
}

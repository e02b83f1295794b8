import { h, type JSX } from "preact";
import type { ExplainedJson, ExplainedPart, ExplainedRule } from "../../wire/mod.ts";
import { Loading, Panel, useAnswer, Verdict } from "../parts.ts";
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
  return h(
    Panel,
    { title: "Rules" },
    value === undefined && problem === undefined && h(Loading, null),
    problem !== undefined && h("p", { class: "quiet" }, fallback.join(", "), ". ", problem.detail),
    value !== undefined && h(RuleList, { explained: value }),
  );
}

/** First the rules that spoke, then a list of the others that can be opened. */
export function RuleList({ explained }: { readonly explained: ExplainedJson }): JSX.Element {
  const spoke = explained.rules.filter(({ speaks }) => speaks !== null);
  const silent = explained.rules.filter(({ speaks }) => speaks === null);
  const { mismatch } = explained;
  return h(
    "div",
    { class: "rules" },
    mismatch !== null &&
      h("p", null, h(Text, { of: `${mismatch.path}: expected ${mismatch.expected}, found ${mismatch.found}` })),
    spoke.map((rule) => h(Rule, { key: rule.id, rule })),
    silent.length > 0 &&
      h(
        "details",
        null,
        h("summary", null, `${silent.length} ${silent.length === 1 ? "rule" : "rules"} that did not apply`),
        silent.map((rule) => h(Rule, { key: rule.id, rule })),
      ),
    explained.counters.length > 0 &&
      h(
        "table",
        { class: "counters" },
        h("caption", null, "Counters before the call"),
        h(
          "tbody",
          null,
          explained.counters.map(({ name, value }) =>
            h(
              "tr",
              { key: name },
              h("th", { scope: "row" }, h(Text, { of: name })),
              h("td", null, value ?? "not read"),
            ),
          ),
        ),
      ),
  );
}

function Rule({ rule }: { readonly rule: ExplainedRule }): JSX.Element {
  const { id, kind, came, speaks, condition } = rule;
  return h(
    "div",
    { class: "rule" },
    h(
      "h3",
      null,
      speaks !== null && h(Verdict, { of: speaks.verdict }),
      " ",
      h(Text, { of: id }),
      kind === "observing" && h("span", { class: "quiet" }, " (observes)"),
    ),
    speaks !== null && speaks.reason !== "" && h("p", null, h(Text, { of: speaks.reason })),
    speaks === null && h("p", { class: "quiet" }, came === "false" ? "its condition is false" : came),
    condition !== null && h("ul", { class: "condition" }, h(Part, { of: condition })),
  );
}

function Part({ of }: { readonly of: ExplainedPart }): JSX.Element {
  const values = of.came.map((each) => ("value" in each ? each.value : `error: ${each.error}`));
  return h(
    "li",
    null,
    h("code", null, h(Text, { of: of.text })),
    values.length > 0 &&
      h(
        "span",
        { class: "came" },
        " = ",
        h(Text, { of: values.join(", ") }),
        of.times > values.length && ` (${of.times} times)`,
      ),
    of.parts.length > 0 &&
      h(
        "ul",
        null,
        of.parts.map((part, at) => h(Part, { key: at, of: part })),
      ),
  );
}

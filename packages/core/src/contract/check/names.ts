import { didYouMean } from "../../wire/mod.ts";
import type { Checker } from "./checker.ts";
import { reservedName } from "../core/counter.ts";
import { roots, type Core, type Root } from "../core/core.ts";
import { same, type TypedCore, type Facts, type FactSpan } from "./facts.ts";
import type { MemberSyntax } from "../text/syntax.ts";
import { boolean, memory, size, string } from "../value/type.ts";

/** Checks a name alone: a variable, a name under `let:`, or a root such as `input`. */
export function checkName(checker: Checker, name: string, place: FactSpan): TypedCore {
  const { scope, variables } = checker;
  const { span, facts } = place;
  const variable = variables.get(name);
  if (variable !== undefined) {
    const { slot, type } = variable;
    const narrowed = type.kind === "nullable" && facts.has(`$${slot}!`) ? type.of : type;
    return same({ op: "variable", slot, type: narrowed, span }, facts);
  }
  const definition = scope.lets.get(name);
  if (definition !== undefined) return checker.checkLet(name, definition, place);
  switch (name) {
    case "input":
      if (scope.input === undefined) return refuseNotHere(checker, name, place);
      return same({ op: "root", root: "input", type: scope.input, span }, facts);
    case "platform":
      if (scope.platform === undefined) return refuseNotHere(checker, name, place);
      if (facts.has("platform")) {
        const { platform: type, hostFacts } = scope;
        return same({ op: "root", root: "platform", type, hostFacts, span }, facts);
      }
      return checker.refuse(
        place,
        "unproven-platform",
        "a check may have no facts, so `platform` may be absent here",
        "add `platform.present` to the tool's `requires:`, or test it first: `platform.present && ...`",
      );
    case "tool":
      return same({ op: "root", root: "tool", type: string, span }, facts);
    case "now":
      if (scope.counters !== undefined)
        return same({ op: "root", root: "now", type: { kind: "timestamp" }, span }, facts);
      return checker.refuse(
        place,
        "not-here",
        "`now` is not known yet when this is evaluated",
        "it is evaluated before the decision; limit a counter's time with `within:`",
      );
    case "limits":
    case "counters":
    case "session":
      return checker.refuse(place, "incomplete", `\`${name}\` is read by member: \`${name}.name\``);
    default: {
      const known = [...rootNames, ...scope.lets.keys(), ...variables.keys()];
      const literal = otherLiterals.get(name);
      const hint =
        literal === undefined
          ? didYouMean(name, known, `a condition reads ${rootNames.join(", ")} and names under \`let:\``)
          : `write \`${literal}\``;
      return checker.refuse(place, "unknown-name", `nothing is called \`${name}\` here`, hint);
    }
  }
}

/**
 * Checks a name of two or three words: `limits.name`, `counters.name` and its `held`, `session.present`. Undefined for a
 * member of a value.
 */
export function checkLongName(checker: Checker, syntax: MemberSyntax, facts: Facts): TypedCore | undefined {
  const { of, name, span, nameSpan } = syntax;
  if (of.kind !== "name") return checkHeld(checker, syntax, facts);
  const { scope, variables } = checker;
  if (variables.has(of.name)) return undefined;
  const root = of.name;
  if ((root === "platform" || root === "session") && name === "present") {
    const core: Core = { op: "root", root: `${root}.present` satisfies Root, type: boolean, span };
    return { core, whenTrue: new Set([...facts, root]), whenFalse: facts };
  }
  if (root === "session")
    return checker.refuse(
      { span: nameSpan, facts },
      "unknown-member",
      `\`session\` has only \`present\``,
      "a counter `per: session` counts within a session",
    );
  if (root === "limits") {
    const limit = scope.limits.get(name);
    if (limit !== undefined) return same({ op: "constant", value: limit.value, type: limit.type, span }, facts);
    return refuseUnknown(checker, "limit", name, { span: nameSpan, facts });
  }
  if (root !== "counters") return undefined;
  if (scope.counters === undefined)
    return checker.refuse(
      { span, facts },
      "not-here",
      "counters are not known yet when this is evaluated",
      "read them in a rule, or in a requirement that reads input or platform as well",
    );
  const counter = scope.counters.get(name);
  if (counter !== undefined)
    return same({ op: "counter", name: counter.name, type: counter.remembers ? memory : size, span }, facts);
  return refuseUnknown(checker, "counter", name, { span: nameSpan, facts });
}

/** `counters.name.held`; undefined for any other member. */
function checkHeld(checker: Checker, syntax: MemberSyntax, facts: Facts): TypedCore | undefined {
  const { of, name, span, nameSpan, optional } = syntax;
  if (name !== "held" || optional || of.kind !== "member" || of.of.kind !== "name") return undefined;
  if (of.of.name !== "counters" || checker.variables.has("counters")) return undefined;
  const counter = checker.scope.counters?.get(of.name);
  if (counter === undefined) return undefined;
  if (counter.counting === "possible" && !counter.remembers)
    return same({ op: "counter", name: reservedName(counter.name), type: size, span }, facts);
  const what = counter.remembers ? "remembers values" : `counts \`${counter.counting}\``;
  return checker.refuse(
    { span: nameSpan, facts },
    "counter",
    `\`${of.name}\` ${what}, so parked calls reserve no amount in it`,
    "only a counter with `counting: possible` and without `remembers` has `held`",
  );
}

function refuseUnknown(checker: Checker, what: "limit" | "counter", name: string, place: FactSpan): TypedCore {
  const hint = didYouMean(name, checker.scope[`${what}s`]?.keys() ?? [], `declare it under \`${what}s:\``);
  return checker.refuse(place, `unknown-${what}`, `there is no ${what} \`${name}\``, hint);
}

function refuseNotHere(checker: Checker, name: string, place: FactSpan): TypedCore {
  return checker.refuse(
    place,
    "not-here",
    `\`${name}\` is not checked against its schema yet when this is evaluated`,
    "a requirement on presence comes before the schemas, and its reason reads no members",
  );
}

export function isName({ scope, variables }: Checker, name: string): boolean {
  return rootNames.includes(name) || scope.lets.has(name) || variables.has(name);
}

const rootNames: readonly string[] = [
  ...new Set([...roots.map((root) => root.split(".")[0] ?? root), "limits", "counters"]),
];

/** Constants of other languages, and their names in the contract language. */
const otherLiterals: ReadonlyMap<string, string> = new Map([
  ...["None", "nil", "undefined", "NULL", "Null"].map((name) => [name, "null"] as const),
  ...["True", "TRUE"].map((name) => [name, "true"] as const),
  ...["False", "FALSE"].map((name) => [name, "false"] as const),
]);

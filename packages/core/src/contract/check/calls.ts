import { didYouMean } from "../../wire/mod.ts";
import { nameOfTable } from "../commands/table.ts";
import type { Span } from "../text/diagnostic.ts";
import { readSpanText, type Checker } from "./checker.ts";
import { macros, type Core, type Macro } from "../core/core.ts";
import { pathOf, same, type TypedCore, type Facts } from "./facts.ts";
import { leftOut } from "./left-out.ts";
import { readMember } from "./members.ts";
import { isName } from "./names.ts";
import type { ContractFunction } from "../core/function.ts";
import { EvaluationError } from "../value/rational.ts";
import type { CallSyntax, MemberSyntax, Syntax } from "../text/syntax.ts";
import { boolean, broken, join, listType, string, typeText, type Type } from "../value/type.ts";

/** Checks `has`, the macros over lists, and `orValue`, which look like calls. Undefined for a call of a function. */
export function checkMacro(checker: Checker, call: CallSyntax, facts: Facts): TypedCore | undefined {
  if (call.target === undefined) return call.name === "has" ? checkHas(checker, call, facts) : undefined;
  if ((macros as readonly string[]).includes(call.name)) return checkFold(checker, call, call.target, facts);
  if (call.name === "orValue" || call.name === "hasValue") return checkOptional(checker, call, call.target, facts);
  return undefined;
}

function checkHas(checker: Checker, call: CallSyntax, facts: Facts): TypedCore {
  const { args, span } = call;
  const [argument] = args;
  const member = args.length === 1 && argument !== undefined ? memberIn(argument) : undefined;
  if (member === undefined) {
    if (argument?.kind === "broken") return same({ op: "broken", type: broken, span }, facts);
    return checker.refuse({ span, facts }, "has", "`has` takes one member, such as `has(input.note)`");
  }
  const { name } = member;
  if (argument?.kind === "member" && member.of.kind === "name" && declared.has(member.of.name))
    return checker.refuse({ span, facts }, "has", `\`${member.of.name}\` only has the declared members`);
  const of = checker.check(member.of, facts).core;
  const path = pathOf(of, name);
  const known: Facts = path === undefined ? facts : new Set([...facts, path]);
  if (of.type.kind === "record" && (of.type.fields.has(name) || of.type.others !== undefined)) {
    return { core: { op: "has", of, name, type: boolean, span }, whenTrue: known, whenFalse: facts };
  }
  // Checking the argument as if it were present reports every error in it except absence.
  return readMember(checker, of, member, known);
}

/** Roots of which the members are declared in the contract: each is always present. */
const declared: ReadonlySet<string> = new Set(["limits", "counters", "session"]);

/** `value.name` or `value["name"]`; undefined for anything else. */
function memberIn(syntax: Syntax): MemberSyntax | undefined {
  if (syntax.kind === "member") return syntax.optional ? undefined : syntax;
  if (syntax.kind !== "index" || syntax.at.kind !== "literal") return undefined;
  const { of, at, span } = syntax;
  if (typeof at.value !== "string") return undefined;
  return { kind: "member", of, name: at.value, span, nameSpan: span, optional: false };
}

function checkFold(checker: Checker, call: CallSyntax, target: Syntax, facts: Facts): TypedCore {
  const macro = call.name as Macro;
  const range = checker.check(target, facts).core;
  const [variable, ...bodies] = call.args;
  const wanted = macro === "map" ? [1, 2] : [1];
  if (variable?.kind !== "name" || !wanted.includes(bodies.length)) {
    const shape = macro === "map" ? "list.map(x, value)" : `list.${macro}(x, condition)`;
    return checker.refuse({ span: call.nameSpan, facts }, "macro", `\`${macro}\` is written \`${shape}\``);
  }
  if (isName(checker, variable.name)) {
    checker.scope.report.add(
      "shadowed-name",
      variable.span,
      `\`${variable.name}\` already has a meaning here`,
      "choose another name for the item",
    );
  }
  const item = itemType(range.type);
  if (item === undefined) {
    return checker.refuse(
      { span: range.span, facts },
      "type",
      `\`${macro}\` goes over a list or the names of an object, not over ${typeText(range.type)}`,
    );
  }
  return checker.withVariable(variable.name, item, (slot) => {
    const parts: Core[] = [];
    let inside = facts;
    for (const body of bodies) {
      const checked = checker.check(body, inside);
      parts.push(checked.core);
      inside = checked.whenTrue;
    }
    const [test, body] = macro === "map" ? (parts.length === 1 ? [undefined, parts[0]] : parts) : [parts[0], undefined];
    if (test !== undefined) checker.demand(test, "boolean", `the condition of \`${macro}\``);
    const type =
      macro === "filter"
        ? listType(item, maxItems(range.type))
        : macro === "map"
          ? listType(body?.type ?? broken, maxItems(range.type))
          : boolean;
    return same({ op: "fold", macro, range, slot, test, body, type, span: call.span }, facts);
  });
}

function itemType(type: Type): Type | undefined {
  if (type.kind === "list") return type.of;
  if (type.kind === "record") return string;
  return type.kind === "broken" ? broken : undefined;
}

function maxItems(type: Type): number | undefined {
  return type.kind === "list" ? type.maxItems : undefined;
}

function checkOptional(checker: Checker, call: CallSyntax, target: Syntax, facts: Facts): TypedCore {
  const of = checker.check(target, facts).core;
  const args = call.args.map((arg) => checker.check(arg, facts).core);
  if (of.type.kind === "broken") return same({ op: "broken", type: broken, span: call.span }, facts);
  if (of.type.kind !== "optional") {
    return checker.refuse(
      { span: call.nameSpan, facts },
      "type",
      `\`${call.name}\` needs a member that may be absent, not ${typeText(of.type)}`,
      "write `.?member` before it",
    );
  }
  const wanted = call.name === "orValue" ? 1 : 0;
  const place = { span: call.nameSpan, facts };
  if (args.length !== wanted)
    return checker.refuse(place, "arguments", `\`${call.name}\` takes ${wanted === 1 ? "one default" : "nothing"}`);
  const [fallback] = args;
  const entry = optionalFunctions[fallback === undefined ? "hasValue" : "orValue"];
  if (fallback === undefined) return same({ op: "call", entry, args: [of], type: boolean, span: call.span }, facts);
  const type = join(of.type.of, fallback.type);
  if (type === undefined) {
    return checker.refuse(
      { span: fallback.span, facts },
      "type",
      `the default is ${typeText(fallback.type)}, the member is ${typeText(of.type.of)}`,
    );
  }
  return same({ op: "call", entry, args: [of, fallback], type, span: call.span }, facts);
}

const optionalFunctions: Readonly<Record<"orValue" | "hasValue", ContractFunction>> = {
  orValue: {
    name: "orValue",
    style: "method",
    parameters: ["optional", "any"],
    result: broken,
    doc: "The member, or the default if it is absent.",
    examples: [],
    run: ([optional, fallback]) => (optional as { value: never }).value ?? fallback ?? null,
  },
  hasValue: {
    name: "hasValue",
    style: "method",
    parameters: ["optional"],
    result: boolean,
    doc: "Is the member present?",
    examples: [],
    run: ([optional]) => (optional as { value: unknown }).value !== undefined,
  },
};

/** Checks a call of a function in the table, as a method or alone. */
export function checkCall(checker: Checker, call: CallSyntax, facts: Facts): TypedCore {
  const space = call.target?.kind === "name" && !isName(checker, call.target.name) ? call.target.name : "";
  if (namespaces.has(space)) {
    const message = `\`${space}.${call.name}\` is not part of the contract language`;
    return checker.refuse({ span: call.span, facts }, "left-out", message, "name a part of an expression under `let:`");
  }
  const written = call.target === undefined ? call.args : [call.target, ...call.args];
  const args = written.map((arg) => checker.check(arg, facts).core);
  const named = checker.scope.functions.filter((entry) => entry.name === call.name && styleFits(entry, call));
  if (named.length === 0) return unknownFunction(checker, call, facts);
  if (args.some((arg) => arg.type.kind === "broken"))
    return same({ op: "broken", type: broken, span: call.span }, facts);
  const entry = named.find(
    ({ parameters }) =>
      parameters.length === args.length && parameters.every((kind, at) => kind === args[at]?.type.kind),
  );
  if (entry === undefined) {
    const takes = named.map(({ parameters }) => parameters.join(", ").replace("record", "object")).join("; or ");
    const given = args.map((arg) => typeText(arg.type)).join(", ");
    return checker.refuse(
      { span: call.span, facts },
      "arguments",
      `\`${call.name}\` takes (${takes.replaceAll("string", "text")}), not (${given})`,
      argumentsHint(call, named, args),
    );
  }
  return bindCall(checker, call, { entry, args }, facts);
}

/** A hint for an optional value as an argument, or for a time without its time zone. */
function argumentsHint(
  call: CallSyntax,
  named: readonly ContractFunction[],
  args: readonly Core[],
): string | undefined {
  if (args.some(({ type }) => type.kind === "optional"))
    return 'give a default: `.?name.orValue(other)`, with `[]` for a list and `""` for a text';
  const takesZone = named.some(({ parameters }) => parameters.join() === "timestamp,string");
  if (!takesZone) return undefined;
  return `give a time and a time zone: \`${call.name}(now, "Europe/Berlin")\``;
}

/** The prefixes of CEL's extensions. */
const namespaces: ReadonlySet<string> = new Set(["cel", "math", "optional", "base64", "proto", "strings"]);

/** `size` is a method and a function, as in CEL. */
function styleFits(entry: ContractFunction, call: CallSyntax): boolean {
  return entry.name === "size" || (entry.style === "method") === (call.target !== undefined);
}

interface FoundCall {
  readonly entry: ContractFunction;
  readonly args: readonly Core[];
}

function bindCall(checker: Checker, { name, span }: CallSyntax, { entry, args }: FoundCall, facts: Facts): TypedCore {
  checker.scope.calls?.add(entry);
  const literals = args.map((arg) => (arg.op === "constant" ? arg.value : undefined));
  const literal = literals.at(-1);
  const place = { span: args.at(-1)?.span ?? span, facts };
  if (entry.bindCommands !== undefined) return bindCommands(checker, { entry, args }, { span, facts });
  if (entry.bind !== undefined) {
    if (typeof literal !== "string")
      return checker.refuse(place, "literal", `the last argument of \`${name}\` must be a text written here`);
    const bound = entry.bind(literal);
    if (!bound.ok) return checker.refuse(place, "pattern", bound.problem.message, bound.problem.hint);
    return same({ op: "call", entry: { ...entry, ...bound.value }, args, type: entry.result, span }, facts);
  }
  const problem = typeof literal === "string" ? entry.checkLiteral?.(literal) : undefined;
  if (problem !== undefined) return checker.refuse(place, "literal", problem.message, problem.hint);
  if (!literals.includes(undefined) && args.length > 0 && entry.load === undefined) {
    try {
      const result = entry.run(literals.filter((value) => value !== undefined));
      return same({ op: "constant", value: result, type: entry.result, span }, facts);
    } catch (error) {
      if (!(error instanceof EvaluationError)) throw error;
      return checker.refuse({ span, facts }, "literal", error.message);
    }
  }
  return same({ op: "call", entry, args, type: entry.result, span }, facts);
}

/** The last argument names the table, so calls under two tables are not the same for caches and proofs. */
function bindCommands(
  checker: Checker,
  { entry, args }: FoundCall,
  { span, facts }: { readonly span: Span; readonly facts: Facts },
): TypedCore {
  const table = checker.scope.commands;
  if (entry.bindCommands === undefined || table === undefined)
    return checker.refuse(
      { span, facts },
      "form",
      `\`${entry.name}\` needs a table of commands`,
      "write `commands: { from: [packs/files.yaml] }` into the contract",
    );
  const bound = { ...entry, ...entry.bindCommands(table), parameters: [...entry.parameters, "string" as const] };
  const name: Core = { op: "constant", value: nameOfTable(table), type: string, span };
  return same({ op: "call", entry: bound, args: [...args, name], type: entry.result, span }, facts);
}

function unknownFunction(checker: Checker, call: CallSyntax, facts: Facts): TypedCore {
  const { name, nameSpan: span } = call;
  const hint = leftOut.get(name);
  if (hint !== undefined)
    return checker.refuse({ span, facts }, "left-out", `\`${name}\` is not part of the contract language`, hint);
  const other = checker.scope.functions.find((entry) => entry.name === name);
  if (other !== undefined) {
    const shape = other.style === "method" ? `value.${name}(...)` : `${name}(...)`;
    return checker.refuse({ span, facts }, "unknown-function", `\`${name}\` is written \`${shape}\``);
  }
  const message = `the contract language does not have the function \`${name}\``;
  return checker.refuse({ span, facts }, "unknown-function", message, insteadOfUnknown(call, checker.scope.functions));
}

/** The hint for a function that the language does not have: its name here, what to write, or a similar name. */
function insteadOfUnknown(
  { name, target, args }: CallSyntax,
  functions: readonly ContractFunction[],
): string | undefined {
  const ours = otherNames.get(name);
  if (ours !== undefined) {
    const of = target ?? args[0];
    return `write \`${ours.replace(/\bx\b/, of === undefined ? "x" : readSpanText(of.span))}\``;
  }
  const known = [...functions.map((each) => each.name), ...macros, "has"];
  return insteadOf.get(name) ?? didYouMean(name, known, undefined);
}

/** Functions of other languages, and their names in the contract language. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ...["len", "length", "count", "strlen"].map((name) => [name, "size(x)"] as const),
  ...["lower", "toLower", "toLowerCase", "lowercase"].map((name) => [name, "x.lowerAscii()"] as const),
  ["includes", "contains"],
  ["any", "exists"],
  ["some", "exists"],
  ["every", "all"],
]);

/** The hint for functions of other languages that have no single counterpart. */
const insteadOf: ReadonlyMap<string, string> = new Map([
  ["now", "`now` is a value: write it without brackets"],
  ["max", "write `a > b ? a : b`"],
  ["min", "write `a < b ? a : b`"],
  ["abs", "write `a < 0 ? -a : a`"],
  ...["weekday", "dayOfWeek", "day_of_week"].map(
    (name) => [name, 'write `day(now, "Europe/Berlin")`, with your time zone'] as const,
  ),
  ...["str", "toString"].map(
    (name) => [name, "compare values of their own type; a reason prints any value with `{...}`"] as const,
  ),
]);

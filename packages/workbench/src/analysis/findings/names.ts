import { looksLike, pathNames } from "../../../../core/src/wire/mod.ts";
import type { Span } from "../../../../readers/src/contract.ts";
import { parts, type ContractDocument, type Syntax } from "../../../../readers/src/ir.ts";
import { propertiesOf } from "./declared-facts.ts";
import type { ContractFinding } from "./finding.ts";

/** Names that nothing reads, and names that look alike. */
export function findInNames(documents: readonly ContractDocument[]): readonly ContractFinding[] {
  const tools = documents.flatMap((document) =>
    [...document.tools].flatMap(([tool, { span, aliases }]) => [
      { name: tool, span, tool },
      ...aliases.map(({ text, span: at }) => ({ name: text, span: at, tool })),
    ]),
  );
  return [
    ...documents.flatMap(unusedIn),
    ...lookAlikes("tool", tools),
    ...documents.flatMap((document) => [
      ...lookAlikes("rule", document.rules),
      ...lookAlikes("limit", listNames(document.limits)),
      ...lookAlikes("counter", listNames(document.counters)),
      ...lookAlikes("fact", factsOf(document)),
    ]),
  ];
}

interface DeclaredName {
  readonly name: string;
  readonly span: Span;
  /** The tool that the name means; names of one tool may look alike. */
  readonly tool?: string;
}

function listNames(section: ReadonlyMap<string, { readonly span: Span }>): readonly DeclaredName[] {
  return [...section].map(([name, { span }]) => ({ name, span }));
}

function factsOf({ platform }: ContractDocument): readonly DeclaredName[] {
  return propertiesOf(platform).map(([name, { key }]) => ({ name, span: key.span }));
}

function unusedIn(document: ContractDocument): readonly ContractFinding[] {
  const bound = boundIn(document);
  const conditions = new Set([...readIn(conditionsOf(document)), ...bound]);
  const anywhere = new Set([...conditions, ...readIn(reasonsOf(document))]);
  const filterUnused = (
    root: string,
    named: readonly DeclaredName[],
    read: ReadonlySet<string>,
  ): readonly DeclaredName[] => named.filter(({ name }) => !read.has(root) && !read.has(`${root}.${name}`));
  const describeReasonUse = (name: string): string => (anywhere.has(name) ? "; a reason shows it" : "");
  return [
    // A pack gives one list of names to many contracts.
    ...filterUnused("limits", listNames(document.limits), conditions)
      .filter(({ span }) => span.file === document.file)
      .map(({ name, span }): ContractFinding => ({
        code: "unused-limit",
        span,
        message: `no condition reads \`limits.${name}\`, so setting it changes nothing${describeReasonUse(`limits.${name}`)}`,
        hint: "use it in a condition, or remove it",
      })),
    ...filterUnused("platform", factsOf(document), anywhere).map(({ name, span }): ContractFinding => ({
      code: "unused-fact",
      span,
      message: `nothing reads \`platform.${name}\``,
      hint: "use it in a condition, or remove it: the platform does not need to send it",
    })),
    ...filterUnused("counters", listNames(document.counters), conditions).map(({ name, span }): ContractFinding => ({
      code: "unused-counter",
      span,
      message: `no condition reads \`counters.${name}\`, so it limits nothing${describeReasonUse(`counters.${name}`)}`,
      hint: "use it in a rule, or remove it",
    })),
  ];
}

function conditionsOf({ rules, requires, lets, tools, counters }: ContractDocument): readonly Syntax[] {
  const required = [...requires, ...[...tools.values()].flatMap((tool) => tool.requires)];
  return [
    ...lets.values(),
    ...required.map(({ when }) => when),
    ...rules.flatMap((rule) => [rule.when, ...rule.lets.values()]),
    ...[...counters.values()].flatMap(({ when, per, sum, since, remembers }) =>
      [...per, when, sum, since, remembers].flatMap((expression) => expression?.syntax ?? []),
    ),
  ];
}

/** The facts and counters that an approval is bound to, as `root.name`. */
function boundIn({ subject, approval, tools, rules }: ContractDocument): readonly string[] {
  const approvals = [approval, ...[...tools.values(), ...rules].map((part) => part.approval)];
  return [...subject, ...approvals.flatMap((part) => part?.pins ?? [])].map(({ text }) =>
    (pathNames(text) ?? []).slice(0, 2).join("."),
  );
}

function reasonsOf({ rules, requires, tools }: ContractDocument): readonly Syntax[] {
  const outcomes = [...tools.values()].flatMap(({ otherwise, requires: own }) => [
    ...own,
    ...(otherwise === undefined ? [] : [otherwise]),
  ]);
  return [...rules, ...requires, ...outcomes].flatMap(({ reason = [] }) =>
    reason.filter((part) => typeof part !== "string"),
  );
}

/** The names that expressions read, as `root.name`; only the root if it is read as a whole. */
function readIn(expressions: readonly Syntax[]): ReadonlySet<string> {
  const open = [...expressions];
  const read = new Set<string>();
  for (let syntax = open.pop(); syntax !== undefined; syntax = open.pop()) {
    const member = memberOfRoot(syntax);
    if (member !== undefined) read.add(member);
    else if (syntax.kind === "name") read.add(syntax.name);
    open.push(...(member === undefined ? parts(syntax) : []));
  }
  return read;
}

function memberOfRoot(syntax: Syntax): string | undefined {
  if (syntax.kind === "member" && syntax.of.kind === "name") return `${syntax.of.name}.${syntax.name}`;
  if (syntax.kind !== "index" || syntax.of.kind !== "name" || syntax.at.kind !== "literal") return undefined;
  return typeof syntax.at.value === "string" ? `${syntax.of.name}.${syntax.at.value}` : undefined;
}

/** The later one of two names whose difference is easily overlooked. */
function lookAlikes(what: string, named: readonly DeclaredName[]): readonly ContractFinding[] {
  const found: ContractFinding[] = [];
  for (const [at, { name, span, tool }] of named.entries()) {
    const isOther = (other: DeclaredName): boolean =>
      other.name !== name && (tool === undefined || other.tool !== tool);
    const twin = named.slice(0, at).find((other) => isOther(other) && looksLike(other.name, name));
    const mixed = twin === undefined && looksLike(name, name);
    if (twin === undefined && !mixed) continue;
    found.push({
      code: "look-alike-names",
      span,
      message:
        twin === undefined
          ? `the name of the ${what} \`${name}\` mixes letters of two scripts that look alike`
          : `the ${what} \`${name}\` looks like \`${twin.name}\``,
      hint: `give the ${what} a clearly different name, in letters of one script`,
    });
  }
  return found;
}

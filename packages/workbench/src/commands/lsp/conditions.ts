import type { PolicySet } from "../../../../readers/src/contract.ts";
import { functions, walk, type Core } from "../../../../readers/src/ir.ts";
import {
  find,
  kindsOf,
  namesUnder,
  propertiesOf,
  schemaMember,
  formatNode,
  type OutlineMember,
  type Outline,
} from "./outline.ts";
import type { CursorLocation } from "./cursor-location.ts";

/** One completion in a condition. */
export interface Suggestion {
  readonly name: string;
  readonly kind: "root" | "member" | "function" | "name";
  readonly detail: string;
}

const roots: readonly Suggestion[] = [
  ["input", "the tool's input, as its schema declares it"],
  ["platform", "the facts; `platform.present` is whether the check has facts"],
  ["limits", "a limit, with the value in force"],
  ["counters", "a counter, with its value before this call"],
  ["session", "`session.present`: does the check belong to a session"],
  ["tool", "the tool's name"],
  ["now", "the time of the check, a timestamp"],
].map(([name = "", detail = ""]) => ({ name, kind: "root", detail }));

const reservedPart: Suggestion = {
  name: "held",
  kind: "member",
  detail: "the amount of parked calls, for a counter with `counting: possible`",
};

const macros: readonly Suggestion[] = [
  ["exists", "exists(x, condition): is it true for an item?"],
  ["all", "all(x, condition): is it true for every item?"],
  ["exists_one", "exists_one(x, condition): is it true for exactly one item?"],
  ["filter", "filter(x, condition): the items for which it is true"],
  ["map", "map(x, value): a value for each item"],
].map(([name = "", detail = ""]) => ({ name, kind: "function", detail }));

/** The completions in a condition, after the chain of names before the cursor. */
export function suggest(outline: Outline, location: CursorLocation): readonly Suggestion[] {
  const [, chain = ""] = /((?:[A-Za-z_][A-Za-z0-9_]*\.\??)*)[A-Za-z0-9_]*$/.exec(location.before) ?? [];
  const names = chain.split(/\.\??/).filter((name) => name !== "");
  const [root, ...rest] = names;
  if (root === undefined)
    return /[)\]"'`]\.\??\w*$/.test(location.before) ? methods([]) : firstSuggestions(outline, location);
  if (root === "limits" || root === "counters") {
    if (rest.length === 0) return namesUnder(outline, root).map((name) => member(name, find(outline, root, name)));
    return root === "counters" && rest.length === 1 ? [reservedPart, ...methods([])] : methods([]);
  }
  if (root === "session") return [{ name: "present", kind: "member", detail: "does the check belong to a session?" }];
  const schemas = schemasOf(outline, location, root);
  const found = schemas.flatMap((schema) => {
    return rest.length === 0 ? schema : (schemaMember(schema.node, rest, schema.node) ?? []);
  });
  const presence: readonly Suggestion[] =
    root === "platform" && rest.length === 0
      ? [{ name: "present", kind: "member", detail: "does the check have facts?" }]
      : [];
  const kinds = rest.length === 0 ? [] : found.flatMap(({ node }) => kindsOf(node));
  const isRecord = rest.length === 0 && (root === "input" || root === "platform");
  return [...presence, ...found.flatMap(fields), ...(isRecord ? [] : methods(kinds))];
}

/** The completions for the name of a member: those that its schema declares. */
export function suggestMembers(outline: Outline, location: CursorLocation): readonly Suggestion[] {
  if (!location.before.includes(".")) return roots.filter(({ name }) => name === "input" || name === "platform");
  if (!/^(?:input|platform)\./.test(location.before)) return [];
  return suggest(outline, location).filter(({ kind, name }) => kind === "member" && name !== "present");
}

function firstSuggestions(outline: Outline, location: CursorLocation): readonly Suggestion[] {
  const lets = letsOf(outline, location).map(([name, found]) => member(name, found));
  const plain = functions.filter(({ style }) => style === "function" || style === "method").map(asSuggestion);
  const distinct = new Map(
    [...plain, { name: "has", kind: "function", detail: "has(a.b): is the member present?" } as const].map((each) => [
      each.name,
      each,
    ]),
  );
  return [...roots, ...lets, ...distinct.values()];
}

function methods(kinds: readonly string[]): readonly Suggestion[] {
  const fitting = functions.filter(
    ({ style, parameters }) => style === "method" && (kinds.length === 0 || kinds.includes(parameters[0] ?? "")),
  );
  const folds = kinds.length === 0 || kinds.includes("list") || kinds.includes("record") ? macros : [];
  const distinct = new Map([...fitting.map(asSuggestion), ...folds].map((each) => [each.name, each]));
  return [...distinct.values()];
}

function asSuggestion({ name, doc }: (typeof functions)[number]): Suggestion {
  return { name, kind: "function", detail: doc };
}

function member(name: string, found: OutlineMember | undefined): Suggestion {
  return { name, kind: "member", detail: found === undefined ? "" : formatNode(found.node) };
}

function fields({ node }: OutlineMember): readonly Suggestion[] {
  return [...propertiesOf(node)].map(([name, { key, value }]) => member(name, { key: key.span, node: value }));
}

/** The schemas of a root at this location: the inputs of the tools that the rule is for. */
function schemasOf(outline: Outline, location: CursorLocation, root: string): readonly OutlineMember[] {
  if (root === "platform") return [find(outline, "platform")].filter((found) => found !== undefined);
  if (root !== "input") return [];
  return findToolsAtCursor(outline, location).flatMap((tool) => find(outline, "tools", tool, "input") ?? []);
}

/** The tools of a location: its own, those of the `on:` or `of:` next to it, or all. */
export function findToolsAtCursor(outline: Outline, { path, around }: CursorLocation): readonly string[] {
  const all = namesUnder(outline, "tools");
  const [part, name] = path;
  if (part === "tools" && name !== undefined) return [name];
  if (part === "sensitive") return all;
  const [, list = "*"] = /(?:^|[\s{,-])(?:on|of):\s*(\[[^\]]*\]|[^\s,}]+|(?:\n\s*- .*)+)/.exec(around) ?? [];
  const patterns = Array.from(list.matchAll(/[^\s[\],"'-][^\s[\],"']*/g), ([pattern]) => pattern);
  const fits = (tool: string): boolean =>
    patterns.some((pattern) => (pattern.endsWith("*") ? tool.startsWith(pattern.slice(0, -1)) : pattern === tool));
  const chosen = all.filter(fits);
  return chosen.length === 0 ? all : chosen;
}

function letsOf(
  outline: Outline,
  { around }: CursorLocation,
): readonly (readonly [string, OutlineMember | undefined])[] {
  const rules = find(outline, "rules")?.node;
  const [, rule] = /rule:\s*([\w-]+)/.exec(around) ?? [];
  const own = rules?.kind === "list" ? rules.items : [];
  const maps = own.filter((item) => item.kind === "map" && readScalarText(item.entries.get("rule")?.value) === rule);
  const inner = maps.flatMap((item) => {
    const lets = item.kind === "map" ? item.entries.get("let")?.value : undefined;
    return lets?.kind === "map"
      ? [...lets.entries].map(([name, { key, value }]) => [name, { key: key.span, node: value }] as const)
      : [];
  });
  return [...inner, ...namesUnder(outline, "let").map((name) => [name, find(outline, "let", name)] as const)];
}

function readScalarText(node: OutlineMember["node"] | undefined): string | undefined {
  return node?.kind === "scalar" ? node.text : undefined;
}

/** The declaration of a chain of names, up to the word under the cursor. */
export function findDeclaration(
  outline: Outline,
  location: CursorLocation,
  chain: readonly string[],
): OutlineMember | undefined {
  const [root = "", ...rest] = chain;
  if (rest.length === 0) return letsOf(outline, location).find(([name]) => name === root)?.[1];
  if (root === "limits" || root === "counters") return rest.length === 1 ? find(outline, root, ...rest) : undefined;
  for (const schema of schemasOf(outline, location, root)) {
    const found = schemaMember(schema.node, rest, schema.node);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The names up to the word at an offset: `input.to` for a cursor in `to` of `input.to.size()`. */
export function chainAt(
  text: string,
  offset: number,
): { readonly chain: readonly string[]; readonly from: number; readonly to: number } | undefined {
  const start = text.lastIndexOf("\n", offset - 1) + 1;
  const end = text.indexOf("\n", offset);
  const line = text.slice(start, end === -1 ? undefined : end);
  for (const { 0: whole, index } of line.matchAll(/[A-Za-z_][A-Za-z0-9_]*(?:\.\??[A-Za-z_][A-Za-z0-9_]*)*/g)) {
    const at = offset - start - index;
    if (at < 0 || at > whole.length) continue;
    const rest = /^[A-Za-z0-9_]*/.exec(whole.slice(at))?.[0].length ?? 0;
    const chain = whole.slice(0, at + rest).split(/\.\??/);
    return { chain, from: start + index, to: start + index + at + rest };
  }
  return undefined;
}

/** A function's lines for a hover. */
export function functionText(name: string): string | undefined {
  const macro = macros.find((each) => each.name === name);
  if (macro !== undefined) return macro.detail;
  const found = functions.filter((each) => each.name === name);
  if (found.length === 0) return roots.find((each) => each.name === name)?.detail;
  const line = ({ doc, examples }: (typeof functions)[number]): string => {
    const [[expression, shown] = []] = examples;
    return expression === undefined ? doc : `${doc}\n\n\`${expression}\` is \`${shown}\``;
  };
  return found.map(line).join("\n\n");
}

/** The part of a compiled condition for a chain of names, or for a call of its last name. */
export function coreAt(
  { tools }: PolicySet,
  file: string,
  word: { readonly from: number; readonly to: number },
): Core | undefined {
  const isIt = ({ op, span }: Core): boolean =>
    span.file.name === file &&
    span.from === word.from &&
    (span.to === word.to || (span.to > word.to && ["call", "fold", "has"].includes(op)));
  const routes = [...tools.values()].flatMap((plan) => plan.routes);
  const conditions = routes.flatMap(({ presence, requires, rules }) => [...presence, ...requires, ...rules]);
  const found = conditions.flatMap(({ when }) => [...walk(when)].filter(isIt));
  return found.toSorted((a, b) => a.span.to - b.span.to)[0];
}

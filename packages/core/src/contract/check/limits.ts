import { didYouMean } from "../../wire/mod.ts";
import type { Report } from "../text/diagnostic.ts";
import { documentKeys } from "../text/document-keys.ts";
import { compare, isExact, type Exact } from "../value/rational.ts";
import { boolean, join, listType, number, size, string, typeText, type Type } from "../value/type.ts";
import { isList, show, type Value } from "../value/value.ts";
import { toJson, type YamlMap, type YamlNode } from "../text/yaml.ts";

/** The numbers, texts and lists that a mandate may set, with their values in force. */
export type Limits = ReadonlyMap<string, { readonly type: Type; readonly value: Value }>;

export interface LimitDeclaration {
  readonly value: Value;
  readonly min: Exact | undefined;
  readonly max: Exact | undefined;
}

/** Reads the declarations of a contract under `limits:`: a value, or `{ default, min, max }`. */
export function limitDeclarations(
  nodes: ReadonlyMap<string, YamlNode>,
  report: Report,
): ReadonlyMap<string, LimitDeclaration> {
  const found = new Map<string, LimitDeclaration>();
  for (const [name, node] of nodes) {
    const declaration =
      node.kind === "map"
        ? declare(node, report)
        : { value: readLimitValue(node, report), min: undefined, max: undefined };
    if (declaration?.value !== undefined) found.set(name, { ...declaration, value: declaration.value });
  }
  return found;
}

interface LimitDraft {
  readonly value: Value | undefined;
  readonly min: Exact | undefined;
  readonly max: Exact | undefined;
}

function declare(node: YamlMap, report: Report): LimitDraft | undefined {
  const unknown = [...node.entries].find(([name]) => !documentKeys.limit.includes(name));
  const fallback = node.entries.get("default")?.value;
  if (unknown !== undefined || fallback === undefined) {
    report.add("limit", unknown?.[1].key.span ?? node.span, "a limit is a value, or `{ default, min, max }`");
    return undefined;
  }
  const value = readLimitValue(fallback, report);
  const readBound = (name: string): Exact | undefined => {
    const entry = node.entries.get(name);
    if (entry === undefined) return undefined;
    const found = entry.value.kind === "scalar" ? entry.value.value : null;
    if (isExact(found) && isExact(value ?? null)) return found;
    report.add("limit", entry.value.span, `\`${name}\` is a number, for a limit that is a number`);
    return undefined;
  };
  const declared = { value, min: readBound("min"), max: readBound("max") };
  const problem = value === undefined ? undefined : outside(value, declared);
  if (problem !== undefined) report.add("limit", fallback.span, `the default ${problem}`);
  return declared;
}

/** The declared values, replaced by the mandate's values if it sets them. */
export function limitValues(
  declared: ReadonlyMap<string, LimitDeclaration>,
  settings: YamlMap | undefined,
  report: Report,
): Limits {
  const values = new Map([...declared].map(([name, { value }]) => [name, { type: limitType(value), value }]));
  for (const [name, { key, value: node }] of settings?.entries ?? []) {
    const declaration = declared.get(name);
    if (declaration === undefined) {
      const hint = didYouMean(name, declared.keys(), undefined);
      report.add("unknown-limit", key.span, `the contract has no limit \`${name}\``, hint);
      continue;
    }
    const value = readLimitValue(node, report);
    if (value === undefined) continue;
    const type = limitType(declaration.value);
    const problem = sameKind(type, limitType(value))
      ? outside(value, declaration)
      : `must be ${typeText(type)}, as the contract declares it`;
    if (problem === undefined) values.set(name, { type: limitType(value), value });
    else report.add("limit", node.span, `\`${name}\` ${problem}`);
  }
  return values;
}

function sameKind(a: Type, b: Type): boolean {
  if (a.kind !== "list" || b.kind !== "list") return a.kind === b.kind;
  return a.of.kind === b.of.kind || a.maxItems === 0 || b.maxItems === 0;
}

function outside(value: Value, { min, max }: Pick<LimitDeclaration, "min" | "max">): string | undefined {
  if (!isExact(value)) return undefined;
  if (min !== undefined && compare(value, min) < 0) return `is below the contract's minimum, ${show(min)}`;
  if (max !== undefined && compare(value, max) > 0) return `is above the contract's maximum, ${show(max)}`;
  return undefined;
}

function readLimitValue(node: YamlNode, report: Report): Value | undefined {
  const items = node.kind === "list" ? node.items : [node];
  const kinds = new Set(
    items.map((item) =>
      item.kind !== "scalar" || item.value === null ? "none" : isExact(item.value) ? "number" : typeof item.value,
    ),
  );
  if (!kinds.has("none") && kinds.size <= 1) return toJson(node);
  report.add("limit", node.span, "a limit is a number, a text, true or false, or a list of values of one type");
  return undefined;
}

function limitType(value: Value): Type {
  if (isExact(value)) return compare(value, 0) >= 0 ? size : number;
  if (isList(value)) {
    const of = value.map(limitType).reduce<Type | undefined>((a, b) => (a === undefined ? b : join(a, b)), undefined);
    return listType(of ?? string, value.length);
  }
  return typeof value === "boolean" ? boolean : string;
}

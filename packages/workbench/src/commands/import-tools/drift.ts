import type { PolicySet } from "../../../../readers/src/contract.ts";
import { spellValue } from "../../../../readers/src/ir.ts";
import { compareBounds, valuesOf } from "./bounds.ts";
import { asMap } from "./openapi.ts";
import type { Json, JsonObject } from "../../../../core/src/wire/mod.ts";
import type { Stub } from "./stubs.ts";
import { toSubset } from "./subset.ts";

/**
 * The differences between a source and the contract in force. A contract may narrow the source without being reported.
 */
export interface Drift {
  /** Tools that the contract does not list. */
  readonly added: readonly string[];
  /** Tools of the contract that the source could have, and does not. */
  readonly gone: readonly string[];
  readonly changed: readonly { readonly tool: string; readonly members: readonly SchemaChange[] }[];
}

export interface SchemaChange {
  /** In the spelling of conditions: `input.to[]`. */
  readonly at: string;
  readonly what: string;
}

/**
 * Compares a source with contracts.
 *
 * @param isOfSource whether a tool of this name would be one of the source: contracts also list tools of others
 */
export function driftOf(
  stubs: readonly Stub[],
  { tools, aliases }: PolicySet,
  isOfSource: (name: string) => boolean = () => true,
): Drift {
  const ownName = (name: string): string => aliases.get(name) ?? name;
  const names = new Set(stubs.map(({ name }) => ownName(name)));
  return {
    added: stubs.flatMap(({ name }) => (tools.has(ownName(name)) ? [] : [name])),
    gone: [...tools.keys()].filter((name) => !names.has(name) && isOfSource(name)),
    changed: stubs.flatMap(({ name, input }) => {
      const schemas = tools.get(ownName(name))?.routes.map((route) => route.schemas.input) ?? [];
      const members = schemas.flatMap((schema) =>
        schema === undefined ? [] : changes(input, toSubset(schema).schema, "input"),
      );
      const distinct = new Map(members.map((change) => [`${change.at} ${change.what}`, change]));
      return distinct.size === 0 ? [] : [{ tool: name, members: [...distinct.values()] }];
    }),
  };
}

/** The parts of the source that the contract does not respect: members, types, and bounds that are wider there. */
function changes(source: Json, contract: Json, at: string): readonly SchemaChange[] {
  const theirs = asMap(source);
  const ours = asMap(contract);
  if (theirs.has("anyOf") || ours.has("anyOf")) {
    const isSame = spellValue(source) === spellValue(contract);
    return isSame || theirs.size === 0 ? [] : [{ at, what: "its alternatives differ" }];
  }
  return [
    ...typeChanges(theirs, ours, at),
    ...compareBounds(theirs, ours).map((what) => ({ at, what })),
    ...memberChanges(theirs, ours, at),
    ...(theirs.has("items") || ours.has("items")
      ? changes(theirs.get("items") ?? new Map(), ours.get("items") ?? new Map(), `${at}[]`)
      : []),
  ];
}

function typeChanges(theirs: JsonObject, ours: JsonObject, at: string): readonly SchemaChange[] {
  const wide = typesOf(theirs);
  const narrow = typesOf(ours);
  if (wide.length === 0 || valuesOf(ours) !== undefined) return [];
  const isWider =
    narrow.length === 0 ||
    narrow.some((type) => !wide.includes(type) && !(type === "integer" && wide.includes("number")));
  const said = narrow.length === 0 ? "anything" : narrow.join(" or ");
  return isWider ? [{ at, what: `it is ${wide.join(" or ")} in the source, ${said} in the contract` }] : [];
}

function memberChanges(theirs: JsonObject, ours: JsonObject, at: string): readonly SchemaChange[] {
  const declared = asMap(theirs.get("properties"));
  const known = asMap(ours.get("properties"));
  const added = [...declared.keys()].filter((name) => !known.has(name));
  const gone = [...known.keys()].filter((name) => !declared.has(name) && theirs.get("additionalProperties") === false);
  const wanted = listRequiredMembers(theirs).filter(
    (name) => known.has(name) && !listRequiredMembers(ours).includes(name),
  );
  const eased = listRequiredMembers(ours).filter(
    (name) => declared.has(name) && !listRequiredMembers(theirs).includes(name),
  );
  const both = [...declared].flatMap(([name, schema]) => {
    const other = known.get(name);
    return other === undefined ? [] : changes(schema, other, `${at}.${name}`);
  });
  return [
    ...added.map((name) => ({ at: `${at}.${name}`, what: "the contract does not declare it" })),
    ...gone.map((name) => ({ at: `${at}.${name}`, what: "the source no longer has it" })),
    ...wanted.map((name) => ({ at: `${at}.${name}`, what: "the source requires it, the contract does not" })),
    ...eased.map((name) => ({ at: `${at}.${name}`, what: "the contract requires it, the source does not" })),
    ...both,
  ];
}

function typesOf(schema: JsonObject): readonly string[] {
  const type = schema.get("type");
  return (Array.isArray(type) ? (type as readonly Json[]) : type === undefined ? [] : [type]).map(String);
}

function listRequiredMembers(schema: JsonObject): readonly string[] {
  const required = schema.get("required");
  return (Array.isArray(required) ? (required as readonly Json[]) : []).map(String);
}

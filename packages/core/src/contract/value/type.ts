/** The static type of a value: from the JSON Schemas, and from the expressions over them. */
export type Type =
  | { readonly kind: "boolean" | "string" | "null" | "duration" | "timestamp" }
  /** `notNegative`: the schema, or arithmetic over such numbers, proves it. */
  | { readonly kind: "number"; readonly notNegative: boolean }
  | { readonly kind: "list"; readonly of: Type; readonly maxItems: number | undefined }
  | RecordType
  /** The value or JSON null. */
  | { readonly kind: "nullable"; readonly of: Type }
  /** Written `.?name`: the value or nothing. */
  | { readonly kind: "optional"; readonly of: Type }
  /** The values that a counter remembers: only `in` may read them. */
  | { readonly kind: "memory" }
  /** Nothing is declared: only `==`, `in` and `has` may read it. */
  | { readonly kind: "any" }
  /** The type of a part with a reported error: suppresses further reports about it. */
  | { readonly kind: "broken" };

export interface RecordType {
  readonly kind: "record";
  readonly fields: ReadonlyMap<string, Field>;
  /** The type of every undeclared member, if the schema gives one. */
  readonly others: Type | undefined;
  /** Values may have undeclared members of any type; no condition reads them. */
  readonly open: boolean;
}

export interface Field {
  readonly type: Type;
  readonly required: boolean;
}

export const boolean: Type = { kind: "boolean" };
export const string: Type = { kind: "string" };
export const number: Type = { kind: "number", notNegative: false };
export const size: Type = { kind: "number", notNegative: true };
export const memory: Type = { kind: "memory" };
export const any: Type = { kind: "any" };
export const broken: Type = { kind: "broken" };

export function listType(of: Type, maxItems?: number): Type {
  return { kind: "list", of, maxItems };
}

/** A type as a message names it. */
export function typeText(type: Type): string {
  switch (type.kind) {
    case "boolean":
    case "string":
    case "number":
      return `a ${type.kind === "string" ? "text" : type.kind}`;
    case "duration":
    case "timestamp":
      return `a ${type.kind}`;
    case "null":
      return "null";
    case "list":
      return type.of.kind === "any" || type.of.kind === "broken" ? "a list" : `a list of ${plural(type.of)}`;
    case "record":
      return "an object";
    case "nullable":
      return `${typeText(type.of)} or null`;
    case "optional":
      return `an optional (${typeText(type.of)} or nothing)`;
    case "memory":
      return "the values of a counter";
    case "any":
      return "a value without a declared type";
    case "broken":
      return "an expression with an error";
    default:
      return type satisfies never;
  }
}

function plural(type: Type): string {
  switch (type.kind) {
    case "string":
      return "texts";
    case "list":
      return "lists";
    case "record":
      return "objects";
    case "nullable":
      return `${plural(type.of)} or nulls`;
    case "boolean":
    case "number":
    case "duration":
    case "timestamp":
    case "null":
      return `${type.kind}s`;
    default:
      return "values";
  }
}

/** Could a value of one type equal a value of the other? */
export function comparable(a: Type, b: Type): boolean {
  if (isUntyped(a) || isUntyped(b)) return true;
  if (a.kind === "nullable") return b.kind === "null" || comparable(a.of, b);
  if (b.kind === "nullable") return comparable(b, a);
  if (a.kind === "list" && b.kind === "list") return a.maxItems === 0 || b.maxItems === 0 || comparable(a.of, b.of);
  return a.kind === b.kind && a.kind !== "optional" && a.kind !== "memory";
}

/** The common type of a value that has one of two types; undefined if they have nothing in common. */
export function join(a: Type, b: Type): Type | undefined {
  if (a.kind === "broken" || b.kind === "broken") return broken;
  if (a.kind === "any" || b.kind === "any") return any;
  if (a.kind === "number" && b.kind === "number") return a.notNegative ? b : a;
  if (a.kind === "null" && b.kind === "null") return a;
  if (a.kind === "null") return b.kind === "nullable" ? b : { kind: "nullable", of: b };
  if (b.kind === "null") return join(b, a);
  if (a.kind === "nullable" || b.kind === "nullable") {
    const of = join(a.kind === "nullable" ? a.of : a, b.kind === "nullable" ? b.of : b);
    return of === undefined ? undefined : { kind: "nullable", of };
  }
  if (a.kind === "list" && b.kind === "list") return joinLists(a, b);
  if (a.kind === "record" && b.kind === "record") return joinRecords(a, b);
  if (a.kind === "optional" && b.kind === "optional") {
    const of = join(a.of, b.of);
    return of === undefined ? undefined : { kind: "optional", of };
  }
  return a.kind === b.kind ? a : undefined;
}

/** The common type of a value that has one of several types. */
export function joinAll(types: readonly Type[]): Type | undefined {
  return types.reduce<Type | undefined>((joined, type) => joined && join(joined, type), types[0] ?? broken);
}

export type ListType = Type & { readonly kind: "list" };

function joinLists(a: ListType, b: ListType): Type {
  // An empty list has any type: `input.?names.orValue([])` stays a list of texts.
  if (a.maxItems === 0) return b;
  if (b.maxItems === 0) return a;
  const bounded = a.maxItems !== undefined && b.maxItems !== undefined;
  return listType(join(a.of, b.of) ?? any, bounded ? Math.max(a.maxItems, b.maxItems) : undefined);
}

/** The properties that both types share: a member is required if both require it, and typed if both agree. */
function joinRecords(a: RecordType, b: RecordType): Type {
  const fields = new Map<string, Field>();
  for (const name of new Set([...a.fields.keys(), ...b.fields.keys()])) {
    const [left, right] = [memberType(a, name), memberType(b, name)];
    const type = left === undefined || right === undefined ? (left ?? right) : join(left, right);
    const required = a.fields.get(name)?.required === true && b.fields.get(name)?.required === true;
    fields.set(name, { type: type ?? any, required });
  }
  const others = a.others === undefined || b.others === undefined ? undefined : join(a.others, b.others);
  const open = a.open || b.open || (others === undefined && (a.others ?? b.others) !== undefined);
  return { kind: "record", fields, others, open };
}

/** The type of a member if it is present; undefined if it never is. */
function memberType({ fields, others, open }: RecordType, name: string): Type | undefined {
  return fields.get(name)?.type ?? others ?? (open ? any : undefined);
}

export function isUntyped(type: Type): boolean {
  return type.kind === "any" || type.kind === "broken";
}

/** A record whose members are all present: the result of a parser. */
export function recordType(fields: Readonly<Record<string, Type>>): RecordType {
  const entries = Object.entries(fields).map(([name, type]) => [name, { type, required: true }] as const);
  return { kind: "record", fields: new Map(entries), others: undefined, open: false };
}

/** May a counter use values of the type in `per`, or remember them? */
export function isKey({ kind }: Type): boolean {
  return kind === "string" || kind === "number" || kind === "boolean";
}

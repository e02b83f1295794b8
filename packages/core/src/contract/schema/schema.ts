import { Decimal, misreadAs, typeName, type Json, type JsonObject } from "../../wire/mod.ts";
import { compare, exactText, isExact, isInteger, remainder, type Exact } from "../value/rational.ts";
import type { Type } from "../value/type.ts";
import { equals, isList, show } from "../value/value.ts";

/** How a value differs from its schema, for a reason: the member, the expected value, and the value found. */
export interface Mismatch {
  readonly path: readonly (string | number)[];
  readonly expected: string;
  readonly found: string;
}

/** Undefined if the value matches the schema. Total: never throws. */
export type Validator = (value: Json) => Mismatch | undefined;

/** A compiled JSON Schema: the values that it accepts, and the properties on which a condition may rely. */
export interface Schema {
  readonly type: Type;
  readonly validate: Validator;
}

export function mismatch(expected: string, value: Json): Mismatch {
  return {
    path: [],
    expected,
    found: typeof value === "object" && value !== null && !isExact(value) ? typeName(value) : show(value),
  };
}

function inside(step: string | number, problem: Mismatch): Mismatch {
  return { ...problem, path: [step, ...problem.path] };
}

/** A mismatch as a clause: `input.lines[2].amount must be above 0, not -1`. */
export function mismatchText(root: string, { path, expected, found }: Mismatch): string {
  const steps = path.map((step) => {
    if (typeof step === "number") return `[${step}]`;
    return /^[A-Za-z_]\w{0,63}$/.test(step) ? `.${step}` : `[${show(step)}]`;
  });
  return `${root}${steps.join("")} ${expected}${found === "" ? "" : `, not ${found}`}`;
}

export const jsonTypes = ["object", "array", "string", "number", "integer", "boolean", "null"] as const;
export type JsonType = (typeof jsonTypes)[number];

export function isOfType(type: JsonType, value: Json): boolean {
  switch (type) {
    case "object":
      return value instanceof Map;
    case "array":
      return Array.isArray(value);
    case "string":
      return typeof value === "string";
    case "boolean":
      return typeof value === "boolean";
    case "null":
      return value === null;
    case "number":
      return isExact(value);
    case "integer":
      return isExact(value) && isInteger(value);
    default:
      return type satisfies never;
  }
}

export function typesValidator(types: readonly JsonType[]): Validator {
  const [only] = types;
  const expected = `must be ${types.map((type) => articles[type]).join(" or ")}`;
  if (types.length === 1 && only !== undefined) {
    return (value) => (isOfType(only, value) ? undefined : mismatch(expected, value));
  }
  return (value) => (types.some((type) => isOfType(type, value)) ? undefined : mismatch(expected, value));
}

const articles: Readonly<Record<JsonType, string>> = {
  object: "an object",
  array: "a list",
  string: "a text",
  number: "a number",
  integer: "a whole number",
  boolean: "true or false",
  null: "null",
};

export interface ObjectShape {
  readonly properties: ReadonlyMap<string, Validator>;
  readonly required: readonly string[];
  /** Validates undeclared members; undefined if none are allowed. */
  readonly others: Validator | undefined;
}

export function objectValidator({ properties, required, others }: ObjectShape): Validator {
  return (value) => {
    if (!(value instanceof Map)) return undefined;
    const members: JsonObject = value;
    for (const name of required) {
      if (!members.has(name)) return { path: [name], expected: "is missing", found: "" };
    }
    for (const [name, member] of members) {
      const validate = properties.get(name) ?? others;
      if (validate === undefined)
        return { path: [name], expected: "is not a member that this tool accepts", found: "" };
      const problem = validate(member);
      if (problem !== undefined) return inside(name, problem);
    }
    return undefined;
  };
}

export function itemsValidator(validate: Validator): Validator {
  return (value) => {
    if (!isList(value)) return undefined;
    for (let at = 0; at < value.length; at += 1) {
      const problem = validate(value[at] as Json);
      if (problem !== undefined) return inside(at, problem);
    }
    return undefined;
  };
}

export function uniqueValidator(value: Json): Mismatch | undefined {
  if (!isList(value)) return undefined;
  const seen = new Set<string>();
  for (const item of value) {
    const key = scalarKey(item) ?? show(item);
    if (seen.has(key)) return { path: [], expected: "must not contain the same item twice", found: show(item) };
    seen.add(key);
  }
  return undefined;
}

const shownMax = 8;

/** `const` and `enum`. Single values are looked up, so that a long list costs no more than a short one. */
export function oneOfValues(values: readonly Json[]): Validator {
  const shown = values.slice(0, shownMax).map(show).join(", ");
  const more = values.length > shownMax ? ", …" : "";
  const expected = values.length === 1 ? `must be ${shown}` : `must be one of ${shown}${more}`;
  const [only] = values;
  if (values.length === 1 && typeof only === "string") {
    return (value) => (value === only ? undefined : mismatch(expected, value));
  }
  const single = new Set(values.map(scalarKey));
  const nested = values.filter((value) => scalarKey(value) === undefined);
  return (value) => {
    const key = scalarKey(value);
    const found = key === undefined ? nested.some((allowed) => equals(allowed, value)) : single.has(key);
    return found ? undefined : mismatch(expected, value);
  };
}

/** A text that is equal only for equal values; undefined for arrays and objects. */
function scalarKey(value: Json): string | undefined {
  if (typeof value === "string") return `s${value}`;
  if (isExact(value)) return `n${exactText(value)}`;
  return typeof value === "object" && value !== null ? undefined : String(value);
}

/** `keyword` of JSON Schema 2020-12 (validation, section 6) with a number as its value. */
export function boundValidator(keyword: string, bound: Exact): Validator | undefined {
  const limit = show(bound);
  const count = Number(limit);
  switch (keyword) {
    case "minimum":
      return onNumber(`at least ${limit}`, (value) => compare(value, bound) >= 0);
    case "maximum":
      return onNumber(`at most ${limit}`, (value) => compare(value, bound) <= 0);
    case "exclusiveMinimum":
      return onNumber(`above ${limit}`, (value) => compare(value, bound) > 0);
    case "exclusiveMaximum":
      return onNumber(`below ${limit}`, (value) => compare(value, bound) < 0);
    case "multipleOf":
      return onNumber(`a multiple of ${limit}`, (value) => compare(remainder(value, bound), 0) === 0);
    case "minLength":
      return onText(`at least ${limit} characters long`, (text) => codePoints(text, count) >= count);
    case "maxLength":
      return onText(
        `at most ${limit} characters long`,
        (text) => text.length <= count || codePoints(text, count) <= count,
      );
    case "minItems":
      return onList(`at least ${limit} items`, (length) => length >= count);
    case "maxItems":
      return onList(`at most ${limit} items`, (length) => length <= count);
    default:
      return undefined;
  }
}

function onNumber(expected: string, isValid: (value: Exact) => boolean): Validator {
  return (value) => (isExact(value) && !isValid(value) ? mismatch(`must be ${expected}`, value) : undefined);
}

function onText(expected: string, isValid: (text: string) => boolean): Validator {
  return (value) => (typeof value === "string" && !isValid(value) ? mismatch(`must be ${expected}`, value) : undefined);
}

function onList(expected: string, isValid: (length: number) => boolean): Validator {
  return (value) =>
    isList(value) && !isValid(value.length)
      ? { path: [], expected: `must have ${expected}`, found: `${value.length}` }
      : undefined;
}

/** The length in code points; for a much longer text than needed, a lower bound that is enough for the comparison. */
function codePoints(text: string, enough: number): number {
  if (text.length > 2 * enough + 2) return text.length / 2;
  return Array.from(text).length;
}

/** All of these validators; the first problem counts. */
export function every(validators: readonly Validator[]): Validator {
  const [first, second] = validators;
  if (first === undefined) return () => undefined;
  if (second === undefined) return first;
  if (validators.length === 2) return (value) => first(value) ?? second(value);
  return (value) => {
    for (const validate of validators) {
      const problem = validate(value);
      if (problem !== undefined) return problem;
    }
    return undefined;
  };
}

/** Accepts what the validator accepts, if a program that reads IEEE doubles reads every number of it unchanged. */
export function onlyDoubles(validate: Validator): Validator {
  return (value) => validate(value) ?? misreadNumber(value);
}

function misreadNumber(value: Json): Mismatch | undefined {
  if (value instanceof Decimal) {
    const read = misreadAs(value);
    if (read === undefined) return undefined;
    return { path: [], expected: `is ${show(value)}, which programs may read as ${read}`, found: "" };
  }
  if (typeof value !== "object" || value === null) return undefined;
  const members = value instanceof Map ? (value as JsonObject) : (value as readonly Json[]);
  for (const [step, member] of members.entries()) {
    const problem = misreadNumber(member);
    if (problem !== undefined) return inside(step, problem);
  }
  return undefined;
}

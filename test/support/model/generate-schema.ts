import type { Chance } from "./chance.ts";
import type { Json, JsonObject, Schema } from "./language.ts";

/** The texts and numbers are few, so that comparisons, keys and lists often match. */
export const texts = ["a", "b", "abc", "ABC", "bc", "", "é", "\u{1d538}z", "\uffee", "red", "1", "true"] as const;
export const numbers = ["0", "1", "2", "3", "5", "10", "0.1", "0.5", "1.5", "2.25", "7", "-1", "-2.5"] as const;
const counts = ["0", "1", "2", "3", "5", "10", "0.1", "0.5", "2.25", "1.0", "1e1", "10e-1"] as const;
const oddNumbers = ["1.0", "1e0", "10e-1", "-0", "-0.0", "9007199254740993", "0.30000000000000004", "1e400", "1e-400"];

export const colours = ["red", "green", "abc"];

/** Returns a schema for a member. The name decides its kind, so that one name has one kind everywhere. */
const kinds: readonly (readonly [string, (chance: Chance) => Schema])[] = [
  [
    "amount",
    (chance) => ({ types: ["number"], ...(chance.often(0.5) ? { minimum: "0" } : { exclusiveMinimum: "0" }) }),
  ],
  ["units", (chance) => ({ types: ["integer"], minimum: "0", ...(chance.often(0.5) ? { maximum: "10" } : {}) })],
  ["delta", (chance) => ({ types: ["number"], ...(chance.often(0.3) ? { exclusiveMaximum: "8" } : {}) })],
  ["step", () => ({ types: ["number"], multipleOf: "0.5" })],
  ["name", (chance) => ({ types: ["string"], ...(chance.often(0.4) ? { maxLength: 3 } : {}) })],
  ["note", (chance) => ({ types: ["string"], ...(chance.often(0.3) ? { minLength: 1 } : {}) })],
  ["urgent", () => ({ types: ["boolean"] })],
  ["colour", () => ({ types: [], oneOf: colours })],
  ["currency", () => ({ types: [], constant: "abc" })],
  ["prices", (chance) => ({ types: ["array"], items: { types: ["number"] }, maxItems: chance.whole(2, 4) })],
  [
    "people",
    (chance) => ({
      types: ["array"],
      items: { types: ["string"] },
      maxItems: 4,
      ...(chance.often(0.3) ? { minItems: 1 } : {}),
      ...(chance.often(0.3) ? { uniqueItems: true, items: { types: ["string"], maxLength: 8 } } : {}),
    }),
  ],
  ["maybe", () => ({ types: ["number", "null"] })],
  ["label", () => ({ types: ["string", "null"] })],
  ["anything", () => ({ types: [] })],
  [
    "place",
    () => ({
      types: ["object"],
      additional: false,
      required: ["city"],
      properties: [
        ["city", { types: ["string"] }],
        ["floor", { types: ["number"] }],
      ],
    }),
  ],
  ["tally", () => ({ types: ["object"], additional: { types: ["number"] } })],
];

/** The members that a thing may have, with the schema that every contract uses. */
export type Members = readonly (readonly [string, Schema])[];

export function members(chance: Chance): Members {
  return kinds.map(([name, make]) => [name, make(chance)] as const);
}

export function recordOf(chance: Chance, known: Members, additional: boolean | undefined): Schema {
  const properties = chance.some(known, 0.4);
  const required = chance.some(properties, 0.6).map(([name]) => name);
  return { types: ["object"], ...(additional === undefined ? {} : { additional }), required, properties };
}

/** Returns a value that meets the schema, except for a random share of numbers and texts. */
export function valueFor(chance: Chance, schema: Schema): Json {
  if (schema.constant !== undefined) return schema.constant;
  if (schema.oneOf !== undefined) return chance.pick(schema.oneOf);
  if (schema.types.length === 0) return anything(chance);
  const type = chance.pick(schema.types);
  switch (type) {
    case "null":
      return null;
    case "boolean":
      return chance.often(0.5);
    case "string":
      return textFor(chance, schema);
    case "number":
    case "integer":
      return { num: numberFor(chance, schema, type === "integer") };
    case "array":
      return chance.many(schema.minItems ?? 0, schema.maxItems ?? 3, () =>
        valueFor(chance, schema.items ?? { types: [] }),
      );
    default:
      return objectFor(chance, schema);
  }
}

function textFor(chance: Chance, { minLength = 0, maxLength = Infinity }: Schema): string {
  if (maxLength === Infinity && chance.often(0.04)) return "x".repeat(chance.pick([300, 16_384, 16_385]));
  return chance.pick(
    texts.filter((text) => Array.from(text).length >= minLength && Array.from(text).length <= maxLength),
  );
}

function numberFor(chance: Chance, schema: Schema, isInteger: boolean): string {
  if (chance.often(0.05)) return chance.pick(oddNumbers);
  if (isInteger) return chance.pick(["0", "1", "2", "3", "5", "10", "1.0", "1e1"]);
  if (schema.multipleOf !== undefined) return chance.pick(["0", "0.5", "1", "2.5", "-1.5"]);
  if (schema.minimum !== undefined) return chance.pick(counts);
  if (schema.exclusiveMinimum !== undefined) return chance.pick(counts.slice(1));
  return chance.pick(numbers);
}

function anything(chance: Chance): Json {
  return chance.pick<Json>([null, true, { num: "1" }, { num: "1.0" }, "a", ["a"], [{ num: "1" }], { obj: [] }]);
}

export function objectFor(chance: Chance, { properties = [], required = [], additional }: Schema): JsonObject {
  const present = properties.filter(([name]) => required.includes(name) || chance.often(0.6));
  const known = present.map(([name, schema]) => [name, valueFor(chance, schema)] as const);
  if (typeof additional !== "object") return { obj: known };
  const others = chance.some(["k", "city", "other"], 0.5);
  return { obj: [...known, ...others.map((name) => [name, valueFor(chance, additional)] as const)] };
}

/** Returns the same object with one fault. */
export function damaged(chance: Chance, { obj }: JsonObject): JsonObject {
  const at = chance.whole(0, Math.max(0, obj.length - 1));
  return chance.way<JsonObject>([
    [2, () => ({ obj: obj.filter((_, index) => index !== at) })],
    [1, () => ({ obj: [...obj, ["stranger", { num: "1" }]] })],
    [
      3,
      () => ({ obj: obj.map(([name, value], index) => [name, index === at ? other(chance, value) : value] as const) }),
    ],
  ]);
}

function other(chance: Chance, value: Json): Json {
  if (typeof value === "object" && value !== null && "num" in value)
    return chance.pick<Json>(["1", { num: "-3" }, { num: "0.3" }, { num: "11" }, { num: "0" }, null]);
  if (typeof value === "string") return chance.pick<Json>([{ num: "1" }, "a long text", "", null, true]);
  return chance.pick<Json>([{ num: "1" }, "a", null, [], { obj: [] }, ["a", "a"], [{ num: "1" }, "a"]]);
}

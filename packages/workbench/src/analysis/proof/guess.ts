import { show, type Value } from "../../../../readers/src/contract.ts";
import { isExact, isList, spellValue, walk, type Core, type ToolPlan } from "../../../../readers/src/ir.ts";
import type { Json, JsonObject } from "../../../../core/src/wire/mod.ts";
import { isJsonList, isObject, shapeOf } from "../formula/shapes.ts";
import { objectText, type SampleCall } from "./call.ts";

/** Values in conditions and schemas: differences occur at these values or next to them. */
interface Pool {
  readonly texts: readonly string[];
  readonly numbers: readonly string[];
}

/** Creates calls of a tool from the values that its plans compare with. The same for the same seed. */
export class Guesser {
  readonly #plans: readonly ToolPlan[];
  readonly #pool: Pool;
  readonly #counters: readonly string[];
  #state: number;

  constructor(plans: readonly ToolPlan[], seed: number) {
    this.#plans = plans;
    this.#pool = poolOf(plans);
    const readers = plans.flatMap((plan) => [...plan.readers]);
    const isRedefined = (name: string): boolean =>
      new Set(readers.filter(([other]) => other === name).map(([, { counter }]) => counter.identity)).size > 1;
    this.#counters = [...new Set(readers.map(([name, { counter }]) => (isRedefined(name) ? name : counter.identity)))];
    this.#state = seed;
  }

  next(): SampleCall {
    const [first, ...others] = this.#plans;
    const routes = this.#plans.flatMap((plan) => plan.routes);
    const inputs = routes.flatMap(({ schemas }) => schemas.input ?? []);
    const platforms = routes.flatMap(({ schemas }) => schemas.platform ?? []);
    return {
      tool: first?.tool ?? others[0]?.tool ?? "",
      input: this.#object(inputs),
      platform: this.#often(0.9) ? this.#object(platforms) : null,
      hasSession: this.#often(0.8),
      now: this.#now(),
      counters: new Map(this.#counters.map((key) => [key, this.#count()])),
    };
  }

  #count(): string {
    return this.#often(0.5) ? "0" : (this.#pick(this.#pool.numbers.filter((number) => /^[0-9]+$/.test(number))) ?? "0");
  }

  /** mulberry32 */
  #chance(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  #often(share: number): boolean {
    return this.#chance() < share;
  }

  #pick<Item>(items: readonly Item[]): Item | undefined {
    return items[Math.floor(this.#chance() * items.length)];
  }

  #now(): number {
    const times = this.#pool.numbers.map(Number).filter((number) => number > 100_000_000 && number < 4_000_000_000);
    const seconds = this.#pick(times);
    return seconds === undefined ? 1_700_000_000_000 : Math.round(seconds * 1000);
  }

  /** An object that matches some of the schemas: it has the members of all of them. */
  #object(schemas: readonly Json[]): string {
    const members = new Map<string, string>();
    for (const schema of schemas) {
      for (const [name, text] of this.#members(schemaOf(schema, schema), schema))
        if (!members.has(name)) members.set(name, text);
    }
    return objectText(members);
  }

  #members(schema: JsonObject, root: Json): ReadonlyMap<string, string> {
    const properties = schema.get("properties");
    const required = schema.get("required");
    const found = new Map<string, string>();
    for (const [name, each] of isObject(properties) ? properties : []) {
      const isRequired = isJsonList(required) && required.includes(name);
      if (isRequired ? !this.#often(0.02) : this.#often(0.6)) found.set(name, this.#value(each, root));
    }
    const additional = schema.get("additionalProperties");
    if (additional !== false && this.#often(0.1)) found.set("other", this.#value(additional ?? true, root));
    return found;
  }

  #value(schema: Json, root: Json): string {
    const part = schemaOf(schema, root);
    const branches = part.get("anyOf");
    if (isJsonList(branches)) return this.#value(this.#pick(branches) ?? true, root);
    const listed = part.get("enum");
    if (part.has("const")) return jsonText(part.get("const") ?? null);
    if (isJsonList(listed) && !this.#often(0.05)) return jsonText(this.#pick(listed) ?? null);
    const types = part.get("type");
    const type = isJsonList(types) ? this.#pick(types) : types;
    return this.#ofType(typeof type === "string" ? type : this.#pick(kinds), part, root);
  }

  #ofType(type: string | undefined, schema: JsonObject, root: Json): string {
    switch (type) {
      case "string":
        return JSON.stringify(this.#text());
      case "number":
      case "integer":
        return this.#pick(this.#pool.numbers) ?? "0";
      case "boolean":
        return String(this.#often(0.5));
      case "array": {
        const length = this.#pick([0, 1, 1, 2, 2, 3, 4]) ?? 0;
        return `[${Array.from({ length }, () => this.#value(schema.get("items") ?? true, root)).join(", ")}]`;
      }
      case "object":
        return objectText(this.#members(schema, root));
      default:
        return "null";
    }
  }

  #text(): string {
    const text = this.#pick(this.#pool.texts) ?? "";
    if (this.#often(0.7)) return text;
    const other = this.#pick(this.#pool.texts) ?? "";
    return (
      this.#pick([
        `${text}${other}`,
        `${text}x`,
        `x${text}`,
        text.toUpperCase(),
        text.slice(1),
        text.repeat(8),
        long,
      ]) ?? text
    );
  }
}

/** Longer than a counter's key may be. */
const long = "x".repeat(16_385);

const kinds = ["string", "number", "boolean", "null"];

function schemaOf(schema: Json, root: Json): JsonObject {
  return shapeOf(schema, root)?.schema ?? new Map();
}

function jsonText(value: Json): string {
  if (isExact(value)) return show(value);
  return spellValue(value);
}

/** The texts that the plans compare with. */
export function textsOf(plans: readonly ToolPlan[]): readonly string[] {
  return poolOf(plans).texts.filter((text) => text.length <= 200);
}

/** The values that the plans compare with, and their neighbours. */
function poolOf(plans: readonly ToolPlan[]): Pool {
  const [texts, numbers] = [
    new Set<string>(["", "a", "other text"]),
    new Set<string>(["0", "1", "-1", "0.5", "2", "3"]),
  ];
  const note = (value: Value): void => {
    if (typeof value === "string") texts.add(value);
    else if (isExact(value)) for (const text of beside(value)) numbers.add(text);
    else if (isList(value)) value.forEach(note);
    else if (value instanceof Map) for (const item of (value as ReadonlyMap<string, Value>).values()) note(item);
    else if (typeof value === "object" && value !== null && "seconds" in value) note(value.seconds);
  };
  for (const core of plans.flatMap(conditionsOf)) {
    for (const node of walk(core)) if (node.op === "constant") note(node.value);
  }
  for (const { schemas } of plans.flatMap((plan) => plan.routes))
    for (const schema of [schemas.input, schemas.platform]) note(schema ?? null);
  return { texts: [...texts].slice(0, 200), numbers: [...numbers].slice(0, 400) };
}

function beside(value: Value): readonly string[] {
  const text = show(value);
  const number = Number(text);
  if (!Number.isFinite(number) || Math.abs(number) > 1e12) return /[/…]/.test(text) ? [] : [text];
  return [text, ...[number + 1, number - 1, number + 0.5, number * 2].map((each) => String(Number(each.toFixed(6))))];
}

function conditionsOf({ routes }: ToolPlan): readonly Core[] {
  return routes.flatMap(({ presence, requires, rules }) =>
    [...presence, ...requires, ...rules].map(({ when }) => when),
  );
}

import {
  decimalText,
  Decimal,
  didYouMean,
  isVerdict,
  verdicts,
  type JsonObject,
  type Verdict,
} from "../../../core/src/wire/mod.ts";
import { toJson, type Report, type YamlMap, type YamlNode, type YamlScalar } from "../../../core/src/contract/mod.ts";
import { momentOf, pauseOf } from "../../../records/src/mod.ts";

/** Reads the members of one YAML map; problems go to the report with their position. */
export class Sheet {
  readonly map: YamlMap;
  readonly report: Report;
  readonly #what: string;

  /** @param what the map's name in messages: `a case` */
  constructor(map: YamlMap, what: string, report: Report) {
    this.map = map;
    this.report = report;
    this.#what = what;
  }

  /** @param what its name in messages, if the members show that the map is of another kind */
  checkKeys(names: readonly string[], what: string = this.#what): this {
    for (const [name, { key }] of this.map.entries) {
      if (names.includes(name)) continue;
      const hint = didYouMean(name, names, `${what} has ${names.join(", ")}`);
      this.report.add("unknown-key", key.span, `${what} has no \`${name}\``, hint);
    }
    return this;
  }

  /** Reports a problem of the whole map at its first character. */
  reportProblem(code: Parameters<Report["add"]>[0], message: string, hint?: string): void {
    const { span } = this.map;
    this.report.add(code, { ...span, to: span.from + 1 }, message, hint);
  }

  has(name: string): boolean {
    return this.map.entries.has(name);
  }

  node(name: string): YamlNode | undefined {
    return this.map.entries.get(name)?.value;
  }

  scalar(name: string): YamlScalar | undefined {
    const node = this.node(name);
    if (node === undefined || node.kind === "scalar") return node;
    this.report.add("shape", node.span, `\`${name}\` is a single value`);
    return undefined;
  }

  text(name: string): string | undefined {
    const scalar = this.scalar(name);
    if (scalar === undefined || (scalar.value !== null && scalar.text !== "")) return scalar?.text;
    this.report.add("shape", scalar.span, `\`${name}\` is a text`);
    return undefined;
  }

  /** Null is a value here: `session: null`. */
  textOrNull(name: string): string | null | undefined {
    return this.scalar(name)?.value === null ? null : this.text(name);
  }

  flag(name: string): boolean | undefined {
    const scalar = this.scalar(name);
    if (scalar === undefined || typeof scalar.value === "boolean") return scalar?.value as boolean | undefined;
    this.report.add("shape", scalar.span, `\`${name}\` is true or false`);
    return undefined;
  }

  oneOf<Name extends string>(name: string, what: string, names: readonly Name[]): Name | undefined {
    const scalar = this.scalar(name);
    const found = names.find((each) => each === scalar?.text);
    if (scalar === undefined || found !== undefined) return found;
    const hint = didYouMean(scalar.text, names, `it is one of ${names.join(", ")}`);
    this.report.add("unknown-name", scalar.span, `\`${scalar.text}\` is not a ${what}`, hint);
    return undefined;
  }

  verdict(name: string): Verdict | undefined {
    const scalar = this.scalar(name);
    if (scalar === undefined || isVerdict(scalar.text)) return scalar?.text as Verdict | undefined;
    const hint = didYouMean(scalar.text.toUpperCase(), verdicts, "verdicts are ALLOW, ESCALATE and BLOCK");
    this.report.add("verdict", scalar.span, `\`${scalar.text}\` is not a verdict`, hint);
    return undefined;
  }

  moment(name: string): number | undefined {
    return this.#time(name, momentOf, ["a time", 'such as "2026-01-15T12:00:00Z", in quotes']);
  }

  pause(name: string): number | undefined {
    return this.#time(name, pauseOf, ["a duration", "such as 90s, 10m, 1h30m or 7d"]);
  }

  #time(
    name: string,
    read: (text: string) => number | undefined,
    [what, hint]: readonly [string, string],
  ): number | undefined {
    const scalar = this.scalar(name);
    const time = scalar && read(scalar.text);
    if (scalar !== undefined && time === undefined)
      this.report.add("literal", scalar.span, `\`${name}\` is ${what}`, hint);
    return time;
  }

  /** The thing that a scalar names: one of those under the plural of `what`. */
  resolveName<Thing>(scalar: YamlScalar, what: string, known: ReadonlyMap<string, Thing>): Thing | undefined {
    const found = known.get(scalar.text);
    if (found !== undefined) return found;
    const hint = didYouMean(scalar.text, known.keys(), `name it under \`${what}s:\``);
    this.report.add("unknown-name", scalar.span, `no ${what} is called \`${scalar.text}\``, hint);
    return undefined;
  }

  object(node: YamlNode, name: string): JsonObject {
    const value = toJson(node);
    if (value instanceof Map) return value;
    this.report.add("shape", node.span, `\`${name}\` is a map of names to values`);
    return new Map();
  }

  texts(name: string): readonly YamlScalar[] {
    const node = this.node(name);
    const items = node === undefined ? [] : node.kind === "list" ? node.items : [node];
    return items.flatMap((item) => {
      if (item.kind === "scalar") return [item];
      this.report.add("shape", item.span, `\`${name}\` is a list of texts`);
      return [];
    });
  }

  items(name: string): readonly YamlNode[] {
    const node = this.node(name);
    if (node === undefined || node.kind === "list") return node?.items ?? [];
    this.report.add("shape", node.span, `\`${name}\` is a list`, "start each item with `- `");
    return [];
  }

  inner(name: string, what: string): Sheet | undefined {
    const node = this.node(name);
    return node === undefined ? undefined : sheetOf(node, what, this.report);
  }

  /** The members of a map from names to any values. */
  entries(name: string): readonly (readonly [string, YamlNode])[] {
    const inner = this.inner(name, `\`${name}\``);
    return inner === undefined ? [] : [...inner.map.entries].map(([key, { value }]) => [key, value] as const);
  }

  /** Decimals by name, in the shortest form. */
  decimals(name: string): ReadonlyMap<string, string> {
    return new Map(
      this.entries(name).flatMap(([key, node]) => {
        const decimal = this.#decimal(key, node);
        return decimal === undefined ? [] : [[key, decimal] as const];
      }),
    );
  }

  /** A decimal in the shortest form. */
  decimal(name: string): string | undefined {
    const node = this.node(name);
    return node === undefined ? undefined : this.#decimal(name, node);
  }

  #decimal(name: string, node: YamlNode): string | undefined {
    const decimal = node.kind === "scalar" ? decimalOf(node.value) : undefined;
    if (decimal === undefined) this.report.add("shape", node.span, `\`${name}\` is a number that is not negative`);
    return decimal;
  }
}

export function sheetOf(node: YamlNode, what: string, report: Report): Sheet | undefined {
  if (node.kind === "map") return new Sheet(node, what, report);
  report.add("shape", node.span, `${what} is a map of names to values`);
  return undefined;
}

function decimalOf(value: YamlScalar["value"]): string | undefined {
  if (typeof value === "number") return value >= 0 ? String(value) : undefined;
  if (!(value instanceof Decimal) || value.coefficient < 0n) return undefined;
  return decimalText(value.coefficient, value.exponent);
}

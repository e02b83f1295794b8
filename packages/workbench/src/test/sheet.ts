import { nearest, decimalText, Decimal } from "../../../core/src/wire/mod.ts";
import type { Report, YamlMap, YamlNode, YamlScalar } from "../../../core/src/contract/mod.ts";

/** Reads the members of one YAML map; problems go to the report with their place. */
export class Sheet {
  readonly map: YamlMap;
  readonly #report: Report;
  readonly #what: string;

  /** @param what the map's name in messages: `a case` */
  constructor(map: YamlMap, what: string, report: Report) {
    this.map = map;
    this.#report = report;
    this.#what = what;
  }

  /** @param what its name in messages, if the members show that the map is of another kind */
  known(names: readonly string[], what: string = this.#what): this {
    for (const [name, { key }] of this.map.entries) {
      if (names.includes(name)) continue;
      const near = nearest(name, names);
      const hint = near === undefined ? `${what} has ${names.join(", ")}` : `did you mean \`${near}\`?`;
      this.#report.add("unknown-key", key.span, `${what} has no \`${name}\``, hint);
    }
    return this;
  }

  /** Reports a problem of the whole map at its first character. */
  wrong(code: Parameters<Report["add"]>[0], message: string, hint?: string): void {
    const { span } = this.map;
    this.#report.add(code, { ...span, to: span.from + 1 }, message, hint);
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
    this.#report.add("shape", node.span, `\`${name}\` is a single value`);
    return undefined;
  }

  text(name: string): string | undefined {
    const scalar = this.scalar(name);
    if (scalar === undefined || (scalar.value !== null && scalar.text !== "")) return scalar?.text;
    this.#report.add("shape", scalar.span, `\`${name}\` is a text`);
    return undefined;
  }

  /** Null is a value here: `session: null`. */
  textOrNull(name: string): string | null | undefined {
    return this.scalar(name)?.value === null ? null : this.text(name);
  }

  flag(name: string): boolean | undefined {
    const scalar = this.scalar(name);
    if (scalar === undefined || typeof scalar.value === "boolean") return scalar?.value === true;
    this.#report.add("shape", scalar.span, `\`${name}\` is true or false`);
    return undefined;
  }

  texts(name: string): readonly YamlScalar[] {
    const node = this.node(name);
    const items = node === undefined ? [] : node.kind === "list" ? node.items : [node];
    return items.flatMap((item) => {
      if (item.kind === "scalar") return [item];
      this.#report.add("shape", item.span, `\`${name}\` is a list of texts`);
      return [];
    });
  }

  items(name: string): readonly YamlNode[] {
    const node = this.node(name);
    if (node === undefined || node.kind === "list") return node?.items ?? [];
    this.#report.add("shape", node.span, `\`${name}\` is a list`, "begin each item with `- `");
    return [];
  }

  inner(name: string, what: string): Sheet | undefined {
    const node = this.node(name);
    return node === undefined ? undefined : sheetOf(node, what, this.#report);
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
    if (decimal === undefined) this.#report.add("shape", node.span, `\`${name}\` is a number that is not negative`);
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

import { didYouMean, isVerdict, type Verdict } from "../../wire/mod.ts";
import type { Report, Span } from "./diagnostic.ts";
import { documentKeys } from "./document-keys.ts";
import type { WrittenExpression } from "./document.ts";
import { parseExpression, reserved } from "./parser.ts";
import { parseReason, type ReasonSyntax } from "./reason.ts";
import type { Syntax } from "./syntax.ts";
import { itemsOf, type YamlMap, type YamlNode, type YamlScalar } from "./yaml.ts";

/** Contract and rule are named on every receipt's leaf, which stays under 1 KiB. */
const nameCharactersMax = 64;
const namePattern = /^[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*$/;
const identifier = /^(?!(?:true|false|null|in)$)[A-Za-z_][A-Za-z0-9_]*$/;
/** Names that a `let:` cannot have: the roots, the words of `per:`, and CEL's reserved words. */
const taken = new Set([..."input platform limits counters tool session now key gate call".split(" "), ...reserved]);

/** Reads the members of the maps of a document, each in one shape. Members of another shape go to the report. */
export class PartReader {
  readonly report: Report;

  constructor(report: Report) {
    this.report = report;
  }

  asMap(node: YamlNode | undefined, what: string): YamlMap | undefined {
    if (node === undefined || node.kind === "map") return node;
    this.report.add("shape", node.span, `${what} is a map of names to values`);
    return undefined;
  }

  /** A map that has no other keys than these. */
  part(node: YamlNode | undefined, of: keyof typeof documentKeys, what: string): YamlMap | undefined {
    const map = this.asMap(node, what);
    const names = documentKeys[of];
    for (const [name, { key }] of map?.entries ?? []) {
      if (names.includes(name)) continue;
      const hint = didYouMean(name, names, `${what} has ${names.map((known) => `\`${known}\``).join(", ")}`);
      this.report.add("unknown-key", key.span, `${what} has no \`${name}\``, hint);
    }
    return map;
  }

  /** A map whose keys anyone may choose: its values as `read` returns them, without those that it cannot read. */
  readNamedParts<Part>(
    map: YamlMap,
    key: string,
    read: (node: YamlNode, span: Span, name: string) => Part | undefined,
    inConditions = true,
  ): ReadonlyMap<string, Part> {
    const found = new Map<string, Part>();
    const value = map.entries.get(key)?.value;
    if (value === undefined || (value.kind === "scalar" && value.value === null)) return found;
    for (const [name, entry] of this.asMap(value, `\`${key}\``)?.entries ?? []) {
      const { span } = entry.key;
      if (inConditions && !identifier.test(name))
        this.report.add("name", span, `\`${name}\` cannot be written in a condition`, "use letters, digits and `_`");
      const part = read(entry.value, span, name);
      if (part !== undefined) found.set(name, part);
    }
    return found;
  }

  text(map: YamlMap, key: string): YamlScalar | undefined {
    const value = map.entries.get(key)?.value;
    if (value === undefined || value.kind === "scalar") return value;
    this.report.add("shape", value.span, `\`${key}\` is a single text`);
    return undefined;
  }

  /** A text that must be there. */
  requireText(map: YamlMap, key: string, what: string): YamlScalar | undefined {
    if (!map.entries.has(key)) {
      const first = map.entries.values().next().value?.key.span ?? map.span;
      this.report.add("missing", first, `${what} has no \`${key}:\``);
    }
    return this.text(map, key);
  }

  flag(map: YamlMap, key: string): boolean {
    const scalar = this.text(map, key);
    if (scalar === undefined || typeof scalar.value === "boolean") return scalar?.value === true;
    this.report.add("shape", scalar.span, `\`${key}\` is true or false`);
    return false;
  }

  items(map: YamlMap, key: string): readonly YamlNode[] {
    const value = map.entries.get(key)?.value;
    if (value === undefined || value.kind === "list") return value?.items ?? [];
    this.report.add("shape", value.span, `\`${key}\` is a list`, "start each item with `- `");
    return [];
  }

  /** A list of texts, or one text alone. */
  texts(
    map: YamlMap,
    key: string,
    items: readonly YamlNode[] = itemsOf(map.entries.get(key)?.value),
  ): readonly YamlScalar[] {
    return items.flatMap((item) => {
      if (item.kind === "scalar") return [item];
      this.report.add("shape", item.span, `\`${key}\` is a list of texts`);
      return [];
    });
  }

  /** A list of texts; not one text alone. */
  readTextList(map: YamlMap, key: string): readonly YamlScalar[] {
    return this.texts(map, key, this.items(map, key));
  }

  name(map: YamlMap, key: string): YamlScalar | undefined {
    const value = this.text(map, key);
    if (value === undefined) {
      if (!map.entries.has(key))
        this.report.add("missing", { ...map.span, to: map.span.from + 1 }, `\`${key}:\` with its name is missing`);
    } else if (!namePattern.test(value.text) || value.text.length > nameCharactersMax) {
      this.report.add(
        "name",
        value.span,
        `\`${value.text.slice(0, nameCharactersMax)}\` is not a name`,
        `use lower-case letters, digits, \`-\` and \`_\`, such as \`over-budget\`; at most ${nameCharactersMax} characters`,
      );
    }
    return value;
  }

  readExpression({ span, text, offsets }: YamlScalar): WrittenExpression {
    return { text: text.trim(), syntax: parseExpression({ file: span.file, text, offsets }, this.report) };
  }

  lets(map: YamlMap): ReadonlyMap<string, Syntax> {
    return this.readNamedParts(map, "let", (node, span, name) => {
      const isExpression = node.kind === "scalar";
      if (!isExpression) this.report.add("shape", node.span, `\`${name}\` is an expression`);
      const syntax = isExpression ? this.readExpression(node).syntax : undefined;
      if (taken.has(name))
        this.report.add("shadowed-name", span, `\`${name}\` already has a meaning`, "choose another name");
      return syntax;
    });
  }

  reason(scalar: YamlScalar | undefined): ReasonSyntax | undefined {
    return scalar && parseReason(scalar, this.report);
  }

  verdict(scalar: YamlScalar | undefined): Verdict | undefined {
    if (scalar === undefined) return undefined;
    if (isVerdict(scalar.text)) return scalar.text;
    const hint = didYouMean(scalar.text, ["ALLOW", "BLOCK", "ESCALATE"], "verdicts are ALLOW, ESCALATE and BLOCK");
    this.report.add("verdict", scalar.span, `\`${scalar.text}\` is not a verdict`, hint);
    return undefined;
  }
}

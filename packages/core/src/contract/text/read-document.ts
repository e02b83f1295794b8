import { didYouMean, isVerdict, type Verdict } from "../../wire/mod.ts";
import { Report, type SourceFile, type Span } from "./diagnostic.ts";
import { documentKeys } from "./document-keys.ts";
import type {
  ApprovalDocument,
  GrantsDocument,
  ApprovalSettingsDocument,
  ContractDocument,
  CounterDocument,
  MandateDocument,
  MandateEntry,
  OutcomeDocument,
  RequireDocument,
  RuleDocument,
  ToolDocument,
  WrittenExpression,
} from "./document.ts";
import { parseExpression, reserved } from "./parser.ts";
import { parseReason, type ReasonSyntax } from "./reason.ts";
import type { Syntax } from "./syntax.ts";
import { checkToolName } from "./tool-name.ts";
import { findSlips, repair } from "./yaml-slips.ts";
import { readYaml, type Repaired, type YamlList, type YamlMap, type YamlNode, type YamlScalar } from "./yaml.ts";

/** Reads a contract's text. Problems go to the report; undefined only if nothing can be checked further. */
export function readContract(file: SourceFile, report: Report): ContractDocument | undefined {
  const own = new Report();
  const document = readOnce(file, own);
  const slips = own.size === 0 ? [] : findSlips(file);
  if (slips.length === 0) {
    report.addAll(own);
    return document;
  }
  // YAML reads these values differently from the written text. The file is read with the fixes, so that no other error
  // follows.
  for (const { span, message, hint } of slips) report.add("yaml", span, message, hint);
  return readOnce(file, report, repair(file.text, slips));
}

function readOnce(file: SourceFile, report: Report, repaired?: Repaired): ContractDocument | undefined {
  const reader = new Reader(report);
  const root = reader.part(readYaml(file, report, repaired), "contract", "a contract");
  if (root === undefined) return undefined;
  const name = reader.name(root, "contract");
  const tools = reader.entries(root, "tools");
  if (root.entries.get("tools") === undefined)
    report.add("missing", root.span, "a contract lists the tools that it routes, under `tools:`");
  const rules = root.entries.get("rules")?.value;
  return {
    file,
    name: name?.text ?? "",
    span: name?.span ?? root.span,
    limits: new Map(reader.entries(root, "limits", true).map(([limit, node]) => [limit, node])),
    platform: root.entries.get("platform")?.value,
    sensitive: reader.members(root, "sensitive"),
    subject: reader.members(root, "subject"),
    hostFacts: reader.members(root, "host_facts"),
    approval: reader.approval(root, true),
    requires: reader.requires(root),
    lets: reader.lets(root),
    tools: new Map(tools.map(([tool, node, span]) => [tool, reader.tool(tool, node, span)])),
    counters: new Map(
      reader.entries(root, "counters", true).map(([counter, node, span]) => [counter, reader.counter(node, span)]),
    ),
    rules:
      rules === undefined
        ? []
        : (reader.asList(rules, "`rules`")?.items ?? []).flatMap((node) => reader.rule(node) ?? []),
  };
}

/** Reads a mandate's text. */
export function readMandate(file: SourceFile, report: Report): MandateDocument | undefined {
  const reader = new Reader(report);
  const root = reader.part(readYaml(file, report), "mandate", "a mandate");
  if (root === undefined) return undefined;
  const contracts = root.entries.get("contracts")?.value;
  if (contracts === undefined)
    report.add(
      "missing",
      root.span,
      "a mandate names its contracts, under `contracts:`",
      "for none at all, write `contracts: []`",
    );
  const submaps = (key: string): Map<string, YamlMap> =>
    new Map(
      reader.entries(root, key).flatMap(([name, node]) => {
        const map = reader.asMap(node, `\`${key}.${name}\``);
        return map === undefined ? [] : [[name, map] as const];
      }),
    );
  return {
    name: reader.name(root, "mandate")?.text ?? "",
    contracts:
      contracts === undefined
        ? []
        : (reader.asList(contracts, "`contracts`")?.items ?? []).flatMap((node) => reader.mandateEntry(node) ?? []),
    limits: submaps("limits"),
    counters: submaps("counters"),
    approval: reader.approval(root, false),
    approvals: reader.approvals(root),
  };
}

/** Contract and rule are named on every receipt's leaf, which stays under 1 KiB. */
const nameCharactersMax = 64;
const namePattern = /^[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*$/;
const identifier = /^(?!(?:true|false|null|in)$)[A-Za-z_][A-Za-z0-9_]*$/;
/** Names that a `let:` cannot have: the roots, the words of `per:`, and CEL's reserved words. */
const taken = new Set([
  "input",
  "platform",
  "limits",
  "counters",
  "tool",
  "session",
  "now",
  "key",
  "gate",
  ...reserved,
]);

class Reader {
  readonly #report: Report;

  constructor(report: Report) {
    this.#report = report;
  }

  asMap(node: YamlNode | undefined, what: string): YamlMap | undefined {
    if (node === undefined || node.kind === "map") return node;
    this.#report.add("shape", node.span, `${what} is a map of names to values`);
    return undefined;
  }

  asList(node: YamlNode, what: string): YamlList | undefined {
    if (node.kind === "list") return node;
    this.#report.add("shape", node.span, `${what} is a list`, "begin each item with `- `");
    return undefined;
  }

  /** A map that has no other keys than these. */
  part(node: YamlNode | undefined, of: keyof typeof documentKeys, what: string): YamlMap | undefined {
    const map = this.asMap(node, what);
    const names = documentKeys[of];
    for (const [name, { key }] of map?.entries ?? []) {
      if (names.includes(name)) continue;
      const hint = didYouMean(name, names, `${what} has ${names.map((known) => `\`${known}\``).join(", ")}`);
      this.#report.add("unknown-key", key.span, `${what} has no \`${name}\``, hint);
    }
    return map;
  }

  entries(map: YamlMap, key: string, identifiers = false): (readonly [string, YamlNode, Span])[] {
    const value = map.entries.get(key)?.value;
    if (value === undefined || (value.kind === "scalar" && value.value === null)) return [];
    const inner = this.asMap(value, `\`${key}\``);
    return [...(inner?.entries ?? [])].map(([name, entry]) => {
      if (identifiers && !identifier.test(name)) {
        this.#report.add(
          "name",
          entry.key.span,
          `\`${name}\` cannot be written in a condition`,
          "use letters, digits and `_`",
        );
      }
      return [name, entry.value, entry.key.span] as const;
    });
  }

  text(map: YamlMap, key: string): YamlScalar | undefined {
    const value = map.entries.get(key)?.value;
    if (value === undefined || value.kind === "scalar") return value;
    this.#report.add("shape", value.span, `\`${key}\` is a single text`);
    return undefined;
  }

  texts(map: YamlMap, key: string): readonly YamlScalar[] {
    const value = map.entries.get(key)?.value;
    const items = value === undefined ? [] : value.kind === "list" ? value.items : [value];
    return items.flatMap((item) => {
      if (item.kind === "scalar") return [item];
      this.#report.add("shape", item.span, `\`${key}\` is a list of texts`);
      return [];
    });
  }

  members(map: YamlMap, key: string): readonly YamlScalar[] {
    const value = map.entries.get(key)?.value;
    return value === undefined || this.asList(value, `\`${key}\``) === undefined ? [] : this.texts(map, key);
  }

  /**
   * A tool or a contract may say what an approval is not bound to; a rule and a mandate may not. Only a rule may say that
   * grants lift it.
   */
  approval(map: YamlMap, isOfTool: boolean, isOfRule = false): ApprovalDocument | undefined {
    const inner = this.part(map.entries.get("approval")?.value, "approval", "`approval`");
    if (inner === undefined) return undefined;
    const texts = (key: string): readonly YamlScalar[] | undefined =>
      inner.entries.has(key) ? this.texts(inner, key) : undefined;
    if (!isOfTool) this.#misplaced(inner, "unbound", "a tool or a contract");
    if (!isOfRule) this.#misplaced(inner, "grants", "a rule");
    return {
      span: inner.span,
      by: texts("by"),
      of: this.text(inner, "of"),
      decideWithin: this.text(inner, "decide_within"),
      useWithin: this.text(inner, "use_within"),
      batch: inner.entries.has("batch") ? this.#flag(inner, "batch") : undefined,
      sessions: this.text(inner, "sessions"),
      pins: texts("pins"),
      drift: this.text(inner, "drift"),
      free: texts("free"),
      unbound: texts("unbound"),
      grants: this.#grants(inner),
    };
  }

  #misplaced(approval: YamlMap, key: string, where: string): void {
    const span = approval.entries.get(key)?.key.span;
    if (span !== undefined) this.#report.add("approval", span, `\`${key}\` belongs to the \`approval\` of ${where}`);
  }

  #grants(approval: YamlMap): GrantsDocument | undefined {
    const inner = this.part(approval.entries.get("grants")?.value, "grants", "`grants`");
    if (inner === undefined) return undefined;
    const [atMost, uses] = [this.text(inner, "at_most"), this.text(inner, "uses")];
    return { span: inner.span, atMost, uses, pin: this.texts(inner, "pin") };
  }

  approvals(map: YamlMap): ApprovalSettingsDocument {
    const inner = this.part(map.entries.get("approvals")?.value, "approvals", "`approvals`");
    if (inner === undefined) return { self: false, open: undefined, outcomeWithin: undefined };
    return {
      self: this.#flag(inner, "self"),
      open: this.asMap(inner.entries.get("open")?.value, "`open`"),
      outcomeWithin: this.text(inner, "outcome_within"),
    };
  }

  name(map: YamlMap, key: string): YamlScalar | undefined {
    const value = this.text(map, key);
    if (value === undefined) {
      if (!map.entries.has(key))
        this.#report.add("missing", { ...map.span, to: map.span.from + 1 }, `\`${key}:\` with its name is missing`);
    } else if (!namePattern.test(value.text) || value.text.length > nameCharactersMax) {
      this.#report.add(
        "name",
        value.span,
        `\`${value.text.slice(0, nameCharactersMax)}\` is not a name`,
        `use lower-case letters, digits, \`-\` and \`_\`, such as \`over-budget\`; at most ${nameCharactersMax} characters`,
      );
    }
    return value;
  }

  expression(scalar: YamlScalar): WrittenExpression {
    const { file } = scalar.span;
    return {
      text: scalar.text.trim(),
      syntax: parseExpression({ file, text: scalar.text, offsets: scalar.offsets }, this.#report),
    };
  }

  lets(map: YamlMap): ReadonlyMap<string, Syntax> {
    const found = new Map<string, Syntax>();
    for (const [name, node, span] of this.entries(map, "let", true)) {
      if (node.kind !== "scalar") this.#report.add("shape", node.span, `\`${name}\` is an expression`);
      else found.set(name, this.expression(node).syntax);
      if (taken.has(name)) {
        this.#report.add("shadowed-name", span, `\`${name}\` already has a meaning`, "choose another name");
      }
    }
    return found;
  }

  requires(map: YamlMap): readonly RequireDocument[] {
    const value = map.entries.get("requires")?.value;
    const items = value === undefined ? [] : value.kind === "list" ? value.items : [value];
    return items.flatMap((node) => this.#require(node) ?? []);
  }

  #require(node: YamlNode): RequireDocument | undefined {
    if (node.kind === "scalar") {
      const { syntax, text } = this.expression(node);
      return { span: node.span, when: syntax, text, reason: undefined };
    }
    const map = this.part(node, "requirement", "a requirement");
    if (map === undefined) return undefined;
    const when = this.#needed(map, "when", "a requirement");
    if (when === undefined) return undefined;
    const { syntax, text } = this.expression(when);
    return { span: when.span, when: syntax, text, reason: this.#reason(this.text(map, "reason")) };
  }

  tool(name: string, node: YamlNode, span: Span): ToolDocument {
    checkToolName(name, span, this.#report);
    const map = this.part(node, "tool", "a tool");
    if (map === undefined)
      return {
        span,
        aliases: [],
        input: undefined,
        onlyDoubles: false,
        requires: [],
        approval: undefined,
        otherwise: undefined,
      };
    const input = map.entries.get("input")?.value;
    if (input === undefined)
      this.#report.add(
        "missing",
        span,
        "a tool needs the schema of its input, under `input:`",
        "a JSON Schema, the same as an MCP tool's `inputSchema`",
      );
    const otherwise = this.#otherwise(map, span);
    return {
      span,
      aliases: this.members(map, "aliases"),
      input,
      onlyDoubles: this.#onlyDoubles(map),
      requires: this.requires(map),
      approval: this.approval(map, true),
      otherwise,
    };
  }

  #onlyDoubles(map: YamlMap): boolean {
    const numbers = this.text(map, "numbers");
    if (numbers !== undefined && numbers.text !== "double")
      this.#report.add(
        "numbers",
        numbers.span,
        "the only value of `numbers` is `double`",
        "a tool without it accepts every number",
      );
    return numbers !== undefined;
  }

  #otherwise(map: YamlMap, span: Span): OutcomeDocument | undefined {
    const value = map.entries.get("otherwise")?.value;
    if (value === undefined) {
      this.#report.add(
        "missing",
        span,
        "a tool needs a verdict for calls without a firing rule, under `otherwise:`",
        "`otherwise: BLOCK`, `ESCALATE` or `ALLOW`: it is never implied",
      );
      return undefined;
    }
    if (value.kind === "scalar") {
      const verdict = this.#verdict(value);
      return verdict === undefined ? undefined : { verdict, reason: undefined };
    }
    const inner = this.part(value, "outcome", "`otherwise`");
    if (inner === undefined) return undefined;
    const verdict = this.#verdict(this.#needed(inner, "verdict", "`otherwise`"));
    const reason = this.#reason(this.text(inner, "reason"));
    return verdict === undefined ? undefined : { verdict, reason };
  }

  #reason(scalar: YamlScalar | undefined): ReasonSyntax | undefined {
    return scalar && parseReason(scalar, this.#report);
  }

  #verdict(scalar: YamlScalar | undefined): Verdict | undefined {
    if (scalar === undefined) return undefined;
    if (isVerdict(scalar.text)) return scalar.text;
    const hint = didYouMean(scalar.text, ["ALLOW", "BLOCK", "ESCALATE"], "verdicts are ALLOW, ESCALATE and BLOCK");
    this.#report.add("verdict", scalar.span, `\`${scalar.text}\` is not a verdict`, hint);
    return undefined;
  }

  counter(node: YamlNode, span: Span): CounterDocument {
    const map = this.part(node, "counter", "a counter") ?? { kind: "map", span, entries: new Map() };
    const written = (key: string): WrittenExpression | undefined => {
      const scalar = this.text(map, key);
      return scalar === undefined ? undefined : this.expression(scalar);
    };
    const of = this.texts(map, "of");
    const per = this.texts(map, "per");
    if (of.length === 0) this.#report.add("missing", span, "a counter needs the tools that it counts, under `of:`");
    if (per.length === 0)
      this.#report.add(
        "missing",
        span,
        "a counter needs the values that it counts separately, under `per:`",
        "`per: session`, `key`, `gate`, or a fact such as `platform.wallet_id`",
      );
    return {
      span,
      of,
      per: per.map((scalar) => this.expression(scalar)),
      when: written("when"),
      sum: written("sum"),
      remembers: written("remembers"),
      since: written("since"),
      counting: this.text(map, "counting"),
      within: this.text(map, "within"),
      timezone: this.text(map, "timezone"),
      weekStarts: this.text(map, "week_starts"),
      settlesWithin: this.text(map, "settles_within"),
      settles: this.text(map, "settles"),
      claims: this.#flag(map, "claims"),
    };
  }

  rule(node: YamlNode): RuleDocument | undefined {
    const map = this.part(node, "rule", "a rule");
    if (map === undefined) return undefined;
    const name = this.name(map, "rule");
    const label = name === undefined ? "a rule" : `rule \`${name.text}\``;
    const when = this.#needed(map, "when", label);
    const verdict = this.#verdict(this.#needed(map, "verdict", label));
    const sentence = this.#reason(this.#needed(map, "reason", label)) ?? [];
    const on = this.texts(map, "on");
    if (on.length === 0)
      this.#report.add("missing", name?.span ?? map.span, `${label} needs the tools that it applies to, under \`on:\``);
    const lets = this.lets(map);
    const final = this.#flag(map, "final");
    const mode = this.text(map, "mode");
    if (mode !== undefined && mode.text !== "observe")
      this.#report.add("mode", mode.span, "the only mode of a rule is `observe`", "a rule without it decides");
    const condition = when === undefined ? undefined : this.expression(when).syntax;
    if (final && verdict !== undefined && verdict !== "BLOCK") {
      this.#report.add(
        "final",
        map.entries.get("final")?.key.span ?? map.span,
        "only a rule that BLOCKs can be `final`",
        "a `final` BLOCK stays a BLOCK in assist mode",
      );
    }
    // The missing part was reported, so nothing will run. The other parts are still checked, to show all problems
    // together.
    if (condition === undefined) return undefined;
    return {
      name: name?.text ?? "",
      span: name?.span ?? map.span,
      on,
      lets,
      when: condition,
      verdict: verdict ?? "BLOCK",
      final,
      observed: mode !== undefined,
      approval: this.approval(map, false, true),
      reason: sentence,
    };
  }

  #needed(map: YamlMap, key: string, what: string): YamlScalar | undefined {
    if (!map.entries.has(key))
      this.#report.add(
        "missing",
        map.entries.values().next().value?.key.span ?? map.span,
        `${what} has no \`${key}:\``,
      );
    return this.text(map, key);
  }

  #flag(map: YamlMap, key: string): boolean {
    const scalar = this.text(map, key);
    if (scalar === undefined || typeof scalar.value === "boolean") return scalar?.value === true;
    this.#report.add("shape", scalar.span, `\`${key}\` is true or false`);
    return false;
  }

  mandateEntry(node: YamlNode): MandateEntry | undefined {
    if (node.kind === "scalar") return { file: node, tools: undefined };
    const map = this.part(node, "entry", "a contract in a mandate");
    if (map === undefined) return undefined;
    const file = this.#needed(map, "file", "a contract in a mandate");
    return file === undefined
      ? undefined
      : { file, tools: map.entries.has("tools") ? this.texts(map, "tools") : undefined };
  }
}

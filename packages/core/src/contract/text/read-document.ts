import { Report, type SourceFile, type Span } from "./diagnostic.ts";
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
import { PartReader } from "./part-reader.ts";
import { checkToolName } from "./tool-name.ts";
import { findSlips, repair } from "./yaml-slips.ts";
import { itemsOf, readYaml, type RepairedText, type YamlMap, type YamlNode, type YamlScalar } from "./yaml.ts";

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

function readOnce(file: SourceFile, report: Report, repaired?: RepairedText): ContractDocument | undefined {
  const reader = new PartReader(report);
  const root = reader.part(readYaml(file, report, repaired), "contract", "a contract");
  if (root === undefined) return undefined;
  const name = reader.name(root, "contract");
  if (!root.entries.has("tools"))
    report.add("missing", root.span, "a contract lists the tools that it routes, under `tools:`");
  return {
    file,
    name: name?.text ?? "",
    span: name?.span ?? root.span,
    limits: reader.readNamedParts(root, "limits", (node) => node),
    platform: root.entries.get("platform")?.value,
    sensitive: reader.readTextList(root, "sensitive"),
    subject: reader.readTextList(root, "subject"),
    hostFacts: reader.readTextList(root, "host_facts"),
    approval: readApproval(reader, root, { isOfTool: true }),
    requires: readRequires(reader, root),
    commands: root.entries.get("commands")?.value,
    lets: reader.lets(root),
    tools: reader.readNamedParts(root, "tools", (node, span, tool) => readTool(reader, tool, node, span), false),
    counters: reader.readNamedParts(root, "counters", (node, span) => readCounter(reader, node, span)),
    rules: reader.items(root, "rules").flatMap((node) => readRule(reader, node) ?? []),
  };
}

/** Reads a mandate's text. */
export function readMandate(file: SourceFile, report: Report): MandateDocument | undefined {
  const reader = new PartReader(report);
  const root = reader.part(readYaml(file, report), "mandate", "a mandate");
  if (root === undefined) return undefined;
  if (!root.entries.has("contracts"))
    report.add(
      "missing",
      root.span,
      "a mandate names its contracts, under `contracts:`",
      "for none at all, write `contracts: []`",
    );
  const submaps = (key: string): ReadonlyMap<string, YamlMap> =>
    reader.readNamedParts(root, key, (node, _, name) => reader.asMap(node, `\`${key}.${name}\``), false);
  return {
    name: reader.name(root, "mandate")?.text ?? "",
    contracts: reader.items(root, "contracts").flatMap((node) => readEntry(reader, node) ?? []),
    limits: submaps("limits"),
    counters: submaps("counters"),
    approval: readApproval(reader, root, {}),
    approvals: readApprovals(reader, root),
  };
}

function readEntry(reader: PartReader, node: YamlNode): MandateEntry | undefined {
  if (node.kind === "scalar") return { file: node, tools: undefined };
  const map = reader.part(node, "entry", "a contract in a mandate");
  const file = map && reader.requireText(map, "file", "a contract in a mandate");
  return file && { file, tools: map.entries.has("tools") ? reader.texts(map, "tools") : undefined };
}

/**
 * A tool or a contract may say what an approval is not bound to; a rule and a mandate may not. Only a rule may say that
 * grants lift it.
 */
function readApproval(
  reader: PartReader,
  map: YamlMap,
  { isOfTool = false, isOfRule = false }: { readonly isOfTool?: boolean; readonly isOfRule?: boolean },
): ApprovalDocument | undefined {
  const inner = reader.part(map.entries.get("approval")?.value, "approval", "`approval`");
  if (inner === undefined) return undefined;
  const texts = (key: string): readonly YamlScalar[] | undefined =>
    inner.entries.has(key) ? reader.texts(inner, key) : undefined;
  const belongsTo = (key: string, where: string): void => {
    const span = inner.entries.get(key)?.key.span;
    if (span !== undefined) reader.report.add("approval", span, `\`${key}\` belongs to the \`approval\` of ${where}`);
  };
  if (!isOfTool) belongsTo("unbound", "a tool or a contract");
  for (const key of ["grants", "self"]) if (!isOfRule) belongsTo(key, "a rule");
  return {
    span: inner.span,
    by: texts("by"),
    of: reader.text(inner, "of"),
    decideWithin: reader.text(inner, "decide_within"),
    useWithin: reader.text(inner, "use_within"),
    batch: inner.entries.has("batch") ? reader.flag(inner, "batch") : undefined,
    sessions: reader.text(inner, "sessions"),
    pins: texts("pins"),
    drift: reader.text(inner, "drift"),
    free: texts("free"),
    unbound: texts("unbound"),
    grants: readGrants(reader, inner),
    self: reader.flag(inner, "self") ? reader.text(inner, "self") : undefined,
  };
}

function readGrants(reader: PartReader, approval: YamlMap): GrantsDocument | undefined {
  const inner = reader.part(approval.entries.get("grants")?.value, "grants", "`grants`");
  if (inner === undefined) return undefined;
  const [by, atMost, uses] = ["by", "at_most", "uses"].map((key) => reader.text(inner, key));
  return { span: inner.span, by, atMost, uses, pin: reader.texts(inner, "pin"), free: reader.texts(inner, "free") };
}

function readApprovals(reader: PartReader, map: YamlMap): ApprovalSettingsDocument {
  const inner = reader.part(map.entries.get("approvals")?.value, "approvals", "`approvals`");
  if (inner === undefined) return { self: false, open: undefined, outcomeWithin: undefined };
  return {
    self: reader.flag(inner, "self"),
    open: reader.asMap(inner.entries.get("open")?.value, "`open`"),
    outcomeWithin: reader.text(inner, "outcome_within"),
  };
}

function readRequires(reader: PartReader, map: YamlMap): readonly RequireDocument[] {
  return itemsOf(map.entries.get("requires")?.value).flatMap((node) => {
    const inner = node.kind === "scalar" ? undefined : reader.part(node, "requirement", "a requirement");
    const when = node.kind === "scalar" ? node : inner && reader.requireText(inner, "when", "a requirement");
    if (when === undefined) return [];
    const { syntax, text } = reader.readExpression(when);
    const reason = inner && reader.reason(reader.text(inner, "reason"));
    return [{ span: when.span, when: syntax, text, reason }];
  });
}

function readTool(reader: PartReader, name: string, node: YamlNode, span: Span): ToolDocument {
  checkToolName(name, span, reader.report);
  const written = reader.part(node, "tool", "a tool");
  const map = written ?? noParts(span);
  const input = map.entries.get("input")?.value;
  if (written !== undefined && input === undefined)
    reader.report.add(
      "missing",
      span,
      "a tool needs the schema of its input, under `input:`",
      "a JSON Schema, the same as an MCP tool's `inputSchema`",
    );
  const otherwise = written && readOtherwise(reader, written, span);
  const numbers = reader.text(map, "numbers");
  if (numbers !== undefined && numbers.text !== "double")
    reader.report.add(
      "numbers",
      numbers.span,
      "the only value of `numbers` is `double`",
      "a tool without it accepts every number",
    );
  return {
    span,
    aliases: reader.readTextList(map, "aliases"),
    input,
    onlyDoubles: numbers !== undefined,
    requires: readRequires(reader, map),
    approval: readApproval(reader, map, { isOfTool: true }),
    otherwise,
  };
}

function noParts(span: Span): YamlMap {
  return { kind: "map", span, entries: new Map() };
}

function readOtherwise(reader: PartReader, map: YamlMap, span: Span): OutcomeDocument | undefined {
  const value = map.entries.get("otherwise")?.value;
  if (value === undefined) {
    reader.report.add(
      "missing",
      span,
      "a tool needs a verdict for calls without a firing rule, under `otherwise:`",
      "`otherwise: BLOCK`, `ESCALATE` or `ALLOW`: it is never implied",
    );
    return undefined;
  }
  const inner = value.kind === "scalar" ? undefined : reader.part(value, "outcome", "`otherwise`");
  const verdict = reader.verdict(
    value.kind === "scalar" ? value : inner && reader.requireText(inner, "verdict", "`otherwise`"),
  );
  const reason = inner && reader.reason(reader.text(inner, "reason"));
  return verdict && { verdict, reason };
}

function readCounter(reader: PartReader, node: YamlNode, span: Span): CounterDocument {
  const map = reader.part(node, "counter", "a counter") ?? noParts(span);
  const readExpression = (key: string): WrittenExpression | undefined => {
    const scalar = reader.text(map, key);
    return scalar && reader.readExpression(scalar);
  };
  const of = reader.texts(map, "of");
  const per = reader.texts(map, "per");
  if (of.length === 0) reader.report.add("missing", span, "a counter needs the tools that it counts, under `of:`");
  if (per.length === 0)
    reader.report.add(
      "missing",
      span,
      "a counter needs the values that it counts separately, under `per:`",
      "`per: session`, `key`, `gate`, `call`, or a fact such as `platform.wallet_id`",
    );
  return {
    span,
    of,
    per: per.map((scalar) => reader.readExpression(scalar)),
    when: readExpression("when"),
    sum: readExpression("sum"),
    remembers: readExpression("remembers"),
    since: readExpression("since"),
    counting: reader.text(map, "counting"),
    within: reader.text(map, "within"),
    timezone: reader.text(map, "timezone"),
    weekStarts: reader.text(map, "week_starts"),
    settlesWithin: reader.text(map, "settles_within"),
    settles: reader.text(map, "settles"),
    claims: reader.flag(map, "claims"),
  };
}

function readRule(reader: PartReader, node: YamlNode): RuleDocument | undefined {
  const { report } = reader;
  const map = reader.part(node, "rule", "a rule");
  if (map === undefined) return undefined;
  const name = reader.name(map, "rule");
  const label = name === undefined ? "a rule" : `rule \`${name.text}\``;
  const when = reader.requireText(map, "when", label);
  const verdict = reader.verdict(reader.requireText(map, "verdict", label));
  const sentence = reader.reason(reader.requireText(map, "reason", label)) ?? [];
  const on = reader.texts(map, "on");
  if (on.length === 0)
    report.add("missing", name?.span ?? map.span, `${label} needs the tools that it applies to, under \`on:\``);
  const lets = reader.lets(map);
  const final = reader.flag(map, "final");
  const mode = reader.text(map, "mode");
  if (mode !== undefined && mode.text !== "observe")
    report.add("mode", mode.span, "the only mode of a rule is `observe`", "a rule without it decides");
  const condition = when && reader.readExpression(when).syntax;
  if (final && verdict !== undefined && verdict !== "BLOCK") {
    const span = map.entries.get("final")?.key.span ?? map.span;
    const hint = "a `final` BLOCK stays a BLOCK in assist mode";
    report.add("final", span, "only a rule that BLOCKs can be `final`", hint);
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
    approval: readApproval(reader, map, { isOfRule: true }),
    reason: sentence,
  };
}

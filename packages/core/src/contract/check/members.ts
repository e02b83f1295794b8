import { didYouMean } from "../../wire/mod.ts";
import { readSpanText, untypedHint, type Checker } from "./checker.ts";
import type { Core } from "../core/core.ts";
import type { Span } from "../text/diagnostic.ts";
import { pathOf, same, type TypedCore, type Facts } from "./facts.ts";
import { checkLongName } from "./names.ts";
import type { MemberSyntax, Syntax } from "../text/syntax.ts";
import { broken, string, typeText } from "../value/type.ts";

/** Checks `value.name` and `value.?name`. */
export function checkMember(checker: Checker, syntax: MemberSyntax, facts: Facts): TypedCore {
  const named = checkLongName(checker, syntax, facts);
  return named ?? readMember(checker, checker.check(syntax.of, facts).core, syntax, facts);
}

/** Where a member is read, and how. */
type MemberAccess = Omit<MemberSyntax, "kind" | "of">;

/** Reads a member of a checked value, which must be declared and must be present. */
export function readMember(checker: Checker, of: Core, access: MemberAccess, facts: Facts): TypedCore {
  const { name, span, nameSpan, optional } = access;
  const type = of.type.kind === "optional" && optional ? of.type.of : of.type;
  if (type.kind === "broken") return same({ op: "broken", type: broken, span }, facts);
  if (type.kind !== "record") {
    return checker.refuse(
      { span: nameSpan, facts },
      "type",
      `${typeText(of.type)} has no members`,
      (["length", "len", "size"].includes(name) ? `write \`size(${readSpanText(of.span)})\`` : untypedHint(of)) ??
        (of.type.kind === "optional" ? `write \`.?${name}\` to go on` : undefined),
    );
  }
  const field = type.fields.get(name);
  const fieldType = field?.type ?? type.others;
  if (fieldType === undefined) {
    const message = `\`${readSpanText(of.span)}\` has no member \`${name}\``;
    const hint = didYouMean(name, type.fields.keys(), `declare \`${name}\` under the \`properties\` of its schema`);
    return checker.refuse({ span: nameSpan, facts }, "unknown-member", message, hint);
  }
  if (optional) {
    const key: Core = { op: "constant", value: name, type: string, span: nameSpan };
    return same({ op: "select", of, at: key, type: { kind: "optional", of: fieldType }, span }, facts);
  }
  const path = pathOf(of, name);
  if (field?.required !== true && (path === undefined || !facts.has(path))) {
    const written = readSpanText(span);
    return checker.refuse(
      { span, facts },
      "unproven-member",
      `\`${written}\` is optional and may be absent here`,
      `test it with \`has(${written}) && ...\`, or write \`${defaultText(of, name, span)}\`, or require it`,
    );
  }
  const narrowed =
    fieldType.kind === "nullable" && path !== undefined && facts.has(`${path}!`) ? fieldType.of : fieldType;
  return same({ op: "member", of, name, type: narrowed, span }, facts);
}

/** Checks `value[at]` and `value[?at]`. */
export function checkIndex(checker: Checker, syntax: Syntax & { kind: "index" }, facts: Facts): TypedCore {
  const { span, optional } = syntax;
  const of = checker.check(syntax.of, facts).core;
  const at = checker.check(syntax.at, facts).core;
  const type = of.type.kind === "optional" && optional ? of.type.of : of.type;
  if (at.op === "constant" && typeof at.value === "string" && type.kind === "record") {
    return readMember(checker, of, { name: at.value, span, nameSpan: at.span, optional }, facts);
  }
  if (type.kind === "broken" || at.type.kind === "broken") return same({ op: "broken", type: broken, span }, facts);
  const item = type.kind === "list" ? type.of : type.kind === "record" ? type.others : undefined;
  if (item === undefined) {
    const hint = type.kind === "record" ? "its members are declared one by one: read them by name" : untypedHint(of);
    return checker.refuse({ span, facts }, "type", `${typeText(of.type)} cannot be indexed`, hint);
  }
  if (!checker.demand(at, type.kind === "list" ? "number" : "string", "this index"))
    return same({ op: "broken", type: broken, span }, facts);
  if (optional) return same({ op: "select", of, at, type: { kind: "optional", of: item }, span }, facts);
  return same({ op: "index", of, at, type: item, span }, facts);
}

/** The suggested spelling of a member with a default. */
function defaultText(of: Core, name: string, span: Span): string {
  const isName = /^[A-Za-z_]\w*$/.test(name) && !readSpanText(span).endsWith("]");
  return `${readSpanText(of.span)}${isName ? `.?${name}` : `[?${JSON.stringify(name)}]`}.orValue(...)`;
}

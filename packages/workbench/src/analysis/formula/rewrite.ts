import type { Value } from "../../../../readers/src/contract.ts";
import { children, constantValue, isList, walk, type Core } from "../../../../readers/src/ir.ts";

/** The same expression with each of its direct operands replaced. */
export function rebuild(core: Core, replace: (part: Core) => Core): Core {
  switch (core.op) {
    case "member":
    case "has":
    case "not":
    case "negate":
      return { ...core, of: replace(core.of) };
    case "select":
    case "index":
      return { ...core, of: replace(core.of), at: replace(core.at) };
    case "and":
    case "or":
    case "binary":
      return { ...core, left: replace(core.left), right: replace(core.right) };
    case "conditional":
      return { ...core, test: replace(core.test), yes: replace(core.yes), no: replace(core.no) };
    case "call":
      return { ...core, args: core.args.map(replace) };
    case "list":
      return { ...core, items: core.items.map(replace) };
    case "map":
      return { ...core, entries: core.entries.map(([key, value]) => [replace(key), replace(value)] as const) };
    case "fold":
      return {
        ...core,
        range: replace(core.range),
        test: core.test && replace(core.test),
        body: core.body && replace(core.body),
      };
    case "constant":
    case "root":
    case "counter":
    case "variable":
    case "broken":
      return core;
    default:
      return core satisfies never;
  }
}

/** The expression with every part replaced for which `find` returns a replacement. */
export function substitute(core: Core, find: (part: Core) => Core | undefined): Core {
  return find(core) ?? rebuild(core, (part) => substitute(part, find));
}

export function constant(value: Value, like: Core): Core {
  return { op: "constant", value, type: like.type, span: like.span };
}

export function truth(value: boolean, { span }: Core): Core {
  return { op: "constant", value, type: { kind: "boolean" }, span };
}

export function not(core: Core): Core {
  if (core.op === "not") return core.of;
  if (core.op === "constant" && typeof core.value === "boolean") return truth(!core.value, core);
  return { op: "not", of: core, type: { kind: "boolean" }, span: core.span };
}

/** Literal lists up to this length are expanded; longer ones stay as they are. */
const writtenOutMax = 40;
/** Conditions over them are expanded too, up to this number of nodes in total. */
const writtenPartsMax = 4000;

/**
 * An equivalent expression in fewer forms. Constants are evaluated, defaults become conditionals, folds over literal
 * lists become chains, and tests of required members become true.
 */
export function simplify(core: Core): Core {
  return simplifyNode(rebuild(core, simplify));
}

function simplifyNode(core: Core): Core {
  if (core.op !== "constant" && mayBeConstant(core)) {
    const value = constantValue(core);
    if (value !== undefined) return constant(value, core);
  }
  switch (core.op) {
    case "not":
      return not(core.of);
    case "and":
    case "or":
      return simplifyLogic(core);
    case "conditional":
      return core.test.op === "constant" ? (core.test.value === true ? core.yes : core.no) : core;
    case "has":
      return isRequired(core.of, core.name) ? truth(true, core) : core;
    case "call":
      return withoutOptional(core) ?? sizeOfMapped(core) ?? core;
    case "binary":
      return core.operator === "in" ? simplifyIn(core) : core;
    case "fold":
      return writtenOut(core) ?? core;
    default:
      return core;
  }
}

/** Its parts are simplified already: only an expression of constants can become one. */
function mayBeConstant(core: Core): boolean {
  return core.op === "fold" ? core.range.op === "constant" : children(core).every(({ op }) => op === "constant");
}

function simplifyLogic(core: Core & { op: "and" | "or" }): Core {
  const absorbing = core.op === "or";
  for (const [side, other] of [
    [core.left, core.right],
    [core.right, core.left],
  ] as const) {
    if (side.op === "constant") return side.value === absorbing ? truth(absorbing, core) : other;
  }
  return core;
}

function isRequired({ type }: Core, name: string): boolean {
  return type.kind === "record" && type.fields.get(name)?.required === true;
}

/** `a.?b.orValue(c)` as `has(a.b) ? a.b : c`, and `a.?b.hasValue()` as `has(a.b)`. */
function withoutOptional(core: Core & { op: "call" }): Core | undefined {
  const [optional, fallback] = core.args;
  if (optional?.op !== "select") return undefined;
  const read = readOf(optional);
  if (read === undefined) return undefined;
  if (core.entry.name === "hasValue") return simplifyNode(read.test);
  if (core.entry.name !== "orValue" || fallback === undefined) return undefined;
  return simplifyNode({
    op: "conditional",
    test: read.test,
    yes: read.value,
    no: fallback,
    type: core.type,
    span: core.span,
  });
}

/** `list.map(x, v).size()` is `list.size()`. */
function sizeOfMapped(core: Core & { op: "call" }): Core | undefined {
  const [list] = core.args;
  const isMapped =
    list?.op === "fold" && list.macro === "map" && list.test === undefined && list.range.type.kind === "list";
  return core.entry.name === "size" && isMapped ? simplifyNode({ ...core, args: [list.range] }) : undefined;
}

/** When an optional is present, and its value then; undefined if it is read at a position computed from the call. */
function readOf(optional: Core & { op: "select" }): { readonly test: Core; readonly value: Core } | undefined {
  const { at, span } = optional;
  if (at.op !== "constant" || typeof at.value !== "string") return undefined;
  const outer = optional.of.op === "select" ? readOf(optional.of) : undefined;
  if (optional.of.op === "select" && outer === undefined) return undefined;
  const of = outer?.value ?? optional.of;
  const has = simplifyNode({ op: "has", of, name: at.value, type: { kind: "boolean" }, span });
  const type = optional.type.kind === "optional" ? optional.type.of : optional.type;
  const test: Core =
    outer === undefined
      ? has
      : simplifyNode({ op: "and", left: outer.test, right: has, type: { kind: "boolean" }, span });
  return { test, value: { op: "member", of, name: at.value, type, span } };
}

function simplifyIn(core: Core & { op: "binary" }): Core {
  const { left, right, span } = core;
  if (right.type.kind === "record" && left.op === "constant" && typeof left.value === "string")
    return simplifyNode({ op: "has", of: right, name: left.value, type: { kind: "boolean" }, span });
  if (right.op !== "list" || right.items.length > writtenOutMax) return core;
  return chain(
    "or",
    right.items.map((item): Core => ({ op: "binary", operator: "==", left, right: item, type: core.type, span })),
    core,
  );
}

function writtenOut(core: Core & { op: "fold" }): Core | undefined {
  const { range, test, slot, macro } = core;
  if (range.op !== "constant" || !isList(range.value) || range.value.length > writtenOutMax || test === undefined)
    return undefined;
  if (macro !== "exists" && macro !== "all") return undefined;
  if ([...walk(test)].length * range.value.length > writtenPartsMax) return undefined;
  const itemType = range.type.kind === "list" ? range.type.of : range.type;
  const parts = range.value.map((value) => {
    const item: Core = { op: "constant", value, type: itemType, span: test.span };
    return simplify(substitute(test, (part) => (part.op === "variable" && part.slot === slot ? item : undefined)));
  });
  return chain(macro === "exists" ? "or" : "and", parts, core);
}

function chain(op: "and" | "or", parts: readonly Core[], like: Core): Core {
  const [first, ...rest] = parts;
  if (first === undefined) return truth(op === "and", like);
  return rest.reduce<Core>(
    (left, right) => simplifyLogic({ op, left, right, type: { kind: "boolean" }, span: like.span }),
    first,
  );
}

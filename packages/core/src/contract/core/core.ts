import type { Span } from "../text/diagnostic.ts";
import type { ContractFunction } from "./function.ts";
import type { BinaryOperator } from "../text/syntax.ts";
import type { Type } from "../value/type.ts";
import type { Value } from "../value/value.ts";

/** The members of the facts that a host's key may state under one contract. */
export type HostFacts = ReadonlySet<string>;

/**
 * An expression after checking: names are resolved, `let:` names are expanded, and every node has its type. Each read
 * of an optional member has a proof that the member is present. Plans, costs and proofs are made from it.
 */
export type Core = { readonly type: Type; readonly span: Span } & (
  | { readonly op: "constant"; readonly value: Value }
  /** `hostFacts` is for the facts: the members that count in a call by a host's key. */
  | { readonly op: "root"; readonly root: Root; readonly hostFacts?: HostFacts | undefined }
  | { readonly op: "counter"; readonly name: string }
  | { readonly op: "variable"; readonly slot: number }
  | { readonly op: "member"; readonly of: Core; readonly name: string }
  | { readonly op: "has"; readonly of: Core; readonly name: string }
  /** `.?name` and `[?at]`; `of` may be an optional. */
  | { readonly op: "select"; readonly of: Core; readonly at: Core }
  | { readonly op: "index"; readonly of: Core; readonly at: Core }
  | { readonly op: "not" | "negate"; readonly of: Core }
  | { readonly op: "and" | "or"; readonly left: Core; readonly right: Core }
  | { readonly op: "conditional"; readonly test: Core; readonly yes: Core; readonly no: Core }
  | { readonly op: "binary"; readonly operator: BinaryOperator; readonly left: Core; readonly right: Core }
  | CallPart
  | { readonly op: "list"; readonly items: readonly Core[] }
  | { readonly op: "map"; readonly entries: readonly (readonly [Core, Core])[] }
  | FoldCore
  | { readonly op: "broken" }
);

interface CallPart {
  readonly op: "call";
  readonly entry: ContractFunction;
  readonly args: readonly Core[];
}
export type CallCore = Core & CallPart;

export interface FoldCore {
  readonly op: "fold";
  readonly macro: Macro;
  readonly range: Core;
  readonly slot: number;
  /** The condition of `exists`, `all`, `exists_one`, `filter` and of `map` with three arguments. */
  readonly test: Core | undefined;
  /** The result of `map` for each item. */
  readonly body: Core | undefined;
}

export const macros = ["exists", "all", "exists_one", "filter", "map"] as const;
export type Macro = (typeof macros)[number];

export const roots = ["input", "platform", "tool", "now", "platform.present", "session.present"] as const;
export type Root = (typeof roots)[number];

/** The direct operands of an expression. */
export function children(core: Core): readonly Core[] {
  switch (core.op) {
    case "member":
    case "has":
    case "not":
    case "negate":
      return [core.of];
    case "select":
    case "index":
      return [core.of, core.at];
    case "and":
    case "or":
    case "binary":
      return [core.left, core.right];
    case "conditional":
      return [core.test, core.yes, core.no];
    case "call":
      return core.args;
    case "list":
      return core.items;
    case "map":
      return core.entries.flat();
    case "fold":
      return [core.range, core.test, core.body].filter((part) => part !== undefined);
    case "constant":
    case "root":
    case "counter":
    case "variable":
    case "broken":
      return [];
    default:
      return core satisfies never;
  }
}

/** Every node of an expression, the expression first. */
export function* walk(core: Core): Generator<Core> {
  const open = [core];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    yield node;
    open.push(...children(node).toReversed());
  }
}

/** For a list without a maximum length in its schema: as many items as fit into the largest body. */
const unboundedItems = 131_072;

/** The worst-case number of steps of one evaluation: a node costs one step, a list costs its length. */
export function worstCost(core: Core): number {
  if (core.op === "fold") {
    const each =
      (core.test === undefined ? 0 : worstCost(core.test)) + (core.body === undefined ? 0 : worstCost(core.body));
    return 1 + worstCost(core.range) + itemsMax(core.range.type) * (1 + each);
  }
  const inside = children(core).reduce((sum, child) => sum + worstCost(child), 1);
  if (core.op !== "binary") return inside;
  const lists = ["in", "==", "!=", "+"].includes(core.operator)
    ? Math.max(itemsMax(core.left.type), itemsMax(core.right.type))
    : 0;
  return inside + lists;
}

function itemsMax(type: Type): number {
  if (type.kind === "list") return type.maxItems ?? unboundedItems;
  if (type.kind !== "record") return 0;
  return type.others === undefined ? type.fields.size : unboundedItems;
}

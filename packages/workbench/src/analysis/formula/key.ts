import { children, spellValue, type Core } from "../../../../readers/src/ir.ts";

/** The names in a key that depend on its context. */
export interface KeyNames {
  /** An item of a current fold. */
  readonly variable: (slot: number) => string;
  /** One name for a counter, whichever contract reads it. */
  readonly counter: (name: string) => string;
}

/** An expression in one canonical spelling: two expressions with one key have the same value for the same call. */
export function keyWith(core: Core, names: KeyNames): string {
  const inside = children(core).map((child) => keyWith(child, names));
  return `${head(core, names)}(${inside.join(" ")})`;
}

/** The same for the conditions of one contract. The names of items are replaced by their depth. */
export function keyOf(core: Core): string {
  return keys.getOrInsertComputed(core, () => keyWithin(core, new Map()));
}

const keys = new WeakMap<Core, string>();

function keyWithin(core: Core, slots: ReadonlyMap<number, number>): string {
  const inner = (part: Core): string => (slots.size === 0 ? keyOf(part) : keyWithin(part, slots));
  if (core.op === "fold") {
    const inside = new Map([...slots, [core.slot, slots.size]]);
    const parts = [core.test, core.body].map((part) => (part === undefined ? "" : keyWithin(part, inside)));
    return `${inner(core.range)}.${core.macro}(${parts.join(", ")})`;
  }
  const found = children(core).map(inner);
  const names: KeyNames = {
    variable: (slot) => (slots.has(slot) ? `#${slots.get(slot)}` : `$${slot}`),
    counter: (name) => `counters.${name}`,
  };
  return `${head(core, names)}(${(canTurn(core) ? found.toSorted() : found).join(" ")})`;
}

/** `a == b` and `b == a` have one key; so do sums and products of numbers. */
function canTurn(core: Core): boolean {
  if (core.op !== "binary") return false;
  return (
    ["==", "!="].includes(core.operator) || (["+", "*"].includes(core.operator) && core.left.type.kind === "number")
  );
}

function head(core: Core, names: KeyNames): string {
  switch (core.op) {
    case "constant":
      return spellValue(core.value);
    case "root":
      return core.root;
    case "counter":
      return names.counter(core.name);
    case "variable":
      return names.variable(core.slot);
    case "member":
    case "has":
      return `${core.op} ${JSON.stringify(core.name)}`;
    case "binary":
      return core.operator;
    case "call":
      return `${core.entry.name}:${core.entry.parameters.join(",")}`;
    case "fold":
      return `${core.macro} $${core.slot} ${core.test === undefined ? "-" : "test"}`;
    default:
      return core.op;
  }
}

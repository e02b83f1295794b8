import { children, spellValue, type Core } from "../../../../svc-gate/src/contract/ir.ts";

/** The names in a key that depend on its context. */
export interface KeyNames {
  /** An item of a current fold. */
  readonly variable: (slot: number) => string;
  /** One name for a counter, whichever contract reads it. */
  readonly counter: (name: string) => string;
}

/** An expression in one canonical spelling: two expressions with one key have the same value for the same call. */
export function keyOf(core: Core, names: KeyNames): string {
  const inside = children(core).map((child) => keyOf(child, names));
  return `${head(core, names)}(${inside.join(" ")})`;
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

import { children, spellValue, type Core } from "../../../../svc-gate/src/contract/ir.ts";

/** How a key names what it cannot tell by itself. */
export interface KeyNames {
  /** An item that a fold has under way. */
  readonly variable: (slot: number) => string;
  /** One name for a counter, whichever contract reads it. */
  readonly counter: (name: string) => string;
}

/** An expression in one fixed spelling: two with one key come to the same of the same call. */
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

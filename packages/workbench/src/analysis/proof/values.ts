import type { Value } from "../../../../readers/src/contract.ts";
import { Duration, isExact, isList, Timestamp } from "../../../../readers/src/ir.ts";
import type { SymbolicValue } from "./symbolic-value.ts";
import { tagSymbol, type Sym, type SymList } from "./sym.ts";
import { literal, real } from "./term.ts";
import type { CoreType, SymbolicCall } from "./world.ts";

/** The value at a symbol, read as a value of the type. */
export function symAt(symbol: SymbolicValue, type: CoreType): Sym {
  switch (type.kind) {
    case "boolean":
      return { kind: "boolean", term: symbol.boolean };
    case "number":
    case "duration":
    case "timestamp":
      return { kind: "number", term: symbol.number };
    case "string":
      return { kind: "text", term: symbol.text };
    case "null":
      return { kind: "null" };
    case "list":
      return listAt(symbol, type.of);
    case "optional":
      return { kind: "optional", present: symbol.member("").present, value: symAt(symbol.member("").symbol, type.of) };
    case "record":
    case "nullable":
    case "any":
    case "memory":
    case "broken":
      return tagSymbol(symbol);
    default:
      return type satisfies never;
  }
}

function listAt(symbol: SymbolicValue, of: CoreType): SymList {
  if (symbol.view === "few")
    return {
      kind: "list",
      parts: symbol.allItems().map(([isThere, item]) => ({ isThere, value: symAt(item, of) })),
    };
  return {
    kind: "list",
    parts: [{ isThere: "true", symbol, takes: () => "true", make: (item) => symAt(item, of), isWhole: true }],
  };
}

/** A value of which only the type is known; the same for one key. */
export function opaqueValue(world: SymbolicCall, key: string, type: CoreType): Sym {
  return symAt(world.opaque(key, type), type);
}

export function constantSym(world: SymbolicCall, value: Value): Sym {
  if (value === null) return { kind: "null" };
  if (typeof value === "boolean") return { kind: "boolean", term: String(value) };
  if (typeof value === "string") {
    const term = literal(value);
    if (term !== undefined) return { kind: "text", term, known: value };
    return opaqueValue(world, JSON.stringify(value), { kind: "string" });
  }
  if (isExact(value)) return { kind: "number", term: real(value) };
  if (value instanceof Duration || value instanceof Timestamp) return { kind: "number", term: real(value.seconds) };
  if (isList(value))
    return { kind: "list", parts: value.map((item) => ({ isThere: "true", value: constantSym(world, item) })) };
  if (value instanceof Map)
    return { kind: "map", entries: new Map([...value].map(([name, item]) => [name, constantSym(world, item)])) };
  return { kind: "null" };
}

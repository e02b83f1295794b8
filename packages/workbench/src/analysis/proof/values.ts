import type { Value } from "../../../../svc-gate/src/contract/mod.ts";
import { Duration, isExact, isList, Timestamp } from "../../../../svc-gate/src/contract/ir.ts";
import type { Place } from "./place.ts";
import { taggedPlace, type Sym, type SymList } from "./sym.ts";
import { literal, real } from "./term.ts";
import type { Type, World } from "./world.ts";

/** What stands at a place, read as a value of the type. */
export function symAt(place: Place, type: Type): Sym {
  switch (type.kind) {
    case "boolean":
      return { kind: "boolean", term: place.boolean };
    case "number":
    case "duration":
    case "timestamp":
      return { kind: "number", term: place.number };
    case "string":
      return { kind: "text", term: place.text };
    case "null":
      return { kind: "null" };
    case "list":
      return listAt(place, type.of);
    case "optional":
      return { kind: "optional", present: place.member("").present, value: symAt(place.member("").place, type.of) };
    case "record":
    case "nullable":
    case "any":
    case "memory":
    case "broken":
      return taggedPlace(place);
    default:
      return type satisfies never;
  }
}

function listAt(place: Place, of: Type): SymList {
  if (place.view === "few")
    return {
      kind: "list",
      parts: place.allItems().map(([isThere, item]) => ({ isThere, value: symAt(item, of) })),
    };
  return {
    kind: "list",
    parts: [{ isThere: "true", place, takes: () => "true", make: (item) => symAt(item, of), isWhole: true }],
  };
}

/** A value of which nothing is known but its type; the same for one key. */
export function opaqueValue(world: World, key: string, type: Type): Sym {
  return symAt(world.opaque(key, type), type);
}

export function constantSym(world: World, value: Value): Sym {
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

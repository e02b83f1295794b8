import type { Core } from "../../../../readers/src/ir.ts";
import { merge, sameSym, type SymEvaluation, type ListPart, type Sym, type SymList } from "./sym.ts";
import { and, choose, equal, implies, not, or, sum, type Term } from "./term.ts";
import type { Script } from "./script.ts";
import { loweredEquals } from "./texts.ts";
import type { Translator } from "./translator.ts";
import { opaqueValue } from "./values.ts";
import type { CoreType } from "./world.ts";

export type Single = ListPart & { readonly value: Sym };

/** Every item separately, if the list is represented this way; else undefined. */
export function singles({ parts }: SymList): readonly Single[] | undefined {
  const found = parts.filter((part): part is Single => "value" in part);
  return found.length === parts.length ? found : undefined;
}

/** The operation on one item: receives its value, and a key that identifies it. */
type OnItem = (value: Sym, key: string) => Term;

function every({ parts }: SymList, name: string, of: OnItem): Term {
  return and(
    ...parts.map((part, at) =>
      "value" in part
        ? implies(part.isThere, of(part.value, `${name}#${at}`))
        : implies(
            part.isThere,
            part.symbol.every((item) => implies(part.takes(item), of(part.make(item), `${name}#${item.id}`))),
          ),
    ),
  );
}

export function some(list: SymList, name: string, of: OnItem): Term {
  return not(every(list, name, (value, key) => not(of(value, key))));
}

/** `value in list`, and `"name" in object`; undefined if it cannot be translated. */
export function isIn(script: Script, core: Core & { op: "binary" }, left: Sym, right: Sym): Term | undefined {
  if (right.kind === "list") {
    let isKnown = true;
    const found = some(right, "in", (value) => {
      const same = loweredEquals(script, left, value) ?? sameSym(left, value);
      isKnown &&= same !== undefined;
      return same ?? "false";
    });
    const item = core.right.type.kind === "list" ? core.right.type.of : core.right.type;
    return isKnown && (isSingle(core.left.type) || isSingle(item)) ? found : undefined;
  }
  const name = core.left.op === "constant" && typeof core.left.value === "string" ? core.left.value : undefined;
  if (name === undefined) return undefined;
  if (right.kind === "map") return right.entries.has(name) ? "true" : "false";
  return right.kind === "tagged" && right.symbol !== undefined ? right.symbol.member(name).present : undefined;
}

/** Is a value of the type neither a list nor an object? */
export function isSingle(type: CoreType): boolean {
  if (type.kind === "nullable" || type.kind === "optional") return isSingle(type.of);
  return ["boolean", "string", "number", "null", "duration", "timestamp"].includes(type.kind);
}

/** Are the lists equal? Undefined if their items do not determine it. */
export function listsEqual(left: SymList, right: SymList): Term | undefined {
  const [a, b] = [singles(left), singles(right)];
  if (right.parts.length === 0) return every(left, "==", () => "false");
  if (left.parts.length === 0) return every(right, "==", () => "false");
  if (a === undefined || b === undefined) return undefined;
  // Items are in order, and each one is present only if those before it are.
  if (!isPrefix(a) || !isPrefix(b)) return undefined;
  const length = Math.max(a.length, b.length);
  const pairs = Array.from({ length }, (_, at): Term | undefined => {
    const [x, y] = [a[at], b[at]];
    if (x === undefined || y === undefined) return not((x ?? y)?.isThere ?? "false");
    const same = sameSym(x.value, y.value);
    return same === undefined ? undefined : and(equal(x.isThere, y.isThere), implies(x.isThere, same));
  });
  return pairs.includes(undefined) ? undefined : and(...pairs.map((pair) => pair ?? "false"));
}

function isPrefix(parts: readonly Single[]): boolean {
  const [first] = parts;
  const length = /^\(< 0 (c[0-9]+)\)$/.exec(first?.isThere ?? "")?.[1];
  return (
    parts.every(({ isThere }, at) => isThere === "true" || isThere === `(< ${at} ${length ?? ""})`) &&
    new Set(parts.map(({ isThere }) => isThere === "true")).size === 1
  );
}

/** The number of items. For a filtered list of any length, a number that is consistent with the known facts. */
export function sizeOf({ world }: Translator, list: SymList, key: string): Sym {
  const counts = list.parts.map((part, at): Term => {
    if ("value" in part) return choose(part.isThere, "1.0", "0.0");
    const length = `(to_real ${part.symbol.length})`;
    if (part.isWhole) return choose(part.isThere, length, "0.0");
    const count = world.opaque(`${key}#${at}`, { kind: "number", notNegative: true }).number;
    const isEmpty = part.symbol.every((item) => not(part.takes(item)));
    world.script.assert(and(`(is_int ${count})`, `(<= ${count} ${length})`, equal(equal(count, "0.0"), isEmpty)));
    return choose(part.isThere, count, "0.0");
  });
  return { kind: "number", term: sum(counts.length === 0 ? ["0.0"] : counts) };
}

interface IndexQuery {
  readonly at: Sym;
  readonly key: string;
  readonly type: CoreType;
}

/** The item at an index; fails if there is none. */
export function evaluateIndex(translator: Translator, list: SymList, { at, key, type }: IndexQuery): SymEvaluation {
  const { world } = translator;
  const index = at.kind === "number" ? at.term : "0.0";
  const items = singles(list);
  const [part] = list.parts;
  if (items !== undefined) {
    const symbol = (position: number): Term =>
      and(
        items[position]?.isThere ?? "false",
        equal(index, sum(["0.0", ...items.slice(0, position).map(({ isThere }) => choose(isThere, "1.0", "0.0"))])),
      );
    const isAt = items.map((_, position) => symbol(position));
    const value = items.reduceRight<Sym | undefined>(
      (rest, item, position) =>
        rest === undefined ? undefined : merge(isAt[position] ?? "false", item.value, rest, isSingle(type)),
      items.at(-1)?.value,
    );
    return { value: value ?? opaqueValue(world, key, type), fails: not(or(...isAt)) };
  }
  const number = /^([0-9]{1,6})\.0$/.exec(index)?.[1];
  if (list.parts.length === 1 && part !== undefined && "symbol" in part && part.isWhole && number !== undefined) {
    const item = part.symbol.itemAt(Number(number));
    return { value: part.make(item), fails: not(and(part.isThere, `(< ${number} ${part.symbol.length})`)) };
  }
  return { value: opaqueValue(world, key, type), fails: world.unknown(`${key} fails`) };
}

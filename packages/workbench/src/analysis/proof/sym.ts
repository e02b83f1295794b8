import { tags, type SymbolicValue } from "./symbolic-value.ts";
import { and, choose, equal, not, or, type Term } from "./term.ts";

/** The value of an expression, as terms. */
export type Sym =
  | { readonly kind: "boolean" | "number"; readonly term: Term }
  /** `lowered`: the text is this one with A to Z in lower case. */
  | { readonly kind: "text"; readonly term: Term; readonly lowered?: Term; readonly known?: string }
  | { readonly kind: "null" }
  | TaggedSym
  | { readonly kind: "optional"; readonly present: Term; readonly value: Sym }
  | SymList
  | { readonly kind: "map"; readonly entries: ReadonlyMap<string, Sym> };

/** A value whose schema does not determine a single type, or an object. */
export interface TaggedSym {
  readonly kind: "tagged";
  readonly tag: Term;
  readonly boolean: () => Term;
  readonly number: () => Term;
  readonly text: () => Term;
  readonly symbol: SymbolicValue | undefined;
}

export interface SymList {
  readonly kind: "list";
  readonly parts: readonly ListPart[];
}

/**
 * One item, which exists if `isThere`; or the items of a list of unknown length: those that are selected, and their
 * results.
 */
export type ListPart =
  | { readonly isThere: Term; readonly value: Sym }
  | {
      readonly isThere: Term;
      readonly symbol: SymbolicValue;
      readonly takes: (item: SymbolicValue) => Term;
      readonly make: (item: SymbolicValue) => Sym;
      readonly isWhole: boolean;
    };

/** The value of an expression, and when its evaluation fails. If it fails, the value has no meaning. */
export interface SymEvaluation {
  readonly value: Sym;
  readonly fails: Term;
}

export function tagSymbol(symbol: SymbolicValue): TaggedSym {
  return {
    kind: "tagged",
    tag: symbol.tag,
    boolean: () => symbol.boolean,
    number: () => symbol.number,
    text: () => symbol.text,
    symbol,
  };
}

/** The value in tagged form; undefined for anything but a single JSON value. */
export function tagValue(value: Sym): TaggedSym | undefined {
  const base = {
    kind: "tagged",
    boolean: () => "false",
    number: () => "0.0",
    text: () => '""',
    symbol: undefined,
  } as const;
  if (value.kind === "tagged") return value;
  if (value.kind === "null") return { ...base, tag: String(tags.null) };
  if (value.kind !== "boolean" && value.kind !== "number" && value.kind !== "text") return undefined;
  return { ...base, tag: String(tags[value.kind]), [value.kind]: () => value.term };
}

/**
 * One value or the other; undefined if their representations are too different.
 *
 * @param isSingle neither is a list or an object
 */
export function merge(condition: Term, yes: Sym, no: Sym, isSingle: boolean): Sym | undefined {
  if (condition === "true") return yes;
  if (condition === "false") return no;
  if (yes.kind === "list" && no.kind === "list")
    return { kind: "list", parts: [...guardItems(yes, condition), ...guardItems(no, not(condition))] };
  if (yes.kind === "optional" && no.kind === "optional") {
    const value = merge(condition, yes.value, no.value, isSingle);
    return value && { kind: "optional", present: choose(condition, yes.present, no.present), value };
  }
  if ((yes.kind === "boolean" || yes.kind === "number" || yes.kind === "text") && yes.kind === no.kind)
    return { kind: yes.kind, term: choose(condition, yes.term, no.term) };
  const [a, b] = [tagValue(yes), tagValue(no)];
  if (a === undefined || b === undefined) return undefined;
  if (a.symbol !== undefined && a.symbol === b.symbol) return a;
  return isSingle ? mergeSingle(condition, a, b) : undefined;
}

function mergeSingle(condition: Term, a: TaggedSym, b: TaggedSym): TaggedSym {
  return {
    kind: "tagged",
    tag: choose(condition, a.tag, b.tag),
    boolean: () => choose(condition, a.boolean(), b.boolean()),
    number: () => choose(condition, a.number(), b.number()),
    text: () => choose(condition, a.text(), b.text()),
    symbol: undefined,
  };
}

/** The items, present only if the condition is true. */
export function guardItems({ parts }: SymList, condition: Term): readonly ListPart[] {
  return parts.map((part) => ({ ...part, isThere: and(part.isThere, condition) }));
}

/** Are two values equal, if at least one is neither a list nor an object? Undefined if they are not JSON. */
export function sameSym(left: Sym, right: Sym): Term | undefined {
  if ((left.kind === "boolean" || left.kind === "number" || left.kind === "text") && left.kind === right.kind)
    return equal(left.term, right.term);
  const [a, b] = [tagValue(left), tagValue(right)];
  if (a === undefined || b === undefined) return undefined;
  const same = (tag: number, what: Term): Term => and(equal(a.tag, String(tag)), equal(b.tag, String(tag)), what);
  return or(
    same(tags.null, "true"),
    same(tags.boolean, equal(a.boolean(), b.boolean())),
    same(tags.number, equal(a.number(), b.number())),
    same(tags.text, equal(a.text(), b.text())),
  );
}

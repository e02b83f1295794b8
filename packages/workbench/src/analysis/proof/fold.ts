import type { Core } from "../../../../readers/src/ir.ts";
import { singles, some, type Single } from "./lists.ts";
import type { SymEvaluation, ListPart, Sym, SymList } from "./sym.ts";
import { and, equal, implies, not, or, sum, choose, type Term } from "./term.ts";
import type { Bindings, Translator } from "./translator.ts";

type FoldExpression = Core & { readonly op: "fold" };

/** `exists`, `all`, `exists_one`, `filter` and `map`, with the errors of their bodies. */
export function foldSym(translator: Translator, core: FoldExpression, bound: Bindings, key: string): SymEvaluation {
  const range = translator.evaluate(core.range, bound);
  if (range.value.kind !== "list") {
    const fails =
      core.test === undefined && core.body === undefined ? range.fails : translator.world.unknown(`${key} fails`);
    return translator.opaque(core, key, or(range.fails, fails));
  }
  const list = range.value;
  const body = bodyOf(translator, core, bound);
  const items = singles(list);
  const made = items === undefined ? ofAny(translator, { core, list, body, key }) : ofFew(core, items, body);
  return { value: made.value, fails: or(range.fails, made.fails) };
}

/** The evaluation of a fold for one item. */
interface Body {
  readonly test: (value: Sym, key: string) => { readonly isTrue: Term; readonly fails: Term };
  readonly make: (value: Sym, key: string) => SymEvaluation;
  /** Does the test fail, or the result for an item that the test accepts? */
  readonly fails: (value: Sym, key: string) => Term;
  /** A unique name for one item among those of other folds. */
  readonly name: string;
}

function bodyOf(translator: Translator, core: FoldExpression, bound: Bindings): Body {
  const inside = (value: Sym, key: string): Bindings => new Map([...bound, [core.slot, { value, key }]]);
  const test: Body["test"] = (value, key) =>
    core.test === undefined ? { isTrue: "true", fails: "false" } : translator.condition(core.test, inside(value, key));
  const make: Body["make"] = (value, key) =>
    core.body === undefined ? { value, fails: "false" } : translator.evaluate(core.body, inside(value, key));
  const fails: Body["fails"] = (value, key) => {
    const tested = test(value, key);
    return or(tested.fails, and(tested.isTrue, make(value, key).fails));
  };
  return { test, make, fails, name: translator.key(core.range, bound) };
}

/** One item after another, as the engine evaluates them. */
function ofFew({ macro }: FoldExpression, items: readonly Single[], body: Body): SymEvaluation {
  const tests = items.map(({ value }, at) => body.test(value, `${body.name}#${at}`));
  const isTrue = items.map(({ isThere }, at) => and(isThere, tests[at]?.isTrue ?? "false"));
  const failed = items.map(({ isThere, value }, at) => and(isThere, body.fails(value, `${body.name}#${at}`)));
  if (macro === "exists" || macro === "all") {
    const stops = items.map(({ isThere }, at) => {
      const test = tests[at] ?? { isTrue: "false", fails: "false" };
      return and(isThere, not(test.fails), macro === "exists" ? test.isTrue : not(test.isTrue));
    });
    const fails = or(...failed.map((each, at) => and(each, ...stops.slice(0, at).map(not))));
    const stopped = or(...stops);
    return { value: { kind: "boolean", term: macro === "exists" ? stopped : not(stopped) }, fails };
  }
  const fails = or(...failed);
  if (macro === "exists_one") {
    const count = sum(["0.0", ...isTrue.map((each) => choose(each, "1.0", "0.0"))]);
    return { value: { kind: "boolean", term: equal(count, "1.0") }, fails };
  }
  const parts = items.map(({ value }, at): ListPart => ({
    isThere: isTrue[at] ?? "false",
    value: body.make(value, `${body.name}#${at}`).value,
  }));
  return { value: { kind: "list", parts }, fails };
}

interface Whole {
  readonly core: FoldExpression;
  readonly list: SymList;
  readonly body: Body;
  readonly key: string;
}

/** With statements about some item and about every item: valid for lists of any length. */
function ofAny({ world }: Translator, { core, list, body, key }: Whole): SymEvaluation {
  const { name } = body;
  switch (core.macro) {
    case "exists":
    case "all": {
      const stops = some(list, name, (value, item) => {
        const { isTrue, fails } = body.test(value, item);
        return and(not(fails), core.macro === "exists" ? isTrue : not(isTrue));
      });
      return {
        value: { kind: "boolean", term: core.macro === "exists" ? stops : not(stops) },
        fails: failsBefore(stops),
      };
    }
    case "exists_one": {
      const term = world.unknown(key);
      const found = some(list, name, (value, item) => body.test(value, item).isTrue);
      world.script.assert(implies(term, found));
      return { value: { kind: "boolean", term }, fails: failsAnywhere() };
    }
    case "filter":
    case "map":
      return { value: { kind: "list", parts: list.parts.map(foldPart) }, fails: failsAnywhere() };
    default:
      return core.macro satisfies never;
  }

  function failsAnywhere(): Term {
    return some(list, name, (value, item) => body.fails(value, item));
  }

  /** An item that fails may come after an item that stops the fold: then it is not evaluated. */
  function failsBefore(stops: Term): Term {
    const anywhere = failsAnywhere();
    if (anywhere === "false") return "false";
    const before = world.unknown(`${key} fails first`);
    return and(anywhere, or(not(stops), before));
  }

  function foldPart(part: ListPart, at: number): ListPart {
    if ("value" in part) {
      const item = `${name}#${at}`;
      const { isTrue } = body.test(part.value, item);
      return { isThere: and(part.isThere, isTrue), value: body.make(part.value, item).value };
    }
    return {
      isThere: part.isThere,
      symbol: part.symbol,
      takes: (item) => and(part.takes(item), body.test(part.make(item), `${name}#${item.id}`).isTrue),
      make: (item) => body.make(part.make(item), `${name}#${item.id}`).value,
      isWhole: part.isWhole && core.macro === "map" && core.test === undefined,
    };
  }
}

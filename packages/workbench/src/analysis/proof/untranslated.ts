import { EvaluationError, type Value } from "../../../../readers/src/contract.ts";
import { isExact, isList, Timestamp, walk, type Core, type ToolPlan } from "../../../../readers/src/ir.ts";
import { itemsMax, tags, type SymbolicValue } from "./symbolic-value.ts";
import { shortName } from "../formula/subject.ts";
import type { Sym } from "./sym.ts";
import { and, equal, literal, not, or, real, type Term } from "./term.ts";

/** A call of a function that the solver cannot model: the solver may choose its value. */
export interface FreeCall {
  readonly core: Core & { op: "call" };
  readonly args: readonly Sym[];
  /** The symbol of the free value. */
  readonly symbol: SymbolicValue;
  /** When the call fails; undefined if only its arguments can fail. */
  readonly fails: Term | undefined;
}

/** Values that are tried for one call: more would make the question too long. */
const triesMax = 24;

/**
 * Restricts each free call to arguments that were tried, with the values that the engine computes for them. The engine
 * decides a call that satisfies this as the question predicts. If no call satisfies it, that proves nothing.
 *
 * @param texts values that the contracts compare with
 * @param round one try for each call; undefined for any of them
 */
export function restrictFreeCalls(
  calls: readonly FreeCall[],
  texts: readonly string[],
  round: number | undefined,
): Term {
  return and(
    ...calls.map((call) => {
      const tries = triesOf(call, texts);
      if (tries === undefined) return "true";
      return round === undefined ? or(...tries) : (tries[round % Math.max(1, tries.length)] ?? "false");
    }),
  );
}

/** Undefined if the arguments cannot be listed. */
function triesOf({ core, args, symbol, fails }: FreeCall, texts: readonly string[]): readonly Term[] | undefined {
  const choices = args.map((arg, at) => valuesFor(core, arg, at, texts));
  if (choices.includes(undefined)) return undefined;
  const found: Term[] = [];
  for (const values of combinations(choices.map((each) => each ?? []))) {
    if (found.length >= triesMax) break;
    const result = run(core, values);
    const isSame = and(...args.map((arg, at) => (isKnown(arg) ? "true" : equalTo(arg, values[at] ?? null))));
    if (result === undefined) found.push(and(isSame, fails ?? "false"));
    else {
      const stands = standsAt(symbol, result);
      if (stands !== undefined) found.push(and(isSame, stands, fails === undefined ? "true" : not(fails)));
    }
  }
  return found;
}

function run({ entry }: Core & { op: "call" }, args: readonly Value[]): Value | undefined {
  try {
    return entry.run(args);
  } catch (error) {
    if (error instanceof EvaluationError) return undefined;
    throw error;
  }
}

/** An evening and a morning of a working day, and a Saturday. */
const moments: readonly number[] = [1_700_000_000, 1_700_042_400, 1_700_308_800];

/** The values to try for an argument; undefined if they cannot be listed. */
function valuesFor(
  core: Core & { op: "call" },
  arg: Sym,
  at: number,
  texts: readonly string[],
): readonly Value[] | undefined {
  if (arg.kind === "text" && arg.known !== undefined) return [arg.known];
  if (arg.kind === "text") return textsFor(core, texts);
  if (arg.kind !== "number") return undefined;
  if (core.entry.parameters[at] === "timestamp") return moments.map((seconds) => new Timestamp(seconds));
  return core.entry.parameters[at] === "number" ? [0, 1, ...moments] : undefined;
}

function isKnown(arg: Sym): boolean {
  return arg.kind === "text" && arg.known !== undefined;
}

/** Texts of the function's examples and of the contracts, and URLs and similar texts made from them. */
function textsFor({ entry }: Core & { op: "call" }, texts: readonly string[]): readonly string[] {
  const shown = entry.examples.flatMap(([expression]) =>
    [...expression.matchAll(/"((?:[^"\\]|\\["\\])*)"/g)].map(([, text = ""]) => text.replace(/\\(["\\])/g, "$1")),
  );
  const made = texts.flatMap((text) => templates[entry.name]?.(text) ?? []);
  const usual = usualTexts[entry.name] ?? [];
  return [...new Set([...usual, ...made, ...texts, ...shown])];
}

const usualZones = ["UTC", "Europe/Berlin"];
const usualTexts: Readonly<Record<string, readonly string[]>> = {
  shell: ["ls"],
  patch: ["*** Begin Patch\n*** Add File: a\n*** End Patch"],
  date: usualZones,
  day: usualZones,
  hour: usualZones,
};
const templates: Readonly<Record<string, (text: string) => readonly string[]>> = {
  url: (text) => (/^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/.test(text) ? [`https://${text}/`] : []),
  email: (text) => (/^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/.test(text) ? [`a@${text}`] : []),
  patch: (text) => (/^[\w./-]+$/.test(text) ? [`*** Begin Patch\n*** Add File: ${text}\n*** End Patch`] : []),
  sql: (text) => (/^[a-z_]+$/.test(text) ? [`select a from ${text}`, `delete from ${text}`] : []),
};

/** Every combination of one value from each list; the first list varies slowest. */
function* combinations(lists: readonly (readonly Value[])[]): Generator<readonly Value[]> {
  const [first, ...others] = lists;
  if (first === undefined) {
    yield [];
    return;
  }
  for (const rest of combinations(others)) for (const value of first) yield [value, ...rest];
}

function equalTo(arg: Sym, value: Value): Term {
  if (arg.kind === "text" && typeof value === "string") {
    const text = literal(value);
    return text === undefined ? "false" : equal(arg.term, text);
  }
  const number = value instanceof Timestamp ? value.seconds : value;
  return arg.kind === "number" && isExact(number) ? equal(arg.term, real(number)) : "false";
}

/** Asserts that the symbol has the value, for each part that was read; undefined for a list that is too long. */
function standsAt(symbol: SymbolicValue, value: Value): Term | undefined {
  const part = (name: string, is: Term): Term => {
    const term = symbol.parts.get(name);
    return term === undefined ? "true" : equal(term, is);
  };
  const tag = (name: keyof typeof tags): Term => part("tag", String(tags[name]));
  if (value === null) return tag("null");
  if (typeof value === "boolean") return and(tag("boolean"), part("boolean", String(value)));
  if (typeof value === "string") {
    const text = literal(value);
    return text === undefined ? undefined : and(tag("text"), part("text", text));
  }
  if (isList(value)) {
    if (value.length > itemsMax) return undefined;
    const items = value.map((item, at) => {
      const known = symbol.items[at];
      return known === undefined ? "true" : standsAt(known, item);
    });
    if (items.includes(undefined)) return undefined;
    return and(tag("list"), part("length", String(value.length)), ...items.map((item) => item ?? ""));
  }
  if (value instanceof Map) {
    const members = [...symbol.members].map(([name, member]) => {
      const inner = (value as ReadonlyMap<string, Value>).get(name);
      if (inner === undefined) return not(member.present);
      const stands = standsAt(member.symbol, inner);
      return stands === undefined ? undefined : and(member.present, stands);
    });
    return members.includes(undefined) ? undefined : and(tag("object"), ...members.map((member) => member ?? ""));
  }
  const number = typeof value === "object" && "seconds" in value ? value.seconds : value;
  return isExact(number) ? and(tag("number"), part("number", real(number))) : undefined;
}

/** The maximum number of rules that notes name. */
const namedMax = 4;

/** The rules that prevent a result for the tool, and their parts that the solver cannot model. */
export function describeUndecided(plans: readonly ToolPlan[], functions: ReadonlySet<string>): readonly string[] {
  const found = new Map<string, Set<string>>();
  for (const { presence, requires, rules } of plans.flatMap(({ routes }) => routes)) {
    for (const { id, when, ...rest } of [...presence, ...requires, ...rules]) {
      const shows = "shows" in rest ? rest.shows : [];
      const what = [when, ...shows].flatMap((core) => [...walk(core)].flatMap((node) => blindSpot(node, functions)));
      if (what.length > 0) found.set(id, new Set([...(found.get(id) ?? []), ...what]));
    }
  }
  const notes = [...found].map(
    ([id, what]) => `not decided: ${ruleText(id)} ${formatList(what)}, which the solver cannot model`,
  );
  const more = notes.length > namedMax ? [`not decided: ${notes.length - namedMax} more rules of that kind`] : [];
  return [...notes.slice(0, namedMax), ...more];
}

function blindSpot(node: Core, functions: ReadonlySet<string>): readonly string[] {
  if (node.op === "call" && functions.has(node.entry.name)) return [`calls ${node.entry.name}()`];
  if (node.op !== "binary" || node.right.op !== "counter" || node.right.type.kind !== "memory") return [];
  return [`reads the values of counter ${shortName(node.right.name)}`];
}

function ruleText(id: string): string {
  const number = /\.\$requires\.([0-9]+)$/.exec(id)?.[1];
  return number === undefined ? `rule ${shortName(id)}` : `requirement ${number} of ${id.slice(0, id.indexOf("."))}`;
}

function formatList(what: ReadonlySet<string>): string {
  return [...what].join(" and ");
}

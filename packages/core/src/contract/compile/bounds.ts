import { children, walk, type CallCore, type Core } from "../core/core.ts";
import { exactText, isExact } from "../value/rational.ts";
import { findPresencePath, isNumber, memberPath } from "./reads.ts";

/**
 * How a later call may differ from one for which a rule fired, in a member that the rule reads, without being a worse
 * one: a number may be at most what it was, or at least that; a member of which only the presence is read must be there, or
 * not, as it was. A command line that a table judges must be the same, or of the same form. All else must be the same.
 */
export type Bound = "form" | "least" | "most" | "present" | "same";

/** 1 if a higher value lets the condition fire sooner, -1 if a lower one does, 0 if nobody knows. */
type Direction = -1 | 0 | 1;

/**
 * The members that a condition reads, each with its bound, without those that may differ. The bounds are valid only for
 * numbers that are not negative: a call with others is bound to be the same.
 *
 * @param isFree whether a member may differ
 */
export function boundsOf(condition: Core, isFree: (path: string) => boolean): ReadonlyMap<string, Bound> {
  const found = new Map<string, Bound>();
  const read: BoundCollector = {
    isFree,
    found: (path, bound) => {
      if (!isFree(path)) found.set(path, mergedBound(found.get(path), bound));
    },
  };
  visit(condition, 1, read);
  return found;
}

interface BoundCollector {
  readonly isFree: (path: string) => boolean;
  /** Called for each read. */
  readonly found: (path: string, bound: Bound) => void;
}

/** The bound that meets both. */
export function mergedBound(one: Bound | undefined, other: Bound): Bound {
  if (one === undefined || one === "present" || one === other) return other;
  return other === "present" ? one : "same";
}

function visit(core: Core, direction: Direction, read: BoundCollector): void {
  const presence = findPresencePath(core);
  const path = presence ?? memberPath(core);
  if (path !== undefined) return read.found(path, presence === undefined ? boundOf(core, direction) : "present");
  const turns = turnsOf(core, read);
  for (const [index, part] of children(core).entries()) {
    const line = index === 0 ? commandLineOf(core) : undefined;
    if (line === undefined) visit(part, (direction * (turns[index] ?? 0)) as Direction, read);
    else read.found(line, "form");
  }
}

/** The member with the command line that a call judges by a table; undefined for any other expression. */
export function commandLineOf(core: Core): string | undefined {
  const [line] = core.op === "call" && core.entry.line !== undefined ? core.args : [];
  return line && memberPath(line);
}

/**
 * The call by which a condition judges its one command line; undefined if it has another one, reads the line in another way, or
 * calls it for each item of a list. All uses of a `let:` are one call.
 */
export function findCommandLine(condition: Core): CallCore | undefined {
  const calls = [...walk(condition)].filter((node) => node.op === "call" && node.entry.line !== undefined);
  const [call, ...others] = new Map(calls.map((each) => [placeOf(each), each])).values();
  const member = call && commandLineOf(call);
  if (call?.op !== "call" || member === undefined || others.length > 0) return undefined;
  const isPlain = ![...walk(call)].some(({ op }) => op === "variable");
  return isPlain && boundsOf(condition, () => false).get(member) === "form" ? call : undefined;
}

/** The members that a condition reads outside of a call. */
export function membersBeside(core: Core, call: Core): readonly string[] {
  const path = findPresencePath(core) ?? memberPath(core);
  if (path !== undefined) return [path];
  return placeOf(core) === placeOf(call) ? [] : children(core).flatMap((part) => membersBeside(part, call));
}

export function placeOf({ span: { file, from, to } }: Core): string {
  return `${file.name}:${from}:${to}`;
}

function boundOf({ type }: Core, direction: Direction): Bound {
  if (direction === 0 || !isNumber(type)) return "same";
  return direction === 1 ? "most" : "least";
}

/** How the value of an expression moves with each of its operands. */
function turnsOf(core: Core, read: BoundCollector): readonly Direction[] {
  switch (core.op) {
    case "and":
    case "or":
      return [1, 1];
    case "not":
    case "negate":
      return [-1];
    case "conditional":
      return [0, 1, 1];
    case "call":
      return rising.has(core.entry.name) ? core.args.map(() => 1) : [];
    case "binary":
      return binaryTurns(core, read);
    default:
      return [];
  }
}

/** Functions whose result rises with each argument. */
const rising: ReadonlySet<string> = new Set(["orValue", "timestamp"]);

function binaryTurns(
  { operator, left, right }: Core & { readonly op: "binary" },
  { isFree }: BoundCollector,
): readonly Direction[] {
  switch (operator) {
    case ">":
    case ">=":
    case "-":
      return [1, -1];
    case "<":
    case "<=":
      return [-1, 1];
    case "+":
      return [1, 1];
    case "*":
      return [isPositive(right, isFree) ? 1 : 0, isPositive(left, isFree) ? 1 : 0];
    case "/":
      return [isPositive(right, isFree) ? 1 : 0, isPositive(left, isFree) ? -1 : 0];
    default:
      return [];
  }
}

/** Is it never negative, if no number that it reads from the call is, and none of these is free? */
function isPositive(core: Core, isFree: BoundCollector["isFree"]): boolean {
  const path = memberPath(core);
  if (path !== undefined) return isNumber(core.type) && !isFree(path);
  const isAlso = (part: Core): boolean => isPositive(part, isFree);
  if (core.op === "constant") return isExact(core.value) && !exactText(core.value).startsWith("-");
  if (core.op === "binary") return ["+", "*", "/"].includes(core.operator) && children(core).every(isAlso);
  return core.op === "call" && core.entry.name === "orValue" && core.args.every(isAlso);
}

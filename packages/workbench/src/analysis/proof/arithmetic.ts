import type { Script } from "./script.ts";
import type { SymEvaluation, Sym } from "./sym.ts";
import { choose, equal, or, type Term } from "./term.ts";

/** Compares numbers, times and texts; undefined for values without an order. */
export function comparison(operator: "<" | "<=" | ">" | ">=", left: Sym, right: Sym): Term | undefined {
  if (left.kind === "number" && right.kind === "number") return `(${operator} ${left.term} ${right.term})`;
  if (left.kind !== "text" || right.kind !== "text") return undefined;
  const [a, b] = operator === "<" || operator === "<=" ? [left.term, right.term] : [right.term, left.term];
  const less = `(str.< ${a} ${b})`;
  return operator === "<" || operator === ">" ? less : or(less, equal(a, b));
}

/** `+ - * / %`, exactly; undefined if it cannot be translated. */
export function arithmetic(script: Script, operator: string, left: Sym, right: Sym): SymEvaluation | undefined {
  if (left.kind === "text" && right.kind === "text" && operator === "+")
    return { value: { kind: "text", term: `(str.++ ${left.term} ${right.term})` }, fails: "false" };
  if (left.kind === "list" && right.kind === "list" && operator === "+")
    return { value: { kind: "list", parts: [...left.parts, ...right.parts] }, fails: "false" };
  if (left.kind !== "number" || right.kind !== "number") return undefined;
  const [a, b] = [left.term, right.term];
  switch (operator) {
    case "+":
    case "-":
    case "*":
      return { value: { kind: "number", term: `(${operator} ${a} ${b})` }, fails: "false" };
    case "/":
    case "%": {
      const term = operator === "/" ? `(/ ${a} ${b})` : remainder(script, a, b);
      return { value: { kind: "number", term }, fails: isZero(b) };
    }
    default:
      return undefined;
  }
}

/** The remainder, with the sign of the left operand: the quotient is truncated towards zero. */
function remainder(script: Script, a: Term, b: Term): Term {
  const quotient = `(/ ${a} ${b})`;
  const cut = choose(`(>= ${quotient} 0.0)`, `(to_int ${quotient})`, `(- (to_int (- ${quotient})))`);
  const rest = `(- ${a} (* ${b} (to_real ${cut})))`;
  const by = /^(?:\(- )?([1-9][0-9]{0,14})\.0\)?$/.exec(b)?.[1];
  if (by === undefined) return rest;
  const whole = script.wholeOf(a);
  const wholeRest = `(to_real (ite (>= ${whole} 0) (mod ${whole} ${by}) (- (mod (- ${whole}) ${by}))))`;
  return choose(script.isWhole(a), wholeRest, rest);
}

function isZero(term: Term): Term {
  if (/[a-z]/.test(term)) return equal(term, "0.0");
  return /[1-9]/.test(term) ? "false" : "true";
}

import type { Expression } from "./language.ts";

/** Returns the direct parts of an expression. */
export function parts(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case "list":
      return expression.items;
    case "map":
      return expression.entries.map(([, value]) => value);
    case "member":
    case "has":
    case "not":
    case "minus":
      return [expression.of];
    case "default":
      return [expression.of, expression.otherwise];
    case "asked":
      return [expression.value];
    case "index":
      return [expression.of, expression.at];
    case "binary":
      return [expression.left, expression.right];
    case "choice":
      return [expression.condition, expression.yes, expression.no];
    case "fold":
      return [expression.over, expression.body];
    case "call":
      return expression.argument === undefined ? [expression.of] : [expression.of, expression.argument];
    default:
      return [];
  }
}

/** Returns the names that an expression reads: roots, `limits` and `counters`, also through `let`s. */
export function reads(expression: Expression, lets: readonly (readonly [string, Expression])[]): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (each: Expression): void => {
    if (each.kind === "root") found.add(each.name);
    if (each.kind === "limit") found.add("limits");
    if (each.kind === "counter" || each.kind === "asked") found.add("counters");
    const meaning = each.kind === "name" ? lets.findLast(([name]) => name === each.name)?.[1] : undefined;
    if (meaning !== undefined) visit(meaning);
    parts(each).forEach(visit);
  };
  visit(expression);
  return found;
}

/** Returns the names that an expression uses: of `let`s and of macros' variables. */
export function names(expression: Expression): ReadonlySet<string> {
  const own = expression.kind === "name" ? [expression.name] : [];
  return new Set([...own, ...parts(expression).flatMap((part) => [...names(part)])]);
}

import type { PolicySet } from "../../../readers/src/contract.ts";
import type { Rule } from "../../../readers/src/ir.ts";
import { isStricter, type Verdict } from "../../../core/src/wire/mod.ts";

/** A rule that is milder than the `otherwise` of a tool: with it calls of the tool get through. */
export interface LooseningRule {
  readonly tool: string;
  readonly rule: Rule;
  readonly otherwise: Verdict;
}

/** Not defects: a reviewer reads these rules first, because any other rule can only make a verdict stricter. */
export function looseningRules({ tools }: PolicySet): readonly LooseningRule[] {
  return [...tools.values()].flatMap(({ tool, routes }) =>
    routes.flatMap(({ rules, otherwise }) =>
      rules
        .filter(({ verdict, observed }) => !observed && isStricter(otherwise, verdict))
        .map((rule) => ({ tool, rule, otherwise })),
    ),
  );
}

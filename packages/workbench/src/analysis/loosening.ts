import type { PolicySet } from "../../../svc-gate/src/contract/mod.ts";
import type { Rule } from "../../../svc-gate/src/contract/ir.ts";
import { isStricter, type Verdict } from "../../../svc-gate/src/wire/mod.ts";

/** A rule that is milder than the `otherwise` of a tool: it is how calls of the tool get through. */
export interface Loosening {
  readonly tool: string;
  readonly rule: Rule;
  readonly otherwise: Verdict;
}

/** No defect: what a reader looks at first, since any other rule can only make a verdict stricter. */
export function looseningRules({ tools }: PolicySet): readonly Loosening[] {
  return [...tools.values()].flatMap(({ tool, routes }) =>
    routes.flatMap(({ rules, otherwise }) =>
      rules
        .filter(({ verdict, observed }) => !observed && isStricter(otherwise, verdict))
        .map((rule) => ({ tool, rule, otherwise })),
    ),
  );
}

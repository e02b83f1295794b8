import type { Reason } from "../check/reason.ts";
import type { Core } from "../core/core.ts";
import { planCondition } from "../plan/plan.ts";

/** A rule that can allow a call. */
export interface AllowingRule {
  /** `contract.rule`. */
  readonly id: string;
  readonly when: Core;
}

/** How many rules a reason names. */
const namedMax = 3;
/** How many characters of a condition a reason shows. */
const shownMax = 120;

/** Says of each rule which part of its condition is false. No rule's condition may be true. */
export function planMisses(rules: readonly AllowingRule[]): Reason {
  const misses = rules.slice(0, namedMax).map(({ id, when }): Reason => {
    const isFalse = firstFalse(when);
    return (context) => `${id} does not${isFalse(context)}`;
  });
  const more = rules.length > namedMax ? [`and ${rules.length - namedMax} more do not`] : [];
  return (context) => [...misses.map((miss) => miss(context)), ...more].join("; ");
}

/** The text of the first operand of `&&` that is false, in the order of evaluation. */
function firstFalse(when: Core): Reason {
  const parts = operands(when).map((part) => ({ isTrue: planCondition(part), because: because(part) }));
  return (context) => parts.find(({ isTrue }) => !isTrue(context))?.because ?? "";
}

function operands(core: Core): readonly Core[] {
  return core.op === "and" ? [...operands(core.left), ...operands(core.right)] : [core];
}

function because({ span: { file, from, to } }: Core): string {
  const text = file.text.slice(from, to).replaceAll(/\s+/g, " ").replaceAll("`", "'");
  // What YAML escapes is not what the author thinks of, and `false` says nothing.
  if (/''|\\|^false$/.test(text)) return "";
  return `, because \`${text.length > shownMax ? `${text.slice(0, shownMax)}...` : text}\` is false`;
}

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

/** Adds to a sentence, for each rule, the first part of its condition that is false. No rule's condition may be true. */
export function withMisses(sentence: string, rules: readonly AllowingRule[]): Reason {
  if (rules.length === 0) return () => sentence;
  const misses = rules.slice(0, namedMax).map(({ id, when }): Reason => {
    const isFalse = firstFalse(when);
    return (context) => `${id} does not, because \`${isFalse(context)}\` is false`;
  });
  const more = rules.length > namedMax ? [`and ${rules.length - namedMax} more do not`] : [];
  return (context) => `${sentence}: ${[...misses.map((miss) => miss(context)), ...more].join("; ")}`;
}

/** The text of the first operand of `&&` that is false, in the order of evaluation. */
function firstFalse(when: Core): Reason {
  const parts = operands(when).map((part) => ({ isTrue: planCondition(part), text: textOf(part) }));
  return (context) => (parts.find(({ isTrue }) => !isTrue(context)) ?? { text: textOf(when) }).text;
}

function operands(core: Core): readonly Core[] {
  return core.op === "and" ? [...operands(core.left), ...operands(core.right)] : [core];
}

function textOf({ span: { file, from, to } }: Core): string {
  const text = file.text.slice(from, to).replaceAll(/\s+/g, " ");
  return text.length > shownMax ? `${text.slice(0, shownMax)}…` : text;
}

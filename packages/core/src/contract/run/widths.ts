import type { CallCore } from "../core/core.ts";
import type { CommandWidth } from "../core/function.ts";
import { plan } from "../plan/plan.ts";
import { EvaluationError } from "../value/rational.ts";
import { contextOf, type Prepared } from "./plan-lookups.ts";

/** The widths of a call's command line, the narrowest first; none if it cannot be read. */
export function widthsOfCall(
  { request, caller }: Prepared,
  now: number,
  { args, entry }: CallCore,
): readonly CommandWidth[] {
  const context = contextOf(request, caller, now);
  try {
    return entry.widths?.(args.map((arg) => plan(arg)(context))) ?? [];
  } catch (error) {
    if (error instanceof EvaluationError) return [];
    throw error;
  }
}

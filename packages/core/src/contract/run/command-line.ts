import type { CallCore } from "../core/core.ts";
import type { CommandLine } from "../core/function.ts";
import { plan } from "../plan/plan.ts";
import { EvaluationError } from "../value/rational.ts";
import { contextOf, type Prepared } from "./plan-lookups.ts";

const unread: CommandLine = { widths: [], isPersonal: false };

/** Reads a call's command line, for approvals and grants. One that cannot be read permits neither. */
export function readLine({ request, caller }: Prepared, now: number, { args, entry }: CallCore): CommandLine {
  const context = contextOf(request, caller, now);
  try {
    return entry.line?.(args.map((arg) => plan(arg)(context))) ?? unread;
  } catch (error) {
    if (error instanceof EvaluationError) return unread;
    throw error;
  }
}

import { changeColumns, resultVerdict } from "../../../../core/src/record/entry/row.ts";
import type { RowQuery } from "./tables.ts";

export type Filters = Omit<RowQuery, "before" | "from" | "limit">;

/** The parts of a search that databases write in different ways. */
interface SqlDialect {
  /** The placeholder of a parameter, by its number from 0. */
  readonly placeholder: (index: number) => string;
  /** The condition that a leaf contains a text. */
  readonly leafHas: (text: string) => string;
  /** Selects the outcomes of a row. */
  readonly outcomes: string;
}

export interface Conditions {
  /** They follow other conditions, each after an AND. */
  readonly where: string;
  readonly parameters: readonly string[];
  /** True if an index has only the rows that can match. */
  readonly isIndexed: boolean;
}

/** The conditions of a search for receipts. */
export function conditionsOf(filters: Filters, { placeholder, leafHas, outcomes }: SqlDialect): Conditions {
  const { session, tool, verdict, outcome, refused = false, checks = false } = filters;
  const equal = Object.entries({ session, tool, verdict }).filter(([, value]) => value !== undefined);
  const texts = filters.leafHas ?? [];
  const statuses = outcome === undefined || outcome === "missing" ? [] : [outcome];
  const parameters = [...equal.map(([, value]) => String(value)), ...texts, ...statuses];
  // With the literal, the planner knows that the partial index of refusals has every matching row.
  const isIndexed = refused || (verdict !== undefined && verdict !== "ALLOW");
  const where = [
    ...equal.map(([name], index) => `${name} = ${placeholder(index)}`),
    ...texts.map((_, index) => leafHas(placeholder(equal.length + index))),
    ...statuses.map(() => `EXISTS (${outcomes} AND status = ${placeholder(parameters.length - 1)})`),
    // Rows of observe mode have no outcome, so none is missing. No text within a leaf has quotes without a backslash.
    ...(outcome === "missing" ? [`NOT ${leafHas(`'"mode":"observe"'`)} AND NOT EXISTS (${outcomes})`] : []),
    ...(refused ? ["verdict IN ('BLOCK', 'ESCALATE')"] : []),
    ...(checks ? [`verdict NOT IN ('${changeColumns.verdict}', '${resultVerdict}')`] : []),
    ...(isIndexed ? ["verdict <> 'ALLOW'"] : []),
  ];
  return { where: where.map((condition) => ` AND ${condition}`).join(""), parameters, isIndexed };
}

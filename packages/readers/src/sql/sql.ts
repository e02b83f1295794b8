import { EvaluationError, type Value } from "../../../core/src/contract/function.ts";
import { statementsMax } from "./bounds.ts";
import { doubt, parseSql } from "./parse.ts";
import { rowsMax } from "./limit.ts";
import { nodes, type NodeTable } from "./nodes.ts";
import { isReadOnly, readStatement, type Effects } from "./read.ts";

export { load } from "./parse.ts";

/**
 * Reads a text into a record.
 *
 * @param table the role of each node type; only a test passes another table
 * @throws {EvaluationError} for anything that is not understood
 */
export function readSqlText(text: string, table: NodeTable = nodes): Value {
  const statements = parseSql(text);
  if (statements.length === 0) doubt("it has no statement");
  if (statements.length > statementsMax) doubt(`it has over ${statementsMax} statements`);
  const all = none();
  const found = attempt(() =>
    statements.map(({ stmt }) => {
      const own = none();
      const fields = stmt as Readonly<Record<string, never>>;
      const kind = readStatement(fields, own, table);
      for (const key of keys) for (const item of own[key]) all[key].add(item);
      const limit = rowsMax(fields["SelectStmt"]);
      return new Map<string, Value>([
        ["kind", kind],
        ["limited", limit !== undefined],
        ["limit", limit ?? 0],
        ...members(own),
      ]);
    }),
  );
  return new Map<string, Value>([...members(all), ["statements", found]]);
}

/** Treats an unexpected tree as not understood. */
function attempt<Found>(run: () => Found): Found {
  try {
    return run();
  } catch (error) {
    if (error instanceof EvaluationError) throw error;
    return doubt("its syntax tree has an unknown form");
  }
}

const keys = ["kinds", "reads", "writes", "functions", "unfiltered"] as const;

function none(): Effects {
  return { kinds: new Set(), reads: new Set(), writes: new Set(), functions: new Set(), unfiltered: new Set() };
}

function members(of: Effects): readonly (readonly [string, Value])[] {
  return [...keys.map((key) => [key, [...of[key]].toSorted()] as const), ["readOnly", isReadOnly(of)]];
}

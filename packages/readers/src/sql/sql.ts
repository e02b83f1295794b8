import {
  boolean,
  type ContractFunction,
  EvaluationError,
  listOf,
  recordOf,
  size,
  string,
  type Value,
} from "../../../core/src/contract/function.ts";
import { doubt, load, parseSql, textMax } from "./parse.ts";
import { rowsMax } from "./limit.ts";
import { nodes, type NodeTable } from "./nodes.ts";
import { isReadOnly, readStatement, type Effects } from "./read.ts";

const statementsMax = 200;
// Each name takes at least one character, and one more separates two names.
const texts = listOf(string, textMax / 2);

const effects = {
  kinds: texts,
  reads: texts,
  writes: texts,
  functions: texts,
  unfiltered: texts,
  readOnly: boolean,
};

/** Queries for PostgreSQL. */
export const sqlFunctions: readonly ContractFunction[] = [
  {
    name: "sql",
    style: "function",
    parameters: ["string"],
    result: recordOf({
      ...effects,
      statements: listOf(recordOf({ ...effects, kind: string, limited: boolean, limit: size }), statementsMax),
    }),
    doc:
      "Lists the effects of a text in PostgreSQL, by its own grammar: the kind of every statement, also in `WITH`, subqueries and " +
      "`EXPLAIN`, the tables that it reads and writes, the functions that it calls. Text that other dialects read differently " +
      "and code in another language (`DO`, `EXECUTE`) are errors. See [sql](#sql).",
    examples: [
      ['sql("with x as (delete from t returning *) select * from x").kinds', '["delete", "select"]'],
      ['sql("select count(*) from orders where total > 5").readOnly', "true"],
      ['sql("update t set a = 1 where 1 = 1").unfiltered', '["t"]'],
    ],
    load,
    cost: ([text]) => 64 + (text as string).length * 8,
    run: ([text]) => readSqlText(text as string),
  },
];

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

import { aggregates, givesRows, pure } from "./names.ts";
import type { Fields, Tree } from "./parse.ts";
import { readNameWithoutCatalog } from "./read.ts";

/**
 * The largest number of rows that a query returns: its `LIMIT`, or one if it aggregates over all rows or reads no table.
 *
 * @returns undefined if no bound is known
 */
export function rowsMax(query: Fields | undefined): number | undefined {
  if (query === undefined) return undefined;
  const limit = limitOf(query);
  return isOneRow(query) ? Math.min(limit ?? 1, 1) : limit;
}

/**
 * The number in `LIMIT 10`. `LIMIT NULL` is not a bound, `LIMIT 1e9` is not written as a whole number, and `WITH TIES` also
 * returns all rows that tie with the last one.
 */
function limitOf(query: Fields): number | undefined {
  if (query["limitOption"] === "LIMIT_OPTION_WITH_TIES") return undefined;
  const limit = query["limitCount"] as
    | { readonly A_Const?: { readonly ival?: { readonly ival?: number } } }
    | undefined;
  const whole = limit?.A_Const?.ival;
  const rows = whole === undefined ? undefined : (whole.ival ?? 0);
  return rows === undefined || rows < 0 ? undefined : rows;
}

/** `select count(*) from t`, `select 1`: one row, because no function in the query returns several. */
function isOneRow(query: Fields): boolean {
  const { op, groupClause, valuesLists, fromClause, targetList, sortClause, distinctClause, windowClause } = query;
  if (op !== "SETOP_NONE" || groupClause !== undefined || valuesLists !== undefined) return false;
  // These clauses may also call functions that return rows. A query for one row does not need them.
  if (sortClause !== undefined || distinctClause !== undefined || windowClause !== undefined) return false;
  const calls = callsIn(targetList ?? []);
  if (calls === undefined || calls.some(({ name }) => !pure.has(name) || givesRows.has(name))) return false;
  return fromClause === undefined || calls.some(({ name, isWindow }) => aggregates.has(name) && !isWindow);
}

interface SqlCall {
  readonly name: string;
  readonly isWindow: boolean;
}

/** The functions that the targets of a query call, without those in subqueries; undefined if a dot may call one. */
function callsIn(targets: Tree): readonly SqlCall[] | undefined {
  const calls: SqlCall[] = [];
  const stack: Tree[] = [targets];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    if (next === null || typeof next !== "object") continue;
    if (Array.isArray(next)) {
      stack.push(...(next as readonly Tree[]));
      continue;
    }
    const { FuncCall: call, SubLink: query, A_Indirection: dotted, ...rest } = next as Fields;
    if (dotted !== undefined || isDotted(rest["ColumnRef"])) return undefined;
    if (call !== undefined) {
      calls.push(readFunctionCall(call as Fields));
      // The arguments, the filter, the order and the window may contain calls.
      const { funcname: _, ...inner } = call as Fields;
      stack.push(...Object.values(inner));
    }
    if (query !== undefined) stack.push((query as Fields)["testexpr"] ?? null);
    stack.push(...Object.values(rest));
  }
  return calls;
}

function readFunctionCall({ funcname, over }: Fields): SqlCall {
  return { name: readNameWithoutCatalog(funcname ?? []).join("."), isWindow: over !== undefined };
}

/** `alias.unnest` calls a function that returns several rows. */
function isDotted(column: Tree | undefined): boolean {
  const names = ((column as Fields | undefined)?.["fields"] ?? []) as readonly Fields[];
  const last = (names.at(-1)?.["String"] as Fields | undefined)?.["sval"];
  return names.length > 1 && typeof last === "string" && givesRows.has(last);
}

import { aggregates, givesRows, pure } from "./sql-names.ts";
import type { Fields, Tree } from "./sql-parse.ts";

/**
 * How many rows a query gives at most: by its `LIMIT`, or one where it counts over all rows or asks no table.
 *
 * @returns undefined where no bound is known
 */
export function rowsMax(query: Fields | undefined): number | undefined {
  if (query === undefined) return undefined;
  const limit = limitOf(query);
  return isOneRow(query) ? Math.min(limit ?? 1, 1) : limit;
}

/**
 * `LIMIT 10`, and not `LIMIT NULL`, `LIMIT 1e9`, which is no whole number as it stands, and `WITH TIES`, which gives all
 * rows that the order takes for one.
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

/** `select count(*) from t`, `select 1`: one row, as no function in it gives more. */
function isOneRow(query: Fields): boolean {
  const { op, groupClause, valuesLists, fromClause, targetList } = query;
  if (op !== "SETOP_NONE" || groupClause !== undefined || valuesLists !== undefined) return false;
  const calls = callsIn(targetList ?? []);
  if (calls === undefined || calls.some(({ name }) => !pure.has(name) || givesRows.has(name))) return false;
  return fromClause === undefined || calls.some(({ name, isWindow }) => aggregates.has(name) && !isWindow);
}

interface SqlCall {
  readonly name: string;
  readonly isWindow: boolean;
}

/** The functions that the targets of a query call, without those of queries in them; undefined where a dot may call one. */
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
      calls.push(callOf(call as Fields));
      stack.push((call as Fields)["args"] ?? []);
    }
    if (query !== undefined) stack.push((query as Fields)["testexpr"] ?? null);
    stack.push(...Object.values(rest));
  }
  return calls;
}

function callOf({ funcname, over }: Fields): SqlCall {
  const parts = ((funcname ?? []) as readonly Fields[]).map((part) => (part["String"] as Fields)["sval"] as string);
  return { name: (parts[0] === "pg_catalog" ? parts.slice(1) : parts).join("."), isWindow: over !== undefined };
}

/** `alias.unnest` calls a function that gives rows. */
function isDotted(column: Tree | undefined): boolean {
  const names = ((column as Fields | undefined)?.["fields"] ?? []) as readonly Fields[];
  const last = (names.at(-1)?.["String"] as Fields | undefined)?.["sval"];
  return names.length > 1 && typeof last === "string" && givesRows.has(last);
}

import type { DatabaseSync, StatementSync } from "node:sqlite";
import { columnsOf, type TableName } from "../tables.ts";

/**
 * The statement that adds an entry to a table; its parameters are the columns in their order.
 *
 * @param or says what happens to an entry with the same key; by default the statement fails
 */
export function insertion(
  database: DatabaseSync,
  table: TableName,
  or: "" | "OR IGNORE" | "OR REPLACE" = "",
): StatementSync {
  const columns = columnsOf(table);
  const placeholders = columns.map(() => "?").join(", ");
  return database.prepare(`INSERT ${or} INTO ${table} (${columns.join(", ")}) VALUES (${placeholders})`);
}

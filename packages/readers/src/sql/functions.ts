import {
  boolean,
  library,
  listType,
  recordType,
  size,
  string,
  type ContractFunction,
} from "../../../core/src/contract/function.ts";
import { statementsMax, textMax } from "./bounds.ts";

const reader = library("the SQL parser", async () => {
  const sql = await import("./sql.ts");
  await sql.load();
  return sql;
});

// Each name takes at least one character, and one more separates two names.
const texts = listType(string, textMax / 2);

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
    result: recordType({
      ...effects,
      statements: listType(recordType({ ...effects, kind: string, limited: boolean, limit: size }), statementsMax),
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
    load: reader.load,
    cost: ([text]) => 64 + (text as string).length * 8,
    run: ([text]) => reader.use().readSqlText(text as string),
  },
];

import type { Kind } from "./productions.ts";

export interface Column {
  readonly name: string;
  readonly kind: Kind;
}

const columns = (text: string): readonly Column[] =>
  text.split(" ").map((pair) => {
    const [name = "", kind = ""] = pair.split(":");
    return { name, kind: kind as Kind };
  });

/** The columns of the listed tables, as test/support/differential/sql/canaries.ts makes them. */
export const tables: ReadonlyMap<string, readonly Column[]> = new Map([
  [
    "orders",
    columns(
      "id:int customer_id:int total:num status:text created:time date:date count:int name:text tags:texts data:json",
    ),
  ],
  ["order_lines", columns("id:int order_id:int product_id:int count:int total:num name:text")],
  ["customers", columns("id:int name:text email:text created:time active:bool date:date")],
  ["products", columns("id:int name:text total:num category:text data:json tags:texts")],
  ["stock", columns("id:int product_id:int count:int date:date name:text")],
]);

/**
 * A source that FROM can name besides tables: its name, its spelling with `{alias}` as placeholder, and its columns.
 */
export type Source = readonly [name: string, columns: string, ...spellings: string[]];

/** A function whose alias is the value itself, so that `alias.f` calls `f`. */
export const scalarSources: readonly Source[] = [
  ["function-in-from", "int", "generate_series(1, 3) {alias}", "pg_catalog.generate_series(1, 2) as {alias}"],
  ["unnest-in-from", "text", "unnest(array['a', 'b']) {alias}", "unnest('{x,y}'::text[]) as {alias}"],
  [
    "function-of-text",
    "text",
    "string_to_table('a,b', ',') {alias}",
    "upper('x') {alias}",
    "regexp_split_to_table('a b', ' ') {alias}",
  ],
];

export const sources: readonly Source[] = [
  ["function-columns", "n:int", "generate_series(1, 3) as {alias}(n)", "generate_series({int}, {int} + 2) {alias}(n)"],
  ["with-ordinality", "v:text n:int", "unnest(array['a', 'b']) with ordinality as {alias}(v, n)"],
  ["rows-from", "n:int v:text", "rows from (generate_series(1, 2), unnest({texts})) as {alias}(n, v)"],
  [
    "rows-from-ordinality",
    "n:int v:text o:int",
    "rows from (generate_series(1, 2), unnest(array['a'])) with ordinality {alias}(n, v, o)",
  ],
  ["json-each", "key:text value:json", "jsonb_each({json}) {alias}", "jsonb_each('{\"a\": 1}') as {alias}(key, value)"],
  [
    "json-elements",
    "e:json",
    "jsonb_array_elements('[1, {}]') {alias}(e)",
    "jsonb_path_query({json}, '$.*') as {alias}(e)",
  ],
  [
    "json-table",
    "a:int b:text",
    "json_table('[{\"a\":1,\"b\":\"x\"}]'::jsonb, '$[*]' columns (a int path '$.a', b text)) {alias}",
  ],
  [
    "json-table-nested",
    "a:int n:int",
    "json_table({json}, '$' columns (a int path '$.b[0]', nested path '$.b[*]' columns (n for ordinality))) as {alias}",
  ],
  [
    "json-table-exists",
    "a:bool c:text",
    "json_table({json}, '$' columns (a bool exists path '$.a', c text path '$.a' default 'z' on empty)) {alias}",
  ],
  [
    "xml-table",
    "n:int t:text",
    "xmltable('/r/a' passing '<r><a>1</a></r>' columns n for ordinality, t text path '.') {alias}",
  ],
  [
    "values-source",
    "id:int name:text",
    "(values (1, 'a'), ({int}, {text})) as {alias}(id, name)",
    "(values ({int}, {text})) {alias}(id, name)",
  ],
  ["sub-select", "id:int name:text", "({pair}) {alias}(id, name)", "({pair}) as {alias}(id, name)"],
  ["sub-select-lateral", "id:int name:text", "lateral ({pair}) as {alias}(id, name)"],
  ["table-renamed", "i:int p:int", "stock as {alias}(i, p)", "order_lines {alias}(i, p)"],
  [
    "catalogue",
    "ordinal_position:int",
    "(select ordinal_position::int from information_schema.columns limit 2) {alias}",
  ],
];

/** Ways to name a table: with an alias, with a sample, or without its child tables. */
export const tableForms: readonly (readonly [name: string, spelling: string])[] = [
  ["table", "{table} {alias}"],
  ["table", "{table} as {alias}"],
  ["table", "{table} {alias}"],
  ["table-schema", "public.{table} {alias}"],
  ["table-only", "only {table} {alias}"],
  ["table-only", "only ({table}) {alias}"],
  ["table-star", "{table} * {alias}"],
  ["table-quoted", `"{table}" {alias}`],
  ["table-upper", "{TABLE} {alias}"],
  ["table-sample", "{table} {alias} tablesample system (50)"],
  ["table-sample", "{table} {alias} tablesample bernoulli ({int}) repeatable (1)"],
  ["table-sample", "{table} {alias} tablesample pg_catalog.system (20)"],
];

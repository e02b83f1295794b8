import type { Production } from "./productions.ts";

/** A part of a query, by name. */
export type Clause = readonly [name: string, ...spellings: string[]];

export const aggregates: readonly Production[] = [
  ["aggregate", "int", "count(*)", "count({any})", "sum({int})::int", "max({int})", "pg_catalog.min({int})"],
  ["aggregate-distinct", "int", "count(distinct {int})", "sum(distinct {int})::int", "count(all {text})"],
  ["aggregate-filter", "int", "count(*) filter (where {bool})", "max({int}) filter (where {bool})"],
  ["aggregate-dot", "int", "({column.int}).max", "({column.text}).count", "({row}).count", "{row}.count"],
  [
    "aggregate-rank",
    "int",
    "rank(3) within group (order by {int})",
    "dense_rank('a') within group (order by {text} desc)",
  ],
  [
    "aggregate-decimal",
    "num",
    "avg({int})",
    "sum({num})",
    "stddev({num})",
    "percentile_cont(0.5) within group (order by {int})::numeric",
  ],
  ["aggregate-text", "text", "max({text})", "string_agg({text}, ',')", "string_agg({text}, ',' order by {text} desc)"],
  [
    "aggregate-mode",
    "text",
    "mode() within group (order by {text})",
    "percentile_disc(0.5) within group (order by {text})",
  ],
  [
    "aggregate-order-using",
    "texts",
    "array_agg({text} order by {int} using <)",
    "array_agg({text} order by {int} using operator(pg_catalog.>))",
  ],
  ["aggregate-bool", "bool", "bool_and({bool})", "every({bool})", "bool_or({bool})"],
  ["aggregate-array", "ints", "array_agg({int} order by {int} desc nulls last)", "array_agg(distinct {int})"],
  ["aggregate-json", "json", "jsonb_agg({any})", "json_agg({int} order by {int})::jsonb", "to_jsonb(count(*))"],
  [
    "aggregate-json-syntax",
    "json",
    "json_arrayagg({int} order by {int} returning jsonb)",
    "json_objectagg('k' : {int} absent on null returning jsonb)",
  ],
  [
    "aggregate-nested",
    "int",
    "case when count(*) > 1 then count(*) else max({int}) end",
    "coalesce(max({int}), min({int}), 0)",
  ],
];

export const windows: readonly Production[] = [
  [
    "window",
    "int",
    "row_number() over (order by {int})",
    "rank() over (partition by {text} order by {int})",
    "count(*) over ()",
  ],
  [
    "window-frame",
    "int",
    "sum({int}) over (order by {int} rows between 1 preceding and current row exclude ties)",
    "max({int}) over (order by {int} range unbounded preceding)",
  ],
  [
    "window-groups",
    "int",
    "count({any}) over (order by {text} groups between current row and 1 following)",
    "first_value({int}) over (order by {int})",
  ],
  ["window-named", "int", "count(*) over w", "max({int}) over (w rows 1 preceding)", "ntile(2) over w"],
  [
    "window-filter",
    "int",
    "count(*) filter (where {bool}) over (partition by {int})",
    "sum({int}) filter (where {bool}) over w",
  ],
  [
    "window-lag",
    "int",
    "lag({int}, 1) over (order by {int})",
    "lead({int}) over w",
    "nth_value({int}, 2) over (order by {text})",
  ],
];

/** Statements around queries. */
export const statements: readonly Clause[] = [
  [
    "explain",
    "explain {query}",
    "explain verbose {query}",
    "explain (costs off, format json) {query}",
    "explain (generic_plan) {query}",
  ],
  [
    "explain-analyze",
    "explain analyze {query}",
    "explain (analyze, buffers off, timing off) {query}",
    "explain (analyze, serialize text, memory, wal, settings) {query}",
  ],
  ["values", "values ({int}, {text}), ({int}, {text})", "values ({bool}) limit 1"],
  ["table-statement", "table {listed}", "table {listed} limit 2", "(table {listed} order by 1 limit 2)"],
  ["show", "show server_version", "show search_path", "show timezone", "show time zone"],
  ["several", "{query}; {query}", "{query};", "{query} ; {query} ; {query}"],
  ["bracket", "({query})", "(({query}))"],
  ["comment-statement", "/* a */ {query} -- b\n", "-- c\n{query}", "{query} /* ; delete from orders */"],
];

export const joins: readonly Clause[] = [
  ["join-comma", "{left}, {source}"],
  ["join-on", "{left} join {source} on {bool}", "{left} inner join {source} on ({bool})"],
  ["join-left", "{left} left join {source} on {bool}", "{left} left outer join {source} on true"],
  ["join-cross", "{left} cross join {source}"],
  [
    "join-lateral",
    "{left} left join lateral ({pair}) {alias}(id, name) on {bool}",
    "{left}, lateral ({pair}) as {alias}(id, name)",
  ],
  [
    "join-using",
    "{left} join {table} using (id)",
    "{left} full join {table} using (id)",
    "{left} left join {table} using (id) as u",
  ],
  ["join-natural", "{left} natural join {table}", "{left} natural left join {table}"],
];

export const orders: readonly Clause[] = [
  [
    "order-by",
    "order by ({any}) is null",
    "order by ({int}) + 1 desc, coalesce({text}, '')",
    "order by lower({text}) nulls first",
    "order by ({num}) * 2 asc nulls last",
  ],
  ["order-by-position", "order by 1", "order by 1 desc"],
  [
    "order-by-using",
    "order by ({int}) + 1 using <",
    "order by upper({text}) using >",
    "order by abs({int}) using operator(pg_catalog.<)",
  ],
  ["order-by-collate", `order by {text} collate "C"`, `order by {text} collate pg_catalog."default" desc`],
  ["order-by-dot", "order by ({text}).length", "order by ({int}).abs desc", "order by ({text}).upper using <"],
];

export const limits: readonly Clause[] = [
  ["limit", "limit 10", "limit 3 offset 1", "limit all", "limit null", "limit (1 + 1)", "offset 1 limit 5"],
  [
    "limit-expression",
    "limit (select 3)",
    "limit length('abc')",
    "limit ('3'::text).int4",
    "limit case when true then 2 end",
  ],
  ["fetch-first", "fetch first 2 rows only", "offset 1 row fetch next row only", "fetch first (1 + 1) rows only"],
];

export const groups: readonly Clause[] = [
  ["group-by", "group by {keys}", "group by ({keys})", "group by distinct {keys}"],
  ["group-by-rollup", "group by rollup ({keys})", "group by cube ({keys})"],
  ["grouping-sets", "group by grouping sets (({keys}), ())", "group by grouping sets ({keys}, rollup ({keys}))"],
];

export const lists: readonly Clause[] = [
  ["select-list", "{list}"],
  ["select-all", "all {list}"],
  ["distinct", "distinct {list}"],
  ["distinct-on", "distinct on (coalesce({int}, 0)) {list}", "distinct on (coalesce({text}, ''), ({int}) + 1) {list}"],
];

export const names: readonly Clause[] = [
  ["name", "{value}"],
  ["name-as", "{value} as x", "{value} x", "{value} as total"],
  ["name-quoted", `{value} as "Name"`, `{value} "a b"`, `{value} as "select"`],
];

export const unions: readonly Clause[] = [
  ["union", "({one}) union ({two})", "({one}) union all ({two})", "({one}) union distinct ({two})"],
  ["intersect", "({one}) intersect ({two})", "({one}) except all ({two})", "({one}) except ({two})"],
];

/** Each one names a query `{name}`, which has the columns `id` and `name`. */
export const withs: readonly Clause[] = [
  ["with", "with {name} (id, name) as ({pair})", "with {name}(id, name) as (values ({int}, {text}))"],
  [
    "with-materialized",
    "with {name} (id, name) as materialized ({pair})",
    "with {name} (id, name) as not materialized ({pair})",
  ],
  [
    "with-recursive",
    "with recursive {name}(id, name) as (select 1, 'a' union all select id + 1, name from {name} where id < 3)",
  ],
  [
    "with-search",
    "with recursive {name}(id, name) as (select 1, 'a' union all select 2, name from {name} where id < 2) search depth first by id set p",
    "with recursive {name}(id, name) as (select 1, 'a' union all select 3 - id, name from {name}) cycle id set looped using path",
  ],
  [
    "with-several",
    "with other as ({pair}), {name} (id, name) as ({pair})",
    "with recursive other as (select 1), {name} (id, name) as ({pair})",
  ],
];

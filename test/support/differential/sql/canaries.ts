import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type pg from "pg";
import type { PostgresServer } from "../../postgres-server.ts";

/** Words that only an unlisted table or a file of the server contains. */
const markers = { table: "tablemarker770077", file: "filemarker880088" } as const;
const markerFile = "marker.txt";

/** The tables that contracts/sql.yaml lists. The view of the last one already exists. */
export const listed: readonly string[] = [
  "orders",
  "order_lines",
  "customers",
  "products",
  "stock",
  "information_schema.columns",
];

const tables = `
create table orders (id int primary key, customer_id int, total numeric, status text, created timestamptz, date date,
  count int, name text, tags text[], data jsonb);
create table order_lines (id int, order_id int, product_id int, count int, total numeric, name text);
create table customers (id int, name text, email text, created timestamptz, active boolean, date date);
create table products (id int, name text, total numeric, category text, data jsonb, tags text[]);
create table stock (id int, product_id int, count int, date date, name text);
insert into orders select i, i % 3, i * 1.5, 'open', '2026-01-01'::timestamptz + i * interval '1 day', date '2026-01-01' + i,
  i, 'n' || i, array['a', 'b'], '{"a": 1, "b": [1, 2]}' from generate_series(1, 4) i;
insert into order_lines select i, i, i % 3, i, i * 2.5, 'l' || i from generate_series(1, 4) i;
insert into customers select i, 'c' || i, 'c@x', '2026-01-01', true, date '2026-01-01' from generate_series(1, 3) i;
insert into products select i, 'p' || i, i, 'k', '{"a": "x"}', array['a'] from generate_series(1, 3) i;
insert into stock select i, i, i, date '2026-01-01', 's' || i from generate_series(1, 3) i;
create table secret (id int, name text);
insert into secret values (1, '${markers.table}');
create schema evil;
create schema yours;
create table evil.orders as select * from secret;
create sequence s;
create view seen as select * from secret;
`;

/** Every hostile function calls this one. The sequence keeps its trace when the statement fails and is rolled back. */
const trace = `
create sequence evil.seq;
create table evil.log (tag text);
create function evil.hit(tag text) returns int language plpgsql volatile as $$
  begin perform nextval('evil.seq'); insert into evil.log values (tag); return 1; end $$;
`;

function hostile(name: string, parameters: string, result: string, value: string): string {
  return `create function ${name}(${parameters}) returns ${result} language plpgsql volatile as $$
    begin perform evil.hit('${name}'); ${value}; end $$;\n`;
}

const functions = [
  ...["date", "count", "name", "total", "id", "lower", "upper", "length", "abs", "coalesce"].map((name) =>
    hostile(`evil."${name}"`, "x anyelement", "text", "return x::text"),
  ),
  hostile("evil.now", "", "int", "return 1"),
  hostile("yours.hidden", "x anyelement", "text", "return 'x'"),
  hostile("yours.hidden_now", "", "int", "return 1"),
  hostile("yours.spread", "variadic x int[]", "int", "return 1"),
  hostile("yours.several", "x int, y int default 1", "setof int", "return next 1"),
  // The parser uses these names for its own syntax. Only with quotes do they name a function.
  ...["coalesce", "greatest", "nullif", "trim", "grouping"].map((name) =>
    hostile(`yours."${name}"`, "x anyelement", "text", "return 'x'"),
  ),
  hostile("evil.step", "x int, y int", "int", "return 1"),
  hostile("evil.same", "x anycompatible, y anycompatible", "boolean", "return true"),
  hostile("evil.plus", "x anycompatible, y anycompatible", "int", "return 1"),
  hostile("evil.after", "x anyelement", "int", "return 1"),
  hostile("evil.compare", "x int, y int", "int", "return x - y"),
  hostile("evil.below", "x int, y int", "boolean", "return x < y"),
  hostile("evil.above", "x int, y int", "boolean", "return x > y"),
  hostile("evil.equal", "x int, y int", "boolean", "return x = y"),
].join("");

const operators = [
  ["evil.@@", "evil.same", "anycompatible, rightarg = anycompatible"],
  ["evil.+", "evil.plus", "anycompatible, rightarg = anycompatible"],
  ["evil.||", "evil.plus", "anycompatible, rightarg = anycompatible"],
  ["evil.~~", "evil.same", "anycompatible, rightarg = anycompatible"],
  ["evil.<", "evil.below", "int, rightarg = int"],
  ["evil.>", "evil.above", "int, rightarg = int"],
  ["evil.=", "evil.equal", "int, rightarg = int"],
  ["yours.#~#", "evil.same", "anycompatible, rightarg = anycompatible"],
]
  .map(([name, runs, left]) => `create operator ${name} (function = ${runs}, leftarg = ${left});\n`)
  .join("");

const types = `
create operator evil.- (function = evil.after, rightarg = anyelement);
create operator yours.@#@ (function = evil.after, rightarg = anyelement);
create operator class evil.ops for type int using btree as operator 1 evil.<, operator 3 evil.=, operator 5 evil.>,
  function 1 evil.compare(int, int);
create aggregate evil.gather(int) (sfunc = evil.step, stype = int, initcond = '0');
create aggregate yours.gather(int) (sfunc = evil.step, stype = int, initcond = '0');
create domain evil.checked as text check (evil.hit('domain') > 0);
create domain yours.checked as text check (evil.hit('domain') > 0);
create domain yours.counted as int check (evil.hit('domain') > 0);
create type yours.pair as (a int, b yours.checked);
create type evil.span as range (subtype = int, subtype_opclass = evil.ops);
create type yours.span as range (subtype = int, subtype_opclass = evil.ops);
create type yours.token as (v text);
create function evil.token(x text) returns yours.token language plpgsql as $$
  begin perform evil.hit('cast'); return row(x)::yours.token; end $$;
create function evil.token(x int) returns yours.token language plpgsql as $$
  begin perform evil.hit('cast'); return row(x::text)::yours.token; end $$;
create function evil.untoken(x yours.token) returns json language plpgsql as $$
  begin perform evil.hit('cast'); return '1'; end $$;
create cast (text as yours.token) with function evil.token(text);
create cast (int as yours.token) with function evil.token(int);
create cast (yours.token as json) with function evil.untoken(yours.token) as implicit;
create function evil.sampled(internal) returns tsm_handler language internal strict as 'tsm_bernoulli_handler';
create function yours.sampled(internal) returns tsm_handler language internal strict as 'tsm_bernoulli_handler';
create procedure yours.run() language plpgsql as $$ begin perform evil.hit('procedure'); end $$;
select lo_create(4242);
alter database postgres set search_path = public, yours;
`;

/** Fills a new server with ordinary tables, and with objects that do harm when they are touched. */
export async function plantCanaries(server: PostgresServer): Promise<void> {
  await server.run(tables + trace + functions + operators + types);
  writeFileSync(join(server.folder, markerFile), `${markers.file}\n`, { mode: 0o644 });
}

/** Everything that a statement can leave behind. Scans of `secret` are counted even if no row is shown. */
const stateQuery = `select json_build_object(
  'log', (select count(*) from evil.log), 'last', (select max(tag) from (select tag from evil.log offset 0) t),
  'call', (select last_value + is_called::int from evil.seq),
  'sequence', (select last_value + is_called::int from s),
  'objects', (select string_agg(oid::text, ',') from pg_largeobject_metadata),
  'locks', (select count(*) from pg_locks where locktype = 'advisory'),
  'settings', (select md5(string_agg(name || setting, ',' order by name)) from pg_settings where context <> 'internal' and name !~ '[.]'),
  'written', pg_snapshot_xmax(pg_current_snapshot())::text,
  'scans', pg_stat_get_numscans('secret'::regclass) + pg_stat_get_numscans('evil.orders'::regclass),
  'prepared', (select count(*) from pg_prepared_statements), 'cursors', (select count(*) from pg_cursors),
  'channels', (select count(*) from pg_listening_channels()), 'tables', (select count(*) from pg_class))::text as state`;

export type State = Readonly<Record<string, unknown>>;

export async function readState(client: pg.Client): Promise<State> {
  await client.query("select pg_stat_force_next_flush()");
  const { rows } = await client.query<{ readonly state: string }>(stateQuery);
  return JSON.parse(rows[0]?.state ?? "{}") as State;
}

/** Returns the members that differ, as `member: before -> after`. */
export function changesOf(before: State, after: State): readonly string[] {
  return Object.keys(after)
    .filter((name) => before[name] !== after[name])
    .map((name) => `${name}: ${String(before[name])} -> ${String(after[name])}`);
}

/** The ways in which a marker is still recognised after a function has changed it. */
const shapes = Object.values(markers).flatMap((word) => {
  const bytes = Buffer.from(word);
  return [word, word.split("").toReversed().join(""), bytes.toString("hex"), bytes.toString("base64").slice(0, 12)];
});
const shown = new RegExp(shapes.join("|"), "i");

export function showsMarker(text: string): boolean {
  return shown.test(text);
}

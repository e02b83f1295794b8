/**
 * Effects that the text alone does not show. The reader reports each text as harmless, and the text has an effect in a
 * database that is made for it. A test fails if the reader starts to refuse one of them: then remove the limit here.
 */
export interface Limit {
  readonly why: string;
  readonly prepare: string;
  readonly text: string;
  readonly undo: string;
}

const hit = (name: string, parameters: string, result: string, value: string): string =>
  `create function ${name}(${parameters}) returns ${result} language plpgsql volatile as $$
    begin perform evil.hit('${name}'); return ${value}; end $$;`;

export const limits: readonly Limit[] = [
  {
    why: "a name behind the alias of a table is a function of somebody's",
    prepare: hit("yours.peek", "x orders", "text", "'x'"),
    text: "select o.peek from orders o limit 1",
    undo: "drop function yours.peek",
  },
  {
    why: "a function of somebody's has the name of a function that only computes",
    prepare: hit("yours.lower", "x int", "text", "'x'"),
    text: "select lower(5) limit 1",
    undo: "drop function yours.lower",
  },
  {
    why: "an operator of somebody's has the name of an operator of PostgreSQL",
    prepare: `${hit("yours.add", "x bool, y bool", "bool", "x")}
      create operator yours.+ (function = yours.add, leftarg = bool, rightarg = bool)`,
    text: "select true + false limit 1",
    undo: "drop function yours.add cascade",
  },
  {
    why: "a cast of somebody's converts between types of PostgreSQL",
    prepare: `${hit("yours.number_of", "x date", "int", "1")}
      create cast (date as int) with function yours.number_of(date)`,
    text: "select date '2026-01-01'::int limit 1",
    undo: "drop function yours.number_of cascade",
  },
  {
    why: "a listed name is a view, and the view calls a function of somebody's",
    prepare: "alter table stock rename to shelf; create view stock as select hidden(id) from shelf",
    text: "select * from stock limit 1",
    undo: "drop view stock; alter table shelf rename to stock",
  },
  {
    why: "a listed name is a view, and the view reads a table that is not listed",
    prepare: "alter table stock rename to shelf; create view stock as select name from secret",
    text: "select * from stock limit 1",
    undo: "drop view stock; alter table shelf rename to stock",
  },
  {
    why: "a listed table has a child that is not listed",
    prepare: "create table shelf () inherits (stock); insert into shelf (name) select name from secret",
    text: "select name from stock where id is null limit 1",
    undo: "drop table shelf",
  },
];

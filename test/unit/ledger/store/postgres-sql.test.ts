/**
 * Goal: the PostgreSQL store uses only statements that distributed engines accept: each names its ledger, and none
 * needs a feature of a single machine. Method: PostgreSQL's own grammar parses every statement and migration, and the
 * test checks the rule on the parse tree. It must notice statements that break the rule, one way each.
 */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { loadModule, parseSync } from "libpg-query";
import { ledgerTables, migrations } from "../../../../packages/gate/src/ledger/store/postgres/schema.ts";
import {
  composed,
  entriesAt,
  entriesWhere,
  insertions,
  pageOf,
  readRows,
  statements,
} from "../../../../packages/gate/src/ledger/store/postgres/sql.ts";
import { columnsOf, tableSpecs, keyOf, type TableName } from "../../../../packages/gate/src/ledger/store/tables.ts";
import { control } from "../../../support/controls/control.ts";

await loadModule();

/** A node of the parser's tree: members by name, lists, texts and numbers. */
type Tree = Readonly<Record<string, unknown>>;

const functions = new Set([
  "unnest",
  "sum",
  "count",
  "min",
  "floor",
  "extract",
  "clock_timestamp",
  "octet_length",
  "strpos",
  "substring",
]);
/** Tables whose rows follow from receipts, or may be forgotten. */
const deletable: ReadonlySet<string> = new Set(["approvals", "holds", "repeats"]);
const tables: ReadonlySet<string> = new Set<string>(ledgerTables);

/** Returns the violations of the rule in a statement. */
function problemsOf(sql: string): readonly string[] {
  const { stmts = [] } = parseSync(sql) as { readonly stmts?: readonly { readonly stmt: Tree }[] };
  if (stmts.length !== 1) return ["more than one statement"];
  const [kind = "", body] = Object.entries(stmts[0]?.stmt ?? {})[0] ?? [];
  if (!["SelectStmt", "InsertStmt", "UpdateStmt", "DeleteStmt"].includes(kind)) return [`a ${kind}`];
  return [...found(kind, body as Tree)];
}

function* found(kind: string, node: Tree): Generator<string> {
  if (kind === "SelectStmt") yield* unnamed(rangesOf(node["fromClause"]), node["whereClause"]);
  if (kind === "UpdateStmt") {
    yield* unnamed([rangeOf(node["relation"] as Tree)], node["whereClause"]);
    if (names(node["targetList"]).includes("ledger")) yield "an UPDATE of the ledger's id";
    if (node["fromClause"] !== undefined) yield "an UPDATE with FROM";
  }
  if (kind === "InsertStmt") yield* insertion(node);
  if (kind === "DeleteStmt") {
    const range = rangeOf(node["relation"] as Tree);
    if (!deletable.has(range.table)) yield "a DELETE of rows that are not derived";
    yield* unnamed([range], node["whereClause"]);
  }
  if (kind === "RangeVar") yield* relation(node);
  if (kind === "FuncCall") {
    const name = texts(node["funcname"]).at(-1) ?? "";
    if (!functions.has(name)) yield `the function ${name}`;
  }
  if (kind === "ColumnRef" && texts(node["fields"]).some((name) => ["ctid", "xmin", "tableoid"].includes(name)))
    yield "a system column";
  if (node["withClause"] !== undefined) yield "a WITH";
  if (node["returningList"] !== undefined || node["returningClause"] !== undefined) yield "a RETURNING";
  for (const [name, value] of Object.entries(node)) yield* inside(name, value);
}

/** Members are nodes by their kind, or lists of nodes. `relation` is a table's name without its kind. */
function* inside(name: string, value: unknown): Generator<string> {
  if (Array.isArray(value)) for (const one of value) yield* inside(name, one);
  else if (typeof value === "object" && value !== null)
    yield* found(name === "relation" ? "RangeVar" : name, value as Tree);
}

function* relation({ schemaname, relname }: Tree): Generator<string> {
  if (schemaname !== "svc_gate") yield `the table ${String(relname)} of no schema`;
  else if (!tables.has(String(relname))) yield `the table ${String(relname)}, which belongs to no ledger`;
}

function* insertion(node: Tree): Generator<string> {
  const { valuesLists } = ((node["selectStmt"] as Tree | undefined)?.["SelectStmt"] ?? {}) as {
    readonly valuesLists?: readonly Tree[];
  };
  if (names(node["cols"])[0] !== "ledger") yield "an INSERT whose first column is not the ledger";
  if (valuesLists === undefined) yield "an INSERT of rows that do not come as VALUES";
  for (const list of valuesLists ?? []) {
    const items = (list["List"] as Tree)["items"] as readonly Tree[];
    if ((items[0]?.["ParamRef"] as Tree | undefined)?.["number"] !== 1) yield "an INSERT of another ledger's row";
  }
  const infer = ((node["onConflictClause"] as Tree | undefined)?.["infer"] as Tree | undefined)?.["indexElems"];
  if (infer !== undefined && indexed(infer)[0] !== "ledger") yield "an ON CONFLICT that does not start with the ledger";
}

interface Range {
  readonly table: string;
  readonly alias: string | undefined;
}

function rangeOf({ relname, alias }: Tree): Range {
  return { table: String(relname), alias: (alias as Tree | undefined)?.["aliasname"] as string | undefined };
}

/** Returns the tables that a FROM names itself; looks through joins. */
function rangesOf(from: unknown): readonly Range[] {
  return ((from ?? []) as readonly Tree[]).flatMap(rangesIn);
}

function rangesIn(node: Tree): readonly Range[] {
  const joined = node["JoinExpr"] as Tree | undefined;
  if (joined !== undefined) return [...rangesIn(joined["larg"] as Tree), ...rangesIn(joined["rarg"] as Tree)];
  return node["RangeVar"] === undefined ? [] : [rangeOf(node["RangeVar"] as Tree)];
}

/** Returns tables that are not limited by `ledger = $1` in a position that no other condition can disable. */
function* unnamed(ranges: readonly Range[], where: unknown): Generator<string> {
  const columns = conjuncts(where).flatMap(comparedIn);
  for (const { table, alias } of ranges) if (!columns.includes(alias ?? "")) yield `${table} without its ledger`;
}

function conjuncts(where: unknown): readonly Tree[] {
  const node = (where ?? {}) as Tree;
  const both = node["BoolExpr"] as Tree | undefined;
  return both?.["boolop"] === "AND_EXPR" ? (both["args"] as readonly Tree[]).flatMap(conjuncts) : [node];
}

function comparedIn(node: Tree): readonly string[] {
  const { name, lexpr, rexpr } = (node["A_Expr"] ?? {}) as Tree;
  const fields = texts(((lexpr as Tree | undefined)?.["ColumnRef"] as Tree | undefined)?.["fields"]);
  const isFirst = ((rexpr as Tree | undefined)?.["ParamRef"] as Tree | undefined)?.["number"] === 1;
  return texts(name)[0] === "=" && isFirst && fields.at(-1) === "ledger"
    ? [fields.length > 1 ? (fields[0] ?? "") : ""]
    : [];
}

/** Returns a text member of each node in a list whose nodes are all of one kind. */
function each(list: unknown, kind: string, member: string): readonly string[] {
  return ((list ?? []) as readonly Readonly<Record<string, Readonly<Record<string, string>> | undefined>>[]).map(
    (node) => node[kind]?.[member] ?? "",
  );
}

function texts(list: unknown): readonly string[] {
  return each(list, "String", "sval");
}

function names(list: unknown): readonly string[] {
  return each(list, "ResTarget", "name");
}

function indexed(list: unknown): readonly string[] {
  return each(list, "IndexElem", "name");
}

const filters = [undefined, "ALLOW", "BLOCK"].flatMap((verdict) =>
  [undefined, "s"].flatMap((session) =>
    [undefined, "t"].flatMap((tool) =>
      [undefined, true].flatMap((refused) =>
        [[], ["x", "y"]].map((leafHas) => ({ verdict, session, tool, refused, leafHas })),
      ),
    ),
  ),
);
/** The reads of each table, with all its columns and with one, and pages with each kind of bound. */
const reads = (Object.keys(tableSpecs) as TableName[]).flatMap((table) => {
  const [key, every] = [keyOf(table), columnsOf(table)];
  const bounds = [undefined, key.slice(0, 1), key];
  return [every, every.slice(-1)].flatMap((columns) => [
    entriesAt(
      "a",
      table,
      key.map(() => []),
      columns,
    ),
    ...every.map((column) => entriesWhere("a", table, column, [])),
    ...bounds.flatMap((after) => bounds.map((through) => pageOf("a", { table, columns, after, through, limit: 1 }))),
  ]);
});

const all: readonly (readonly [string, string])[] = [
  ...Object.entries({ ...composed, ...statements }),
  ...reads.map(({ statement: { name, text } }) => [name, text] as const),
  ...filters.map((filter) => readRows(filter).statement).map(({ name, text }) => [name, text] as const),
  ...(["receipts", "effects"] as const)
    .flatMap((table) =>
      insertions(
        table,
        "a",
        Array.from({ length: 64 + 16 + 4 + 1 }, () => [1]),
      ),
    )
    .map(({ statement: { name, text } }) => [name, text] as const),
];

suite("PostgreSQL: the statements of the store", () => {
  test("each statement names its ledger and uses nothing that only one machine has", () => {
    for (const [name, sql] of all) assert.deepEqual(problemsOf(sql), [], name);
    assert.ok(all.length > 200, `${all.length} statements`);
    // The driver warns of a longer name, and two texts must not have one.
    assert.deepEqual(new Map(all.filter(([name]) => Buffer.byteLength(name) > 63)), new Map());
    assert.equal(new Set(all.map(([name]) => name)).size, new Set(all.map((statement) => statement.join(" "))).size);
  });

  const broken: readonly (readonly [string, string])[] = [
    ["SELECT seq FROM svc_gate.receipts", "receipts without its ledger"],
    ["SELECT seq FROM svc_gate.receipts WHERE seq = $1", "receipts without its ledger"],
    ["SELECT seq FROM svc_gate.receipts WHERE ledger = $2", "receipts without its ledger"],
    ["SELECT seq FROM svc_gate.receipts WHERE ledger = $1 OR seq = 1", "receipts without its ledger"],
    ["SELECT seq FROM svc_gate.receipts WHERE NOT ledger = $1", "receipts without its ledger"],
    ["SELECT seq FROM svc_gate.receipts WHERE ledger >= $1", "receipts without its ledger"],
    [
      "SELECT r.seq FROM svc_gate.receipts r JOIN svc_gate.effects e ON true WHERE e.ledger = $1",
      "receipts without its ledger",
    ],
    ["SELECT (SELECT max FROM svc_gate.effects) FROM svc_gate.ledgers WHERE ledger = $1", "effects without its ledger"],
    [
      "SELECT 1 FROM unnest($1::int[]) x LEFT JOIN LATERAL (SELECT 1 FROM svc_gate.effects) y ON true",
      "effects without its ledger",
    ],
    ["UPDATE svc_gate.ledgers SET seq = 1", "ledgers without its ledger"],
    ["UPDATE svc_gate.ledgers SET ledger = $1 WHERE ledger = $1", "an UPDATE of the ledger's id"],
    ["DELETE FROM svc_gate.receipts WHERE ledger = $1", "a DELETE of rows that are not derived"],
    ["DELETE FROM svc_gate.holds WHERE seq = $1", "holds without its ledger"],
    ["INSERT INTO svc_gate.receipts (seq, ledger) VALUES ($1, $2)", "an INSERT whose first column is not the ledger"],
    ["INSERT INTO svc_gate.receipts (ledger, seq) VALUES ($2, $1)", "an INSERT of another ledger's row"],
    [
      "INSERT INTO svc_gate.receipts (ledger, seq) SELECT $1, * FROM unnest($2::int[])",
      "an INSERT of rows that do not come as VALUES",
    ],
    [
      "INSERT INTO svc_gate.receipts (ledger, seq) VALUES ($1, $2) ON CONFLICT (seq) DO NOTHING",
      "an ON CONFLICT that does not start with the ledger",
    ],
    ["INSERT INTO svc_gate.receipts (ledger, seq) VALUES ($1, nextval('s'))", "the function nextval"],
    ["INSERT INTO svc_gate.receipts (ledger, seq) VALUES ($1, $2) RETURNING seq", "a RETURNING"],
    ["SELECT pg_advisory_xact_lock(1)", "the function pg_advisory_xact_lock"],
    ["SELECT ctid FROM svc_gate.receipts WHERE ledger = $1", "a system column"],
    ["WITH x AS (SELECT 1) SELECT 1 FROM x", "a WITH"],
    ["SELECT 1 FROM receipts WHERE ledger = $1", "the table receipts of no schema"],
    ["SELECT 1 FROM svc_gate.migrations WHERE ledger = $1", "the table migrations, which belongs to no ledger"],
    ["NOTIFY rows", "a NotifyStmt"],
    ["LOCK TABLE svc_gate.receipts", "a LockStmt"],
    ["SELECT 1; SELECT 2", "more than one statement"],
  ];
  for (const [sql, problem] of broken) {
    control(`positive control: the statement ${sql} is noticed`, () =>
      assert.ok(problemsOf(sql).includes(problem), problemsOf(sql).join("; ")),
    );
  }

  test("no other file of the store has a statement on a ledger's table", () => {
    const folder = new URL("../../../../packages/gate/src/ledger/store/postgres/", import.meta.url).pathname;
    const files = readdirSync(folder).filter((name) => !/^(sql|schema)\.ts$/.test(name));
    assert.ok(files.length >= 6);
    const strayIn = (text: string): readonly string[] =>
      text.match(/\b(?:FROM|INTO|UPDATE|TABLE|JOIN)\s+svc_gate\.\w+/g) ?? [];
    for (const file of files) assert.deepEqual(strayIn(readFileSync(join(folder, file), "utf8")), [], file);
    assert.equal(strayIn("SELECT 1 FROM svc_gate.receipts").length, 1, "positive control");
  });
});

/** Returns the columns of each key and index of a migration, by the name of the key or index. */
function keysOf(sql: string): readonly (readonly [string, readonly string[]])[] {
  const { stmts = [] } = parseSync(sql) as { readonly stmts?: readonly { readonly stmt: Tree }[] };
  return stmts.flatMap(({ stmt }) => {
    const index = stmt["IndexStmt"] as Tree | undefined;
    if (index !== undefined) return [[String(index["idxname"]), indexed(index["indexParams"])] as const];
    const table = stmt["CreateStmt"] as { readonly relation: Tree; readonly tableElts: readonly Tree[] } | undefined;
    const constraints = (table?.tableElts ?? []).map(({ Constraint }) => (Constraint ?? {}) as Tree);
    const keyed = constraints.filter(({ keys }) => keys !== undefined);
    return keyed.map(({ keys }) => [String(table?.relation["relname"]), texts(keys)] as const);
  });
}

test("PostgreSQL: every key and index starts with the ledger's id, and a policy covers every table", () => {
  const keys = migrations.flat().flatMap(keysOf);
  for (const [name, columns] of keys) assert.equal(columns[0], "ledger", name);
  for (const table of ledgerTables) {
    assert.ok(
      keys.some(([name]) => name === table),
      `${table} has a key`,
    );
    for (const step of ["ENABLE ROW LEVEL SECURITY", "FORCE ROW LEVEL SECURITY"])
      assert.ok(migrations.flat().includes(`ALTER TABLE svc_gate.${table} ${step}`), `${table}: ${step}`);
    assert.ok(
      migrations.flat().some((step) => step.startsWith(`CREATE POLICY one_ledger ON svc_gate.${table} `)),
      table,
    );
  }
  assert.deepEqual(
    keysOf("CREATE TABLE t (ledger text, seq int, PRIMARY KEY (seq, ledger))"),
    [["t", ["seq", "ledger"]]],
    "positive control",
  );
  assert.deepEqual(keysOf("CREATE INDEX i ON t (seq)"), [["i", ["seq"]]], "positive control");
});

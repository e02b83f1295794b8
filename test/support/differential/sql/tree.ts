import type pg from "pg";
import { listed } from "./canaries.ts";

/** The objects of the database by their numbers, as the server names them in its own parse trees. */
export interface Catalogue {
  /** Functions, operators and types that are not part of PostgreSQL. */
  readonly foreign: ReadonlyMap<string, string>;
  /** Functions of PostgreSQL that do more than compute. */
  readonly active: ReadonlyMap<string, string>;
  /** Tables that may be read. */
  readonly tables: ReadonlySet<string>;
  /** Functions of PostgreSQL that can be called with one argument. */
  readonly oneArgument: readonly string[];
}

/** Functions that only compute although PostgreSQL does not call them immutable: they read the clock or settings. */
const computing =
  "random random_normal clock_timestamp timeofday gen_random_uuid uuidv4 uuidv7 array_sample array_shuffle now age " +
  "date_part date_trunc extract to_char to_date to_number to_timestamp make_timestamptz concat concat_ws format " +
  "quote_literal quote_nullable statement_timestamp transaction_timestamp timezone date overlaps length to_json " +
  "to_jsonb row_to_json array_to_json json_build_object jsonb_build_object json_build_array jsonb_build_array " +
  "json_object_agg jsonb_object_agg json_agg jsonb_agg array_to_string to_tsvector to_tsquery plainto_tsquery " +
  "phraseto_tsquery websearch_to_tsquery ts_headline generate_series version current_database current_schema " +
  "current_schemas current_user session_user pg_typeof pg_collation_for pg_column_size timestamp timestamptz timetz " +
  "time money xml date_add date_subtract interval numeric jsonb_path_exists_tz jsonb_path_match_tz " +
  "jsonb_path_query_tz jsonb_path_query_array_tz jsonb_path_query_first_tz xmlagg json_arrayagg json_objectagg " +
  "json_agg_strict jsonb_agg_strict json_object_agg_strict json_object_agg_unique json_object_agg_unique_strict " +
  "jsonb_object_agg_strict jsonb_object_agg_unique jsonb_object_agg_unique_strict";

export async function readCatalogue(client: pg.Client): Promise<Catalogue> {
  const read = async (sql: string): Promise<ReadonlyMap<string, string>> => {
    const { rows } = await client.query<{ readonly oid: string; readonly name: string }>(sql);
    return new Map(rows.map(({ oid, name }) => [oid, name]));
  };
  const foreign = await read(`select oid::text, 'function ' || oid::regprocedure as name from pg_proc where oid >= 16384
    union all select oid::text, 'operator ' || oid::regoperator from pg_operator where oid >= 16384
    union all select t.oid::text, 'type ' || t.oid::regtype from pg_type t join pg_namespace n on n.oid = typnamespace
      where nspname in ('evil', 'yours')`);
  // The functions that read and print a type have the same effects as a cast.
  const active = await read(`select oid::text, proname as name from pg_proc where oid < 16384 and provolatile <> 'i'
    and prokind = 'f' and oid not in (select unnest(array[typinput, typoutput, typsend]) from pg_type)
    and proname not in ('${computing.split(" ").join("', '")}')`);
  const tables = await read(`select oid::text, relname as name from pg_class
    where oid in ('${listed.join("'::regclass, '")}'::regclass)`);
  const names = await read(`select min(oid)::text as oid, proname as name from pg_proc
    where pronamespace = 'pg_catalog'::regnamespace and prokind <> 'p' and pronargs >= 1
    and (pronargs - pronargdefaults <= 1 or provariadic <> 0) group by proname order by proname`);
  const oneArgument = [...names.values()].filter(
    (name) => !/^(?:pg_promote|pg_log_|binary_upgrade|pg_stat_reset)/.test(name),
  );
  return { foreign, active, tables: new Set(tables.keys()), oneArgument };
}

const members =
  "funcid aggfnoid winfnoid opfuncid opno eqop sortop resulttype resulttypeid consttype typeOid tsmhandler";
const references = new RegExp(`:(${members.replaceAll(" ", "|")}) (\\d+)`, "g");
const relations = /:rtekind 0 :relid (\d+)/g;
const calls = /:funcid (\d+) [^{}]*?:funcformat 0 /g;

/** Returns everything that a statement's tree names, except the readable tables and the functions that only compute. */
export function reachedBy(notice: string, { foreign, active, tables }: Catalogue): readonly string[] {
  // The server breaks long lines.
  const tree = notice.replace(/\s+/g, " ");
  const reached = new Set<string>();
  for (const [, , oid = ""] of tree.matchAll(references)) {
    const name = foreign.get(oid);
    if (name !== undefined) reached.add(`tree has ${name}`);
  }
  for (const [, oid = ""] of tree.matchAll(relations)) if (!tables.has(oid)) reached.add(`tree reads table ${oid}`);
  for (const [, oid = ""] of tree.matchAll(calls)) {
    const name = active.get(oid);
    if (name !== undefined) reached.add(`tree calls ${name}`);
  }
  return [...reached];
}

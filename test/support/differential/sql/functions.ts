import type { PostgresServer } from "../../postgres-server.ts";

interface Found {
  readonly name: string;
  readonly types: readonly string[];
  readonly one: boolean;
}

/** A concrete type for a polymorphic one. */
const stands: ReadonlyMap<string, string> = new Map([
  ["anyelement", "int"],
  ["anyarray", "int[]"],
  ["anynonarray", "int"],
  ["anycompatible", "int"],
  ["anycompatiblearray", "int[]"],
  ["anyrange", "int4range"],
  ["anymultirange", "int4multirange"],
  ["anycompatiblerange", "int4range"],
  ["anycompatiblemultirange", "int4multirange"],
  ['"any"', "int"],
]);

/** Calls every function of PostgreSQL with nulls of the right types: in brackets, and after a dot if that is a call. */
export async function callsOfAll(server: PostgresServer): Promise<readonly string[]> {
  const rows = (await server.run(`select '"' || proname || '"' as name, proargtypes::regtype[]::text[] as types,
    pronargs >= 1 and (pronargs - pronargdefaults <= 1 or provariadic <> 0) as one
    from pg_proc where pronamespace = 'pg_catalog'::regnamespace and prokind <> 'p'`)) as unknown as readonly Found[];
  const texts = rows.flatMap(({ name, types, one }) => {
    const inBrackets = `select ${name}(${types.map(nullOf).join(", ")}) limit 1`;
    const [first = ""] = types;
    if (!one) return [inBrackets];
    const ofRow = [`select (stock).${name} from stock limit 1`, `select stock.${name} from stock limit 1`];
    // A text without a type is a `cstring` if the function takes one.
    if (first === "cstring") return [inBrackets, `select ('1').${name} limit 1`, `select ${name}('1') limit 1`];
    if (first === "record") return [inBrackets, ...ofRow];
    const ofValue = [`select (${nullOf(first)}).${name} limit 1`, `select f.${name} from ${castOf(first)} f limit 1`];
    return [inBrackets, ...ofValue, ...(stands.has(first) ? ofRow : [])];
  });
  return [...new Set(texts)];
}

function nullOf(type: string): string {
  return type === "record" ? "null" : `null::${stands.get(type) ?? type}`;
}

function castOf(type: string): string {
  return `cast(null as ${stands.get(type) ?? type})`;
}

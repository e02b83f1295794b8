import { quote } from "../../../core/src/wire/mod.ts";
import { givesArgument, isCalledByDot, operators, pure, types } from "./names.ts";
import { memberTypes, quiet, type NodeTable } from "./nodes.ts";
import { doubt, type Fields, type Tree } from "./parse.ts";

/** The effects of a statement and all its subqueries. */
export interface Effects {
  readonly kinds: Set<string>;
  readonly reads: Set<string>;
  readonly writes: Set<string>;
  readonly functions: Set<string>;
  /** Tables that lose or change rows without a condition on a column. */
  readonly unfiltered: Set<string>;
}

/** Where a node is in the tree. */
interface SqlPosition {
  readonly effects: Effects;
  readonly nodes: NodeTable;
  readonly depth: number;
  /** Names that an outer `WITH` defines: they are not tables. */
  readonly names: ReadonlySet<string>;
  /** Does the statement change the tables found here, rather than read them? */
  readonly writes: boolean;
}

/** About two hundred nested operators or subqueries. */
const depthMax = 600;

/** Returns the kind of a statement. Adds the effects of the statement, and of everything in it, to `effects`. */
export function readStatement(statement: Fields, effects: Effects, nodes: NodeTable): string {
  const [node = ""] = Object.keys(statement);
  const kind = readStatementKind(nodes, node) ?? doubt(`${node} is not known here`);
  readNode(node, statement[node] as Fields, { effects, nodes, depth: 0, names: new Set(), writes: false });
  return kind;
}

export function isReadOnly(effects: Effects): boolean {
  return (
    effects.writes.size === 0 &&
    [...effects.kinds].every((kind) => quiet.has(kind)) &&
    [...effects.functions].every((name) => pure.has(name))
  );
}

function readStatementKind(nodes: NodeTable, node: string): string | undefined {
  const role = nodes.get(node);
  return role?.endsWith(" statement") === true ? role.slice(0, -" statement".length) : undefined;
}

/**
 * Reads a member of a node: a value, a list, a node that names its type, or a node whose type follows from the member.
 */
function readMember(node: string, name: string, value: Tree, position: SqlPosition): void {
  if (value === null || typeof value !== "object") return;
  const below = { ...position, depth: checkDepth(position) };
  if (isList(value)) {
    for (const item of value) readMember(node, name, item, below);
    return;
  }
  const [first, ...rest] = Object.keys(value);
  // A list may have empty elements.
  if (first === undefined) return;
  if (rest.length === 0 && /^[A-Z]/.test(first)) return readNode(first, value[first] as Fields, below);
  const type = memberTypes.get(`${node}.${name}`) ?? memberTypes.get(name);
  readNode(type ?? doubt(`the member ${name} of ${node} is not known here`), value, below);
}

function readMembers(node: string, fields: Fields, position: SqlPosition, without: readonly string[] = []): void {
  for (const [name, value] of Object.entries(fields))
    if (!without.includes(name)) readMember(node, name, value, position);
}

function readNode(node: string, fields: Fields, position: SqlPosition): void {
  const role = position.nodes.get(node);
  const kind = readStatementKind(position.nodes, node);
  if (kind !== undefined) return readKind(node, kind, fields, position);
  switch (role) {
    case "table":
      addTable(fields, position);
      break;
    case "function":
      addFunction(fields["funcname"] ?? null, position);
      break;
    case "operator":
      addOperator(node, fields, position);
      break;
    case "column":
      addCalledByDot(node, fields, position);
      break;
    case "type":
      addType(fields, position);
      break;
    case "sample":
      addSample(fields, position);
      break;
    case "merge":
      addMergeBranch(fields, position);
      break;
    case "lock":
      // It names only tables of `FROM`.
      position.effects.kinds.add("lock");
      return;
    case "plain":
      break;
    default:
      doubt(`${node} is not known here`);
  }
  readMembers(node, fields, position);
}

function readKind(node: string, kind: string, fields: Fields, position: SqlPosition): void {
  const { effects } = position;
  // The `VALUES` of an `INSERT` reads nothing.
  if (fields["valuesLists"] === undefined || position.depth === 0) effects.kinds.add(kind);
  switch (node) {
    case "SelectStmt":
      return readSelect(fields, { ...position, writes: false });
    case "InsertStmt":
      if (readTextField(fields["onConflictClause"], "action") === "ONCONFLICT_UPDATE") effects.kinds.add("update");
      return readChange(node, fields, position);
    case "UpdateStmt":
    case "DeleteStmt":
      if (!hasColumn(fields["whereClause"] ?? null)) effects.unfiltered.add(tableName(fields["relation"] as Fields));
      return readChange(node, fields, position);
    case "MergeStmt":
      if (!hasColumn(fields["joinCondition"] ?? null)) effects.unfiltered.add(tableName(fields["relation"] as Fields));
      return readChange(node, fields, position);
    case "CopyStmt":
      return readCopy(fields, position);
    case "TruncateStmt":
      for (const { RangeVar: table } of (fields["relations"] ?? []) as readonly Fields[])
        effects.unfiltered.add(tableName(table as Fields));
      break;
    case "VariableSetStmt":
      if (/^(?:role|session_authorization)$/.test(readTextField(fields, "name"))) effects.kinds.add("grant");
      break;
    case "DropStmt":
      for (const object of (fields["objects"] ?? []) as readonly Tree[]) effects.writes.add(objectName(object));
      break;
  }
  // A query in another statement is read as a query: `CREATE VIEW`, `EXPLAIN`, `PREPARE`.
  const isQuery = kind === "explain" || kind === "prepare" || kind === "cursor" || kind === "show";
  readMembers(node, fields, { ...position, writes: !isQuery });
}

function readSelect(fields: Fields, position: SqlPosition): void {
  const within = readWith(fields["withClause"], position);
  for (const [name, value] of Object.entries(fields)) {
    if (name === "withClause") continue;
    if (name === "larg" || name === "rarg") readSelect(value as Fields, { ...within, depth: checkDepth(within) });
    else if (name === "intoClause") {
      position.effects.kinds.add("create");
      readMember("SelectStmt", name, value, { ...within, writes: true });
    } else readMember("SelectStmt", name, value, within);
  }
}

function checkDepth({ depth }: SqlPosition): number {
  if (depth > depthMax) doubt("it is nested too deeply");
  return depth + 1;
}

/** `INSERT`, `UPDATE`, `DELETE`, `MERGE`: they change `relation`, and read everything else. */
function readChange(node: string, fields: Fields, position: SqlPosition): void {
  addTable(fields["relation"] as Fields, { ...position, names: new Set(), writes: true });
  const within = readWith(fields["withClause"], { ...position, writes: false });
  readMembers(node, fields, within, ["withClause", "relation"]);
}

function readCopy(fields: Fields, position: SqlPosition): void {
  const { is_from: isFrom, is_program: isProgram, filename, relation } = fields;
  if (isProgram === true) position.effects.kinds.add("program");
  else if (typeof filename === "string") position.effects.kinds.add("file");
  if (relation !== undefined) addTable(relation as Fields, { ...position, names: new Set(), writes: isFrom === true });
  readMembers("CopyStmt", fields, { ...position, writes: false }, ["relation"]);
}

/**
 * Reads the queries of a `WITH`, and returns the position in which its names are known. Without RECURSIVE a query only
 * knows the names before it: in `WITH t AS (SELECT * FROM t)` the second `t` is the table.
 */
function readWith(clause: Tree | undefined, position: SqlPosition): SqlPosition {
  if (clause === undefined) return position;
  const { ctes, recursive } = clause as Fields;
  const queries = ((ctes ?? []) as readonly Fields[]).map(({ CommonTableExpr: query }) => query as Fields);
  const names = new Set(position.names);
  if (recursive === true) for (const query of queries) names.add(readTextField(query, "ctename"));
  for (const query of queries) {
    readNode("CommonTableExpr", query, { ...position, depth: checkDepth(position), names: new Set(names) });
    names.add(readTextField(query, "ctename"));
  }
  return { ...position, names };
}

function addTable(table: Fields, { effects, names, writes }: SqlPosition): void {
  const name = tableName(table);
  if (writes) effects.writes.add(name);
  else if (!names.has(name) || table["schemaname"] !== undefined) effects.reads.add(name);
}

/** `schema.table` as PostgreSQL folds it. A dot inside a name is refused: it would look like another table. */
function tableName(table: Fields): string {
  const parts = [table["catalogname"], table["schemaname"], table["relname"]];
  return joinName(parts.filter((part) => typeof part === "string"));
}

function joinName(parts: readonly string[]): string {
  const odd = parts.find((part) => /[."\s]/.test(part));
  if (odd !== undefined) doubt(`the name ${quote(odd)} has a dot, a quote or a space`);
  return parts.join(".");
}

function addFunction(name: Tree, { effects }: SqlPosition): void {
  effects.functions.add(joinName(readNameWithoutCatalog(name)));
}

/** `OPERATOR(schema.+)` runs a function that somebody defined, and so does any operator that is not PostgreSQL's own. */
function addOperator(node: string, fields: Fields, { effects }: SqlPosition): void {
  // The parser names this operator `BETWEEN`; it means `<=` and `>=`.
  if (/^AEXPR_(?:NOT_)?BETWEEN/.test(readTextField(fields, "kind"))) return;
  const member = node === "A_Expr" ? "name" : node === "SubLink" ? "operName" : "useOp";
  const names = readNameWithoutCatalog(fields[member] ?? []);
  if (names.length > 1 || names.some((name) => !operators.has(name))) effects.functions.add(joinName(names));
}

/** PostgreSQL reads `(x).f` and `alias.f` as `f(x)` if `x` has no column of that name. */
function addCalledByDot(node: string, fields: Fields, { effects }: SqlPosition): void {
  // An alias may be called `pg_catalog`, so here the first part counts too.
  const names = readNameParts(fields[node === "ColumnRef" ? "fields" : "indirection"] ?? []);
  const behindDots = node === "ColumnRef" ? names.slice(1).slice(-1) : names;
  const first = behindDots.findIndex((name) => name !== "");
  for (const [at, name] of behindDots.entries()) {
    const isOwn = node === "A_Indirection" && at === first && !mayHaveColumn(fields["arg"] ?? null, name);
    if ((isOwn && !pure.has(name) && !types.has(name)) || isCalledByDot(name)) effects.functions.add(name);
  }
}

/**
 * May the value have a column of this name? If not, a name after a dot is a call. Columns, parameters and queries over
 * tables may have one, and so may values of a user-defined type.
 */
function mayHaveColumn(tree: Tree, name: string): boolean {
  if (tree === null || typeof tree !== "object") return false;
  if (isList(tree)) return tree.some((item) => mayHaveColumn(item, name));
  const [node = ""] = Object.keys(tree);
  const fields = tree[node] as Fields;
  switch (node) {
    case "ColumnRef":
    case "ParamRef":
      return true;
    case "RowExpr":
      return /^f\d+$/.test(name);
    case "FuncCall":
      return callMayHaveColumn(fields, name);
    case "TypeCast":
      return !types.has(readNameWithoutCatalog((fields["typeName"] as Fields)["names"] ?? []).at(-1) ?? "");
    case "A_Indirection":
      // A member of the value, or an element of it.
      return (
        readNameParts(fields["indirection"] ?? []).some((part) => part !== "") ||
        mayHaveColumn(fields["arg"] ?? null, name)
      );
    case "SubLink":
      if (!/^(?:EXPR|ARRAY)_SUBLINK$/.test(readTextField(fields, "subLinkType"))) return false;
      return mayHaveColumn(((fields["subselect"] as Fields)["SelectStmt"] as Fields)["targetList"] ?? null, name);
    default:
      return (passedOn.get(node) ?? []).some((member) => mayHaveColumn(fields[member] ?? null, name));
  }
}

/** The members of a node, one of which is its value. */
const passedOn: ReadonlyMap<string, readonly string[]> = new Map([
  ["CaseExpr", ["args", "defresult"]],
  ["CaseWhen", ["result"]],
  ["ResTarget", ["val"]],
  ["CoalesceExpr", ["args"]],
  ["MinMaxExpr", ["args"]],
  ["A_ArrayExpr", ["elements"]],
]);

function callMayHaveColumn(fields: Fields, name: string): boolean {
  const called = readNameWithoutCatalog(fields["funcname"] ?? []).join(".");
  if (!pure.has(called)) return true;
  if (/^jsonb?_each/.test(called)) return name === "key" || name === "value";
  return givesArgument.has(called) && mayHaveColumn(fields["args"] ?? null, name);
}

/** A type that is not PostgreSQL's own counts as a function of the same name. */
function addType(fields: Fields, { effects }: SqlPosition): void {
  const names = readNameWithoutCatalog(fields["names"] ?? []);
  const isKnown = names.length === 1 && types.has(names[0]?.replace(/^_/, "") ?? "");
  if (!isKnown && names.length > 0) effects.functions.add(joinName(names));
}

function addSample(fields: Fields, { effects }: SqlPosition): void {
  const method = joinName(readNameWithoutCatalog(fields["method"] ?? []));
  if (method !== "bernoulli" && method !== "system") effects.functions.add(method);
}

function addMergeBranch(fields: Fields, { effects }: SqlPosition): void {
  const action = readTextField(fields, "commandType").replace("CMD_", "").toLowerCase();
  if (action !== "nothing") effects.kinds.add(action);
}

/** The parts of a name; empty for a part that is not a name, such as an index. */
function readNameParts(tree: Tree): readonly string[] {
  return isList(tree) ? tree.map((part) => readTextField((part as Fields)["String"], "sval")) : [];
}

/** The parts of a function's, an operator's or a type's name, without the schema of PostgreSQL itself. */
export function readNameWithoutCatalog(tree: Tree): readonly string[] {
  const parts = readNameParts(tree);
  return parts[0] === "pg_catalog" && parts.length > 1 ? parts.slice(1) : parts;
}

/** The objects that `DROP` names: a list of names, one name, or a function with its arguments. */
function objectName(object: Tree): string {
  const { List: list, String: name, ObjectWithArgs: withArgs, TypeName: type } = object as Fields;
  if (name !== undefined) return joinName([readTextField(name, "sval")]);
  const names =
    (list as Fields | undefined)?.["items"] ??
    (withArgs as Fields | undefined)?.["objname"] ??
    (type as Fields)["names"];
  return joinName(readNameParts(names ?? []).filter((part) => part !== ""));
}

/** Does a condition read any column? `WHERE true` and `WHERE 1 = 1` do not. */
function hasColumn(tree: Tree): boolean {
  const stack: Tree[] = [tree];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    if (next === null || typeof next !== "object") continue;
    if (isList(next)) stack.push(...next);
    else if ("ColumnRef" in next || "CurrentOfExpr" in next) return true;
    else stack.push(...Object.values(next));
  }
  return false;
}

function readTextField(fields: Tree | undefined, name: string): string {
  const value = (fields as Fields | undefined)?.[name];
  return typeof value === "string" ? value : "";
}

function isList(tree: Tree): tree is readonly Tree[] {
  return Array.isArray(tree);
}

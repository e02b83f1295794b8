import { Dice } from "../../campaign/random.ts";
import {
  aggregates,
  groups,
  joins,
  limits,
  lists,
  names,
  orders,
  statements,
  unions,
  windows,
  withs,
  type Clause,
} from "./clauses.ts";
import { hostileExpressions, type Hostile } from "./hostile.ts";
import { hostileStatements } from "./hostile-statements.ts";
import { mutate } from "./mutate.ts";
import { expressions, leaves, type Kind, type Production } from "./productions.ts";
import { scalarSources, sources, tableForms, tables, type Column, type Source } from "./sources.ts";

/** A statement of the grammar, with the names of the productions that made it. */
export interface Written {
  readonly text: string;
  readonly productions: ReadonlySet<string>;
}

export interface GrammarOptions {
  /** Functions of the server that take one argument, for `(x).name`. */
  readonly names: readonly string[];
  /** Every statement tries to contain one of these hostile productions. */
  readonly focus?: readonly string[];
}

const kinds: readonly Kind[] = ["int", "num", "text", "bool", "time", "date", "span", "json", "ints", "texts"];
const symbol = /\{([a-z]+)(?:\.([a-z]+))?\}/gi;

/** Everything that a query's expressions can name. */
interface Frame {
  readonly columns: (Column & { readonly alias: string })[];
  readonly rows: string[];
  readonly scalars: { readonly name: string; readonly kind: Kind }[];
}

interface Query {
  readonly name: string;
  readonly columns: readonly Column[];
}

const pair: readonly Column[] = [
  { name: "id", kind: "int" },
  { name: "name", kind: "text" },
];

/** Every production that a harmless statement can have. */
export const productionNames: readonly string[] = [
  ...new Set([
    ...[leaves, expressions, aggregates, windows, sources, scalarSources, tableForms].flat().map(([name]) => name),
    ...[statements, joins, orders, limits, groups, lists, names, unions, withs].flat().map(([name]) => name),
    "column",
    "dot-call-any",
    "mutation",
    "with-in-from",
    "where",
    "having",
    "query-plain",
    "query-without-from",
  ]),
];

/** Writes statements from a seed. Expressions have types, so that the server runs most of the statements. */
export class Grammar {
  readonly #dice: Dice;
  readonly #options: GrammarOptions;
  readonly #hostile: readonly Hostile[];
  #used = new Set<string>();
  #frames: Frame[] = [];
  #queries: Query[] = [];
  #aliases = 0;
  #danger = 0;

  constructor(seed: number, options: GrammarOptions) {
    this.#dice = new Dice(seed);
    this.#options = options;
    const { focus } = options;
    this.#hostile = hostileExpressions.filter(([name]) => focus === undefined || focus.includes(name));
  }

  statement(): Written {
    this.#used = new Set();
    this.#frames = [];
    this.#queries = [];
    this.#aliases = 0;
    const form =
      this.#options.focus === undefined
        ? this.#dice.weighted({ plain: 58, hostile: 19, whole: 5, mutation: 18 })
        : "hostile";
    this.#danger = form === "hostile" ? 0.25 : form === "mutation" && this.#dice.roll() < 0.5 ? 0.15 : 0;
    if (form === "whole") return { text: this.#clause(hostileStatements, 1), productions: this.#used };
    const text = this.#statement();
    if (form !== "mutation") return { text, productions: this.#used };
    return { text: mutate(text, this.#dice, this.#options.names), productions: new Set(["mutation"]) };
  }

  #statement(): string {
    if (this.#dice.roll() < 0.78) return this.#expand("{query}", 3);
    return this.#clause(statements, 3);
  }

  /** Writes one spelling of one of the productions. */
  #clause(from: readonly Clause[], depth: number, put: Readonly<Record<string, string>> = {}): string {
    const [name, ...spellings] = this.#dice.oneOf(from);
    this.#used.add(name);
    return this.#expand(this.#dice.oneOf(spellings), depth, put);
  }

  #expand(spelling: string, depth: number, put: Readonly<Record<string, string>> = {}): string {
    return spelling.replace(
      symbol,
      (whole, name: string, of: string | undefined) => put[name] ?? this.#symbol(name, of, depth) ?? whole,
    );
  }

  /** Returns undefined for braces that are part of the statement. */
  #symbol(name: string, of: string | undefined, depth: number): string | undefined {
    switch (name) {
      case "query":
        if (of === undefined) return this.#query(this.#someKinds(), depth);
        return `${this.#query([of as Kind], depth - 2)} limit 1`;
      case "rows":
        return this.#query([of as Kind], depth - 2);
      case "pair":
        return this.#query(["int", "text"], depth - 1);
      case "any":
        return this.#expression(this.#dice.oneOf(kinds), depth - 1);
      case "listed":
        return this.#dice.oneOf([...tables.keys()]);
      case "row":
        return this.#dice.oneOf(this.#frames.flatMap(({ rows }) => rows));
      case "column":
        return this.#column(of as Kind) ?? this.#literal(of as Kind);
      case "scalar": {
        const found = this.#frames.flatMap(({ scalars }) => scalars).filter(({ kind }) => kind === of);
        return this.#dice.oneOf(found).name;
      }
      default:
        return (kinds as readonly string[]).includes(name) ? this.#expression(name as Kind, depth - 1) : undefined;
    }
  }

  #someKinds(): readonly Kind[] {
    return Array.from({ length: 1 + Math.floor(this.#dice.roll() * 3) }, () => this.#dice.oneOf(kinds));
  }

  #expression(kind: Kind, depth: number): string {
    if (depth >= 0 && this.#dice.roll() < this.#danger) return `(${this.#clause(this.#hostile, depth)})`;
    if (depth <= 0 || this.#dice.roll() < 0.3) return this.#column(kind) ?? this.#literal(kind);
    if (kind === "text" && this.#dice.roll() < 0.02) {
      this.#used.add("dot-call-any");
      return this.#expand(`({any}).${this.#dice.oneOf(this.#options.names)}`, 1);
    }
    const all = expressions.filter((production) => production[1] === kind && this.#isPossible(production));
    // Few queries have a function in FROM; if there is one, its alias is tried more often.
    const possible = [
      ...all,
      ...all.filter(([name]) => name.startsWith("dot-call-alias")).flatMap((each) => [each, each]),
    ];
    if (possible.length === 0) return this.#column(kind) ?? this.#literal(kind);
    const text = this.#production(possible, depth);
    return /^[\w.]+$|^\(.*\)$|^\w+\([^()]*\)$/.test(text) ? text : `(${text})`;
  }

  #production(from: readonly Production[], depth: number): string {
    const [name, , ...spellings] = this.#dice.oneOf(from);
    this.#used.add(name);
    return this.#expand(this.#dice.oneOf(spellings.filter((spelling) => this.#hasNames(spelling))), depth);
  }

  #isPossible([, , ...spellings]: Production): boolean {
    return spellings.some((spelling) => this.#hasNames(spelling));
  }

  /** Returns whether FROM has a row or a function that the spelling names. */
  #hasNames(spelling: string): boolean {
    if (spelling.includes("{row}") && !this.#frames.some(({ rows }) => rows.length > 0)) return false;
    const [, of] = /\{scalar\.(\w+)\}/.exec(spelling) ?? [];
    return of === undefined || this.#frames.some(({ scalars }) => scalars.some(({ kind }) => kind === of));
  }

  #literal(kind: Kind): string {
    return this.#production(
      leaves.filter((production) => production[1] === kind),
      0,
    );
  }

  #column(kind: Kind): string | undefined {
    const found = this.#frames.flatMap(({ columns }) => columns.filter((column) => column.kind === kind));
    if (found.length === 0 || this.#dice.roll() < 0.3) return undefined;
    this.#used.add("column");
    const { alias, name } = this.#dice.oneOf(found);
    const isAlone = this.#frames[0]?.columns.every((column) => column.alias === alias) === true;
    if (isAlone && this.#dice.roll() < 0.4) return name;
    return this.#dice.roll() < 0.15 ? `"${alias}"."${name}"` : `${alias}.${name}`;
  }

  /** Writes a query whose columns have these kinds. */
  #query(list: readonly Kind[], depth: number): string {
    const form =
      depth <= 0
        ? "plain"
        : this.#dice.weighted({ plain: 52, grouped: 15, windowed: 15, without: 6, union: 6, with: 12 });
    if (form === "with") return this.#with(list, depth);
    if (form === "union") {
      const put = { one: this.#query(list, depth - 2), two: this.#query(list, depth - 2) };
      return this.#clause(unions, depth, put);
    }
    this.#frames.unshift({ columns: [], rows: [], scalars: [] });
    const text = this.#select(form, list, depth);
    this.#frames.shift();
    return text;
  }

  #with(list: readonly Kind[], depth: number): string {
    // A query may have the name of a table that is not listed.
    const name = this.#dice.oneOf(["q", "recent", "orders", "date", "t", this.#danger > 0 ? "r" : "secret"]);
    const head = this.#clause(withs, depth - 1, { name });
    this.#queries.unshift({ name, columns: pair });
    const body = this.#query(list, depth - 1);
    this.#queries.shift();
    return `${head} ${body.startsWith("with") ? `(${body})` : body}`;
  }

  #select(form: "plain" | "grouped" | "windowed" | "without", list: readonly Kind[], depth: number): string {
    this.#used.add(form === "without" ? "query-without-from" : "query-plain");
    const from = form === "without" ? "" : ` from ${this.#from(depth)}`;
    const where = this.#dice.roll() < 0.4 ? this.#part("where", `where {bool}`, depth) : "";
    const grouping = form === "grouped" ? this.#grouping(depth) : "";
    const values = list.map((kind) => this.#clause(names, depth, { value: this.#value(form, kind, depth) }));
    const head =
      form === "grouped" || form === "windowed"
        ? "select {list}"
        : `select ${this.#clause(lists, depth, { list: "{list}" })}`;
    const text = head.replace("{list}", () => values.join(", ")) + from + where + grouping;
    const isWindowed =
      form === "windowed" ? this.#expand(" window w as (partition by {text} order by {int})", depth) : "";
    const isOrdered = (form === "plain" && !head.includes("distinct")) || form === "windowed";
    const order = isOrdered && this.#dice.roll() < 0.3 ? ` ${this.#clause(orders, depth)}` : "";
    return (
      text + isWindowed + order + (this.#dice.roll() < 0.3 && depth === 3 ? ` ${this.#clause(limits, depth)}` : "")
    );
  }

  #part(name: string, spelling: string, depth: number): string {
    this.#used.add(name);
    return ` ${this.#expand(spelling, depth)}`;
  }

  #value(form: string, kind: Kind, depth: number): string {
    const special = form === "grouped" ? aggregates : form === "windowed" ? windows : [];
    const possible = special.filter((production) => production[1] === kind && this.#isPossible(production));
    if (possible.length > 0) return this.#production(possible, depth - 1);
    if (form !== "grouped") return this.#expression(kind, depth);
    return kind === "ints" || kind === "texts"
      ? this.#literal(kind)
      : `(array_agg(${this.#expression(kind, depth - 1)}))[1]`;
  }

  #grouping(depth: number): string {
    const columns = this.#frames[0]?.columns.filter(({ kind }) => kind !== "json") ?? [];
    const having =
      this.#dice.roll() < 0.3 ? this.#part("having", "having count(*) > 0 or bool_or({bool})", depth - 1) : "";
    if (columns.length === 0 || this.#dice.roll() < 0.2) return having;
    const keys = Array.from({ length: 2 }, () => this.#dice.oneOf(columns)).map(
      ({ alias, name }) => `${alias}.${name}`,
    );
    return ` ${this.#clause(groups, depth, { keys: keys.join(", ") })}${having}`;
  }

  #from(depth: number): string {
    const left = this.#source(depth);
    if (this.#dice.roll() < 0.65) return left;
    const [name, ...spellings] = this.#dice.oneOf(joins);
    this.#used.add(name);
    const spelling = this.#dice.oneOf(spellings);
    const isOfTables = spelling.includes("{table}");
    if (isOfTables && this.#frames[0]?.columns.some((column) => column.name === "id") !== true) return left;
    if (!/lateral/.test(spelling)) {
      const right = isOfTables ? this.#table() : this.#source(depth - 1);
      return this.#expand(spelling, depth - 1, { left, source: right, table: right });
    }
    const alias = this.#alias();
    const joined = this.#expand(spelling.replace(/ on \{bool\}/, " on true"), depth - 1, { left, alias });
    this.#add(alias, pair);
    return joined;
  }

  #source(depth: number): string {
    const roll = this.#dice.roll();
    const own = this.#queries[0];
    if (own !== undefined && roll < 0.3) {
      const alias = this.#alias();
      this.#used.add("with-in-from");
      this.#add(alias, own.columns);
      return `${own.name} ${alias}`;
    }
    if (roll < 0.5) return this.#table();
    const isScalar = roll < 0.72;
    const [name, columns, ...spellings] = this.#dice.oneOf<Source>(isScalar ? scalarSources : sources);
    const alias = this.#alias();
    this.#used.add(name);
    const text = this.#hidden(!/lateral/.test(name), () =>
      this.#expand(this.#dice.oneOf(spellings), depth - 1, { alias }),
    );
    if (isScalar) {
      const kind = columns as Kind;
      this.#frames[0]?.scalars.push({ name: alias, kind });
      this.#frames[0]?.columns.push({ name: alias, alias, kind });
      return text;
    }
    this.#add(
      alias,
      columns.split(" ").map((each) => ({ name: each.split(":")[0] ?? "", kind: each.split(":")[1] as Kind })),
    );
    return text;
  }

  /** A query in FROM cannot see the other sources of FROM. */
  #hidden(isHidden: boolean, write: () => string): string {
    const frame = isHidden ? this.#frames.shift() : undefined;
    const text = write();
    if (frame !== undefined) this.#frames.unshift(frame);
    return text;
  }

  #table(): string {
    const shadowed = new Set(this.#queries.map(({ name }) => name));
    const table = this.#dice.oneOf([...tables.keys()].filter((name) => !shadowed.has(name)));
    const [name, spelling] = this.#dice.oneOf(tableForms);
    const alias = this.#alias();
    this.#used.add(name);
    const text = this.#expand(spelling, 0, { table, TABLE: table.toUpperCase(), alias });
    this.#add(alias, tables.get(table) ?? []);
    this.#frames[0]?.rows.push(alias);
    return text;
  }

  #alias(): string {
    this.#aliases += 1;
    return `${"abfoxz"[this.#aliases % 6]}${this.#aliases}`;
  }

  #add(alias: string, columns: readonly Column[]): void {
    for (const column of columns) this.#frames[0]?.columns.push({ ...column, alias });
  }
}

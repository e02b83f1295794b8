import { parseSync } from "oxc-parser";

/** A node of the parse tree, or one of its plain objects. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

/** A match of a pattern, and the source text of its holes. */
export interface Match {
  readonly start: number;
  readonly end: number;
  readonly holes: ReadonlyMap<string, string>;
}

/** A pattern: one expression, or consecutive statements. */
export interface Pattern {
  readonly nodes: readonly Node[];
  readonly isExpression: boolean;
}

type Language = "js" | "ts";

/** @throws for a text that does not parse */
export function parse(text: string, lang: Language): Node {
  const { program, errors } = parseSync(`source.${lang}`, text, { lang, sourceType: "module", preserveParens: false });
  const [error] = errors;
  if (error !== undefined) throw new SyntaxError(error.message);
  return program as unknown as Node;
}

/** A pattern is parsed as the body of a method, so that private names, `return`, `await` and `yield` are allowed. */
function bodyOf(text: string, lang: Language): readonly Node[] | undefined {
  try {
    const [outer] = list(parse(`class Outer { async *method() { ;${text}\n} }`, lang)["body"]);
    const [method] = list(node(outer?.["body"])?.["body"]);
    return list(node(node(method?.["value"])?.["body"])?.["body"]).slice(1);
  } catch {
    return undefined;
  }
}

/** A pattern is an expression if possible, and statements if it ends in a semicolon or a brace. */
export function patternOf(text: string, lang: Language): Pattern {
  const expression = node(bodyOf(`(${text}\n)`, lang)?.[0]?.["expression"]);
  if (expression !== undefined) return { nodes: [expression], isExpression: true };
  const statements = bodyOf(text, lang) ?? [];
  if (statements.length === 0) throw new Error(`the pattern does not parse: ${text}`);
  return { nodes: statements, isExpression: false };
}

export function isExpression(text: string, lang: Language): boolean {
  return text.trim() !== "" && bodyOf(`(${text}\n)`, lang)?.length === 1;
}

/** Returns every match of the pattern inside a node. */
export function matchesIn(within: Node, { nodes }: Pattern, text: string): readonly Match[] {
  const found = new Map<string, Match>();
  const compare = (candidates: readonly Node[]): void => {
    const holes = new Map<string, string>();
    const [first, last] = [candidates[0], candidates.at(-1)];
    if (
      first === undefined ||
      last === undefined ||
      !nodes.every((each, at) => same(each, candidates[at], text, holes))
    )
      return;
    found.set(`${first.start} ${last.end}`, { start: first.start, end: last.end, holes });
  };
  walk(within, (each) => {
    for (const value of Object.values(each)) {
      const children = Array.isArray(value) ? list(value) : [node(value)].filter((child) => child !== undefined);
      for (let at = 0; at + nodes.length <= children.length; at += 1) compare(children.slice(at, at + nodes.length));
    }
  });
  return [...found.values()];
}

/** Returns the nodes with a name, by all names around them: `Turn.commit`, `Turn.#seal`, `limits`. */
export function namedNodes(program: Node): ReadonlyMap<string, readonly Node[]> {
  const found = new Map<string, Node[]>();
  const visit = (each: Node, names: readonly string[]): void => {
    // A property of an object without a name has no name either.
    const name = each.type === "Property" && names.length === 0 ? undefined : nameOf(each);
    const inner = name === undefined ? names : [...names, name];
    if (name !== undefined) {
      const full = inner.join(".");
      found.set(full, [...(found.get(full) ?? []), each]);
    }
    for (const child of childrenOf(each)) visit(child, inner);
  };
  visit(program, []);
  return found;
}

function nameOf(each: Node): string | undefined {
  const named = ["FunctionDeclaration", "ClassDeclaration", "VariableDeclarator"].includes(each.type);
  const isMember = ["MethodDefinition", "PropertyDefinition", "Property"].includes(each.type);
  const name = node(named ? each["id"] : isMember ? each["key"] : undefined);
  if (name?.type === "PrivateIdentifier") return `#${String(name["name"])}`;
  return name?.type === "Identifier" ? String(name["name"]) : undefined;
}

/** Compares nodes without types, comments, parentheses and the spelling of literals. */
const ignored = new Set(
  "start end raw directive typeAnnotation returnType typeParameters typeArguments declare accessibility definite".split(
    " ",
  ),
);
const casts = new Set(["TSAsExpression", "TSNonNullExpression", "TSSatisfiesExpression"]);

function same(pattern: unknown, candidate: unknown, text: string, holes: Map<string, string>): boolean {
  if (Array.isArray(pattern)) return Array.isArray(candidate) && sameLists(pattern, candidate, text, holes);
  if (typeof pattern !== "object" || pattern === null) return (pattern ?? undefined) === (candidate ?? undefined);
  if (typeof candidate !== "object" || candidate === null) return false;
  const [wanted, given] = [bare(pattern), bare(candidate)];
  const hole = holeOf(wanted);
  if (hole !== undefined) {
    holes.set(hole, text.slice(given.start, given.end));
    return true;
  }
  const keys = new Set([...Object.keys(wanted), ...Object.keys(given)].filter((key) => !ignored.has(key)));
  return [...keys].every((key) => same(wanted[key], given[key], text, holes));
}

/** `$$rest` at the end of a list stands for its rest. */
function sameLists(
  pattern: readonly unknown[],
  candidates: readonly unknown[],
  text: string,
  holes: Map<string, string>,
): boolean {
  const last = node(pattern.at(-1));
  const rest = last === undefined ? undefined : holeOf(bare(last));
  if (rest?.startsWith("$$") !== true)
    return pattern.length === candidates.length && pattern.every((each, at) => same(each, candidates[at], text, holes));
  const fixed = pattern.slice(0, -1);
  if (candidates.length < fixed.length) return false;
  const [first, end] = [node(candidates[fixed.length]), node(candidates.at(-1))];
  holes.set(rest, first === undefined || end === undefined ? "" : text.slice(first.start, end.end));
  return fixed.every((each, at) => same(each, candidates[at], text, holes));
}

function bare(value: object): Node {
  const given = value as Node;
  const inner = casts.has(given.type) ? node(given["expression"]) : undefined;
  return inner === undefined ? given : bare(inner);
}

function holeOf({ type, name, expression }: Node): string | undefined {
  if (type === "ExpressionStatement") return holeOf(expression as Node);
  return type === "Identifier" && /^\$\$?[a-z]/.test(String(name)) ? String(name) : undefined;
}

export function walk(from: Node, visit: (each: Node) => void): void {
  visit(from);
  for (const child of childrenOf(from)) walk(child, visit);
}

function childrenOf(each: Node): readonly Node[] {
  return Object.values(each).flatMap((value) => {
    const one = node(value);
    return one === undefined ? list(value) : [one];
  });
}

export function node(value: unknown): Node | undefined {
  return typeof value === "object" && value !== null && "type" in value && "start" in value
    ? (value as Node)
    : undefined;
}

function list(value: unknown): readonly Node[] {
  return Array.isArray(value) ? value.map(node).filter((each) => each !== undefined) : [];
}

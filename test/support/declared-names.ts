import { parseSync, Visitor } from "oxc-parser";

type SourceText = { readonly path: string; readonly text: string };
const packageSource = /^packages\/[^/]+\/src\/(?!(?:.*\/)?generated\/).*\.ts$/;

/** Types that two files may declare. */
const doubled = new Map([
  ["CompileOptions", "those of the readers have all functions already"],
  ["Outcome", "`svc-gate/cli` publishes the end of a command under this name"],
]);
/** Names that may be a participle, because the package publishes them. */
const participles = new Set(["Prepared", "counted", "sorted"]);

interface DeclaredName {
  readonly path: string;
  readonly name: string;
  readonly kind: "type" | "function";
}

/** Returns each type whose name a second file declares, and each name in the list above that only one file declares. */
export function doubledTypes(files: readonly SourceText[]): string[] {
  const types = files.flatMap(namesDeclared).filter(({ kind }) => kind === "type");
  return [...Map.groupBy(types, ({ name }) => name)].flatMap(([name, all]) => {
    const [first = "", ...others] = new Set(all.map(({ path }) => path));
    if (!doubled.has(name))
      return others.map((path) => `${path} declares ${name}, as ${first} does: say what each of them is`);
    return others.length > 0 ? [] : [`${name}: only ${first} declares it, so it must leave the list of doubled types`];
  });
}

/** Returns each type, function and method whose name is one participle: it tells a reader neither the thing nor the action. */
export function vagueNames(files: readonly SourceText[]): string[] {
  const vague = files.flatMap(namesDeclared).filter(({ name }) => isParticiple(name) && !participles.has(name));
  return vague.map(
    ({ path, name, kind }) => `${path}: ${name} does not say which ${kind === "type" ? "thing" : "action"} it names`,
  );
}

const known = new WeakMap<SourceText, readonly DeclaredName[]>();

/** Returns the types, functions and methods that a source of a package declares. Getters and fields are not among them. */
function namesDeclared(file: SourceText): readonly DeclaredName[] {
  return known.getOrInsertComputed(file, ({ path, text }) => {
    if (!packageSource.test(path)) return [];
    const names: DeclaredName[] = [];
    const add = (kind: DeclaredName["kind"], declared: object | null): void => {
      if (declared !== null && "name" in declared) names.push({ path, kind, name: String(declared.name) });
    };
    new Visitor({
      TSTypeAliasDeclaration: ({ id }) => add("type", id),
      TSInterfaceDeclaration: ({ id }) => add("type", id),
      ClassDeclaration: ({ id }) => add("type", id),
      FunctionDeclaration: ({ id }) => add("function", id),
      MethodDefinition: ({ key, kind }) => kind === "method" && add("function", key),
      TSMethodSignature: ({ key, kind }) => kind === "method" && add("function", key),
      VariableDeclarator: ({ id, init }) => init?.type === "ArrowFunctionExpression" && add("function", id),
    }).visit(parseSync(path, text).program);
    return names;
  });
}

/** Participles without -ed and -ing. Those that are also the verb itself, such as `read` and `set`, are not here. */
const irregular = new Set(
  (
    "begun bought broken brought built caught chosen dealt done drawn driven fallen fed felt forgotten found frozen given gone got " +
    "grown heard held hidden kept known laid led left lent lost made meant met paid proven rebuilt resent rewritten said seen sent " +
    "shown sold spelt spent spoken stood stuck swept sworn taken taught thought thrown told torn undone unmet unseen unwritten " +
    "withdrawn won written"
  ).split(" "),
);
/** Nouns and verbs that only look like participles. */
const others = new Set(
  (
    "being binding bring ceiling embed feed finding greeting heading hundred king listing mapping meaning need nothing ring seed setting " +
    "sibling speed spelling spring string thing warning"
  ).split(" "),
);

/** Is the name one participle, such as `Found` or `waiting`? */
function isParticiple(name: string): boolean {
  const word = name.toLowerCase();
  return /^.[a-z]*$/.test(name) && !others.has(word) && (irregular.has(word) || /..(?:ed|ing)$/.test(word));
}

import { didYouMean, isMemberName, memberCharactersMax } from "../../wire/mod.ts";
import type { Report, Span } from "../text/diagnostic.ts";
import type { ContractDocument } from "../text/document.ts";
import { definitionOf } from "../schema/read.ts";
import type { YamlMap, YamlNode, YamlScalar } from "../text/yaml.ts";

/** Each one is a part of the evidence with its own salt and digest, on every receipt of the tool. */
export const sensitiveMax = 16;

/** Names such as `input.customer.email`, sorted by code units, none inside another. */
export interface SensitiveNames {
  /** For each routed tool, the names that all of its contracts list. Tools without such names are absent. */
  readonly ofTool: ReadonlyMap<string, readonly string[]>;
  /** The names of all contracts. A call of an unknown tool may be a call of a known tool under a mistyped name. */
  readonly unrouted: readonly string[];
}

export const nothingSensitive: SensitiveNames = { ofTool: new Map(), unrouted: [] };

/**
 * Reads the names that contracts list under `sensitive:`. If a name is inside another, the outer one counts. Problems
 * go to the report.
 */
export function readSensitive(contracts: readonly ContractDocument[], report: Report): SensitiveNames {
  const found = new Map<string, readonly string[]>();
  for (const contract of contracts) {
    const [first] = contract.sensitive;
    if (first === undefined) continue;
    const names = readSensitiveNames(contract, report);
    for (const tool of contract.tools.keys()) {
      const known = found.get(tool) ?? [];
      const together = outermost([...known, ...names]);
      if (together.length > sensitiveMax && known.length <= sensitiveMax && names.length <= sensitiveMax)
        report.add(
          "too-large",
          first.span,
          `contracts together list over ${sensitiveMax} sensitive members of \`${tool}\``,
          "list an object that contains several of them",
        );
      if (together.length > 0) found.set(tool, together);
    }
  }
  return { ofTool: found, unrouted: outermost([...found.values()].flat()) };
}

function outermost(names: readonly string[]): readonly string[] {
  return [...new Set(names)].filter((name) => !names.some((other) => isInside(name, other))).toSorted(byCodeUnits);
}

function byCodeUnits(a: string, b: string): number {
  return a < b ? -1 : 1;
}

function isInside(name: string, other: string): boolean {
  return name.startsWith(`${other}.`);
}

function readSensitiveNames(contract: ContractDocument, report: Report): readonly string[] {
  const listed = contract.sensitive;
  const past = listed[sensitiveMax];
  if (past !== undefined)
    report.add(
      "too-large",
      past.span,
      `over ${sensitiveMax} members under \`sensitive:\``,
      "list an object that contains several of them",
    );
  for (const [at, name] of listed.entries()) {
    if (!isName(name, report) || !standsAlone(name, at, listed, report)) continue;
    checkDeclared(name, contract, report);
  }
  return listed.map(({ text }) => text);
}

function isName({ text, span }: YamlScalar, report: Report): boolean {
  if (isMemberName(text) && text.length <= memberCharactersMax) return true;
  const isWhole = text === "input" || text === "platform";
  report.add(
    "sensitive",
    span,
    isWhole ? `\`${text}\` is already a separate part` : `\`${text.slice(0, memberCharactersMax)}\` names no member`,
    isWhole
      ? `list members of it, such as \`${text}.customer.email\``
      : "a member is `input.` or `platform.` and its names, such as `input.customer.email`; names are of letters, " +
          `digits and \`_\`, at most ${memberCharactersMax} characters together`,
  );
  return false;
}

/** Is it listed once, and not inside another listed member? A part is erased as a whole. */
function standsAlone({ text, span }: YamlScalar, at: number, listed: readonly YamlScalar[], report: Report): boolean {
  if (listed.findIndex((other) => other.text === text) < at) {
    report.add("sensitive", span, `\`${text}\` is listed twice`, "remove one");
    return false;
  }
  const outer = listed.find((other) => isMemberName(other.text) && isInside(text, other.text));
  if (outer === undefined) return true;
  report.add(
    "sensitive",
    span,
    `\`${text}\` is inside \`${outer.text}\`, which is listed too`,
    "list only one of them: erasing an object erases everything in it",
  );
  return false;
}

/** A member that no schema declares is misspelt, or never sent. Otherwise this would only be found at its erasure. */
function checkDeclared(name: YamlScalar, { tools, platform }: ContractDocument, report: Report): void {
  const [root = "", ...path] = name.text.split(".");
  const schemas = root === "platform" ? [platform] : [...tools.values()].map(({ input }) => input);
  const reached = schemas.map((schema) => reach(schema, path));
  const depth = Math.max(0, ...reached.map((one) => one.depth));
  if (depth === path.length) return;
  const deepest = reached.filter((one) => one.depth === depth);
  const owner = [root, ...path.slice(0, depth)].join(".");
  const member = path[depth] ?? "";
  const span = stepSpan(name, owner.length + 1, member);
  if (deepest.some(({ isList }) => isList)) {
    const message = `\`${owner}\` is a list, and members inside a list cannot be separate parts`;
    report.add("sensitive", span, message, `list \`${owner}\``);
    return;
  }
  const known = new Set(deepest.flatMap(({ names }) => names));
  const where = `under the \`properties\` of its schema${root === "input" ? ", for one tool at least" : ""}`;
  const hint = didYouMean(member, known, `declare \`${member}\` ${where}`);
  report.add("unknown-member", span, `\`${owner}\` has no member \`${member}\``, hint);
}

function stepSpan({ span, offsets }: YamlScalar, at: number, step: string): Span {
  return { ...span, from: offsets[at] ?? span.from, to: offsets[at + step.length] ?? span.to };
}

/** How many names of a path are declared, one below the other, and the alternatives at the first undeclared name. */
interface PathReach {
  readonly depth: number;
  readonly names: readonly string[];
  readonly isList: boolean;
}

function reach(root: YamlNode | undefined, path: readonly string[]): PathReach {
  let shapes = root === undefined ? [] : shapesOf([root], root);
  for (const [depth, name] of path.entries()) {
    const properties = shapes.flatMap((shape) => mapAt(shape, "properties") ?? []);
    const next = properties.flatMap(({ entries }) => entries.get(name)?.value ?? []);
    if (root === undefined || next.length === 0)
      return {
        depth,
        names: properties.flatMap(({ entries }) => [...entries.keys()]),
        isList: shapes.some(takesLists),
      };
    shapes = shapesOf(next, root);
  }
  return { depth: path.length, names: [], isList: false };
}

/** The schemas and everything that they include by `$ref` or `anyOf`, each once. */
function shapesOf(schemas: readonly YamlNode[], root: YamlNode): readonly YamlMap[] {
  const met = new Set(schemas);
  // Iterating over a set includes items that are added meanwhile.
  for (const schema of met) {
    if (schema.kind !== "map") continue;
    const branches = schema.entries.get("anyOf")?.value;
    for (const branch of branches?.kind === "list" ? branches.items : []) met.add(branch);
    const definition = definitionOf(schema, root);
    if (definition !== undefined) met.add(definition);
  }
  return [...met].filter((schema) => schema.kind === "map");
}

function mapAt({ entries }: YamlMap, key: string): YamlMap | undefined {
  const value = entries.get(key)?.value;
  return value?.kind === "map" ? value : undefined;
}

function takesLists({ entries }: YamlMap): boolean {
  const type = entries.get("type")?.value;
  const types = type?.kind === "list" ? type.items : [type];
  return types.some((item) => item?.kind === "scalar" && item.text === "array");
}

import { isPack } from "../../../../readers/src/tables.ts";
import {
  isContract,
  readYaml,
  Report,
  type SourceFile,
  type YamlMap,
  type YamlNode,
} from "../../../../readers/src/contract.ts";
import type { FileKind } from "../../../../gate/src/cli/mod.ts";

type OutlineEntry = NonNullable<ReturnType<YamlMap["entries"]["get"]>>;

/** The data for completion, hover and definitions: a document's last text that was YAML. */
export interface Outline {
  readonly source: SourceFile;
  readonly root: YamlMap;
}

export function outlineOf(source: SourceFile): Outline | undefined {
  const root = readYaml(source, new Report());
  return root?.kind === "map" ? { source, root } : undefined;
}

export function classifyFile({ name, text }: SourceFile): FileKind | undefined {
  if (/\.test\.ya?ml$/.test(name) || /^cases\s*:/m.test(text)) return "test";
  if (/^mandate\s*:/m.test(text)) return "mandate";
  if (isPack(text)) return "pack";
  return isContract(text) ? "contract" : undefined;
}

/** A member somewhere in the document, with its key's span. */
export interface OutlineMember {
  readonly key: { readonly from: number; readonly to: number };
  readonly node: YamlNode;
}

/** The member at a path of keys. */
export function find({ root }: Outline, ...path: readonly string[]): OutlineMember | undefined {
  let found: OutlineMember | undefined;
  let node: YamlNode = root;
  for (const name of path) {
    const entry: OutlineEntry | undefined = node.kind === "map" ? node.entries.get(name) : undefined;
    if (entry === undefined) return undefined;
    found = { key: entry.key.span, node: entry.value };
    node = entry.value;
  }
  return found;
}

/** The names under a part: `tools`, `limits`, `counters`. */
export function namesUnder(outline: Outline, ...path: readonly string[]): readonly string[] {
  const node = find(outline, ...path)?.node;
  return node?.kind === "map" ? [...node.entries.keys()] : [];
}

/** The member of a schema that a chain of names leads to, through references. */
export function schemaMember(
  schema: YamlNode,
  chain: readonly string[],
  root: YamlNode = schema,
): OutlineMember | undefined {
  const [name, ...rest] = chain;
  const own = followReference(schema, root);
  const entry = name === undefined ? undefined : propertiesOf(own).get(name);
  if (entry === undefined) return undefined;
  if (rest.length === 0) return { key: entry.key.span, node: followReference(entry.value, root) };
  return schemaMember(entry.value, rest, root);
}

/** The members that a schema declares. */
export function propertiesOf(schema: YamlNode): YamlMap["entries"] {
  const properties = schema.kind === "map" ? schema.entries.get("properties")?.value : undefined;
  return properties?.kind === "map" ? properties.entries : new Map();
}

export function followReference(schema: YamlNode, root: YamlNode, depth = 0): YamlNode {
  const target = schema.kind === "map" ? schema.entries.get("$ref")?.value : undefined;
  const name = target?.kind === "scalar" ? target.text.replace("#/$defs/", "") : undefined;
  const definitions = root.kind === "map" ? root.entries.get("$defs")?.value : undefined;
  const found = definitions?.kind === "map" && name !== undefined ? definitions.entries.get(name)?.value : undefined;
  return found === undefined || depth > 20 ? schema : followReference(found, root, depth + 1);
}

/** A node's text as written in the file, on one line and truncated. */
export function formatNode(node: YamlNode): string {
  const text = node.span.file.text.slice(node.span.from, node.span.to).replaceAll(/\s+/g, " ").trim();
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

/** The types that a schema names, as expressions call them. */
export function kindsOf(schema: YamlNode): readonly string[] {
  const type = schema.kind === "map" ? schema.entries.get("type")?.value : undefined;
  const items = type === undefined ? [] : type.kind === "list" ? type.items : [type];
  const names: Readonly<Record<string, string>> = { integer: "number", array: "list", object: "record" };
  return items.flatMap((item) => (item.kind === "scalar" ? [names[item.text] ?? item.text] : []));
}

import { schemaText, type FileKind } from "../../../../gate/src/cli/mod.ts";

/** The part of JSON Schema that the schemas of our files use. */
export interface FileSchema {
  readonly $ref?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, FileSchema>>;
  readonly additionalProperties?: boolean | FileSchema;
  readonly items?: FileSchema;
  readonly anyOf?: readonly FileSchema[];
  readonly then?: FileSchema;
  readonly else?: FileSchema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly type?: unknown;
  readonly $defs?: Readonly<Record<string, FileSchema>>;
}

/** The keys and values that are allowed at one path. */
export interface AllowedContent {
  /** Keys, with their descriptions. */
  readonly keys: ReadonlyMap<string, string>;
  readonly values: readonly string[];
  readonly isExpression: boolean;
  readonly isReason: boolean;
  readonly isTools: boolean;
  readonly isMember: boolean;
}

const loaded = new Map<FileKind, Promise<FileSchema>>();

export function shapeOf(kind: FileKind): Promise<FileSchema> {
  return loaded.getOrInsertComputed(kind, async () => JSON.parse(await schemaText(kind)) as FileSchema);
}

/** The keys and values that a file's schema allows at a path of keys, `*` for an item of a list. */
export function allowedAt(root: FileSchema, path: readonly string[]): AllowedContent {
  const names = new Set<string>();
  const found = path.reduce<readonly FileSchema[]>(
    (shapes, step) => {
      if (step !== "*") names.clear();
      return shapes
        .flatMap((shape) => (step === "*" ? items(shape) : member(shape, step)))
        .flatMap((shape) => branches(shape, root, names));
    },
    branches(root, root, names),
  );
  const keys = found.flatMap(({ properties = {} }) => Object.entries(properties));
  return {
    keys: new Map(keys.map(([name, shape]) => [name, descriptionOf(shape, root)])),
    values: found
      .flatMap((shape) => [
        ...(shape.enum ?? []),
        ...("const" in shape ? [shape.const] : []),
        ...(shape.type === "boolean" ? [true, false] : []),
      ])
      .map(String),
    isExpression: names.has("expression"),
    isReason: names.has("reason"),
    isTools: names.has("tools"),
    isMember: names.has("member"),
  };
}

function items({ items: inner }: FileSchema): readonly FileSchema[] {
  return inner === undefined ? [] : [inner];
}

function member({ properties, additionalProperties }: FileSchema, name: string): readonly FileSchema[] {
  const known = properties?.[name];
  if (known !== undefined) return [known];
  return typeof additionalProperties === "object" ? [additionalProperties] : [];
}

/** A shape and all shapes that it refers to or chooses from; collects the names of definitions on the way. */
function branches(shape: FileSchema, root: FileSchema, names: Set<string>): readonly FileSchema[] {
  const name = shape.$ref?.replace("#/$defs/", "");
  if (name !== undefined) names.add(name);
  const referred = name === undefined ? undefined : root.$defs?.[name];
  const inner = [referred, ...(shape.anyOf ?? []), shape.then, shape.else].filter((part) => part !== undefined);
  return [shape, ...inner.flatMap((part) => branches(part, root, names))];
}

function descriptionOf(shape: FileSchema, root: FileSchema): string {
  return shape.description ?? root.$defs?.[shape.$ref?.replace("#/$defs/", "") ?? ""]?.description ?? "";
}

import type { Span } from "../../../../readers/src/contract.ts";
import type { ContractDocument } from "../../../../readers/src/ir.ts";

/** A fact with a fixed path that a contract's schema declares. */
export interface DeclaredFact {
  /** Such as `platform.wallet`. */
  readonly path: string;
  readonly span: Span;
  readonly kind: "text" | "number" | "other";
  /** The schema lists the values, or says their format. */
  readonly isLimited: boolean;
}

type Node = NonNullable<ContractDocument["platform"]>;

/** The facts under `properties`, at any depth. A schema behind `$ref` or inside a list is not read. */
export function declaredFacts({ platform }: ContractDocument): readonly DeclaredFact[] {
  return platform === undefined ? [] : factsIn(platform, "platform");
}

function factsIn(schema: Node, path: string): readonly DeclaredFact[] {
  return propertiesOf(schema).flatMap(([name, { key, value }]) => {
    const own = `${path}.${name}`;
    const isLimited = value.kind === "map" && ["enum", "const", "format"].some((word) => value.entries.has(word));
    return [{ path: own, span: key.span, kind: classifyFactSchema(value), isLimited }, ...factsIn(value, own)];
  });
}

/** The members that a schema declares. */
export function propertiesOf(schema: Node | undefined): readonly (readonly [name: string, entry: PropertyEntry])[] {
  const properties = schema?.kind === "map" ? schema.entries.get("properties")?.value : undefined;
  return properties?.kind === "map" ? [...properties.entries] : [];
}

type PropertyEntry = NonNullable<ReturnType<(Node & { readonly kind: "map" })["entries"]["get"]>>;

function classifyFactSchema(schema: Node): DeclaredFact["kind"] {
  const type = schema.kind === "map" ? schema.entries.get("type")?.value : undefined;
  const names = (type?.kind === "list" ? type.items : [type]).flatMap((each) =>
    each?.kind === "scalar" && each.text !== "null" ? [each.text] : [],
  );
  if (names.length !== 1) return "other";
  if (names[0] === "string") return "text";
  return names[0] === "number" || names[0] === "integer" ? "number" : "other";
}

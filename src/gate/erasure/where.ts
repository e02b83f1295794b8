import { parseLeaf, partText, type StoredRow } from "../../ledger/mod.ts";
import { Decimal, readJson, type Json } from "../../wire/mod.ts";

/** A member of a call that must have a value, so that a receipt is one that is looked for. */
export interface Where {
  readonly part: "input" | "platform";
  /** Names below the part, one at least. */
  readonly path: readonly string[];
  /** Exactly as it was sent: of a text its characters, of a number its digits. */
  readonly value: string;
}

/** `input.customer.email`; undefined for what is not a path below `input` or `platform`. */
export function readPath(member: string): Pick<Where, "part" | "path"> | undefined {
  const [part, ...path] = member.split(".");
  if ((part !== "input" && part !== "platform") || path.length === 0 || path.includes("")) return undefined;
  return { part, path };
}

/** Is it a check that has all these values? What was erased has none. */
export function hasValues({ leaf, evidence }: StoredRow, wheres: readonly Where[]): boolean {
  if (parseLeaf(leaf)?.kind !== "check") return false;
  const read = new Map<Where["part"], Json | undefined>();
  return wheres.every(({ part, path, value }) => {
    if (!read.has(part)) read.set(part, valueOf(partText(evidence, part)));
    return has(read.get(part), path, value);
  });
}

function valueOf(text: string | undefined): Json | undefined {
  const document = readJson(text ?? "");
  return document.ok ? document.value.members : undefined;
}

/** Of a list any element will do: a person is among those to whom a mail was sent. */
function has(found: Json | undefined, path: readonly string[], value: string): boolean {
  if (Array.isArray(found)) return (found as readonly Json[]).some((element) => has(element, path, value));
  const [name, ...below] = path;
  if (name !== undefined)
    return found instanceof Map && has((found as ReadonlyMap<string, Json>).get(name), below, value);
  if (found instanceof Decimal) return found.text === value;
  return typeof found === "string" ? found === value : typeof found === "number" && String(found) === value;
}

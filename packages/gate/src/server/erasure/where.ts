import { parseLeaf, partText, type StoredRow } from "../../../../core/src/record/entry/mod.ts";
import { Decimal, readJson, type Json } from "../../../../core/src/wire/mod.ts";

/** A member of a call, and the value that it must have for the receipt to match. */
export interface Where {
  readonly part: "input" | "platform";
  /** Names below the part, at least one. */
  readonly path: readonly string[];
  /** The value exactly as it was sent: the characters of a string, the digits of a number. */
  readonly value: string;
}

/** Reads a path such as `input.customer.email`; undefined if it does not start with `input` or `platform`. */
export function readPath(member: string): Pick<Where, "part" | "path"> | undefined {
  const [part, ...path] = member.split(".");
  if ((part !== "input" && part !== "platform") || path.length === 0 || path.includes("")) return undefined;
  return { part, path };
}

/** Returns true for a check that has all these values. An erased part has no value. */
export function hasValues({ leaf, evidence }: StoredRow, wheres: readonly Where[]): boolean {
  if (parseLeaf(leaf)?.kind !== "check") return false;
  const read = new Map<Where["part"], Json | undefined>();
  return wheres.every(({ part, path, value }) => {
    if (!read.has(part)) read.set(part, parseMembers(partText(evidence, part)));
    return has(read.get(part), path, value);
  });
}

function parseMembers(text: string | undefined): Json | undefined {
  const document = readJson(text ?? "");
  return document.ok ? document.value.members : undefined;
}

/** Any element of a list may match, because a mail can have several recipients. */
function has(found: Json | undefined, path: readonly string[], value: string): boolean {
  if (Array.isArray(found)) return (found as readonly Json[]).some((element) => has(element, path, value));
  const [name, ...below] = path;
  if (name !== undefined)
    return found instanceof Map && has((found as ReadonlyMap<string, Json>).get(name), below, value);
  if (found instanceof Decimal) return found.text === value;
  return typeof found === "string" ? found === value : typeof found === "number" && String(found) === value;
}

/**
 * The values of canonical text: strings, booleans, null and safe integers, so that every language writes the same text.
 */
export type Canonical =
  | null
  | boolean
  | string
  | number
  | readonly Canonical[]
  | { readonly [name: string]: Canonical };

/**
 * RFC 8785 (JSON Canonicalization Scheme) over the values above: members sorted by UTF-16 code units, no white space.
 *
 * @throws {RangeError} for a number that is not a safe integer: a programmer's error.
 */
export function canonical(value: Canonical): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value)) throw new RangeError(`canonical text only allows safe integers, not ${value}`);
    return String(value);
  }
  if (isList(value)) return `[${value.map(canonical).join(",")}]`;
  const names = Object.keys(value).toSorted();
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name] ?? null)}`).join(",")}}`;
}

function isList(value: Canonical): value is readonly Canonical[] {
  return Array.isArray(value);
}

import type { KnownKey } from "../analysis/mod.ts";
import { BadInput, readText } from "../../../gate/src/cli/mod.ts";
import { toolMatcher } from "../../../svc-gate/src/contract-files.ts";

/**
 * The valid keys in the output of `svc-gate keys list --json`. If it has keys of several tenants, those of the root.
 *
 * @throws BadInput if the file cannot be read, or is not such an output
 */
export async function readKeys(file: string): Promise<readonly KnownKey[]> {
  const keys = keysIn(await readText(file));
  if (keys === undefined)
    throw new BadInput(`${file} is not a list of keys: write it with \`svc-gate keys list --json > ${file}\``);
  const tenants = new Set(keys.map(({ tenant }) => tenant));
  if (tenants.size > 1 && !tenants.has(null))
    throw new BadInput(`${file} has keys of several tenants: list one with \`svc-gate keys list --tenant ID --json\``);
  const tenant = tenants.size === 1 ? [...tenants][0] : null;
  return keys
    .filter((key) => key.tenant === tenant && ["active", "rotating", "expiring"].includes(key.state))
    .map(({ name, person, groups, scopes, tools }) => {
      return { name, person, groups, scopes, allowsTool: toolMatcher(tools) };
    });
}

interface ListedKey extends Omit<KnownKey, "allowsTool"> {
  readonly tools: readonly string[] | null;
  readonly tenant: string | null;
  readonly state: string;
}

function keysIn(text: string): readonly ListedKey[] | undefined {
  let list: unknown;
  try {
    list = (JSON.parse(text) as { readonly keys?: unknown } | null)?.keys;
  } catch {
    return undefined;
  }
  return Array.isArray(list) && list.every(isKey) ? list : undefined;
}

function isKey(value: unknown): value is ListedKey {
  if (typeof value !== "object" || value === null) return false;
  const { name, person, tenant, state, groups, scopes, tools } = value as Partial<Record<string, unknown>>;
  const isTexts = (list: unknown): boolean => Array.isArray(list) && list.every((item) => typeof item === "string");
  const isNullable = (part: unknown): boolean => part === null || typeof part === "string";
  return (
    typeof name === "string" &&
    typeof state === "string" &&
    [person, tenant].every(isNullable) &&
    [groups, scopes].every(isTexts) &&
    (tools === null || isTexts(tools))
  );
}

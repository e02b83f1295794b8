import { canonical, type Canonical } from "../wire/mod.ts";
import { keyValue } from "./counter-keys.ts";
import type { Counter } from "./counter.ts";
import { keyText, valueText } from "./memory.ts";
import type { Value } from "./value.ts";

/** The names of the values that make up a counter's key, as its contract writes them: `session` needs whose it is, too. */
export function keyMembers({ identity }: Counter): readonly string[] {
  const members = partsOf(identity).flatMap((part) => (part === "session" ? ["session", "key"] : [part]));
  return [...new Set(members)].filter((part) => part !== "gate");
}

/**
 * The text of a counter's key, made of values that somebody states in place of a call.
 *
 * @param given a value for each of `keyMembers`; `session` and `key` are texts
 * @param remembered of a counter that remembers: the value
 * @throws {EvaluationError} where a value is too long for a key
 */
export function enteredKey(
  { identity }: Counter,
  given: ReadonlyMap<string, Value>,
  remembered: Value | undefined,
): string {
  const text = (name: string): string => {
    const value = given.get(name);
    return typeof value === "string" ? value : "";
  };
  const parts = partsOf(identity).map((part): Canonical => {
    if (part === "gate") return ["gate"];
    if (part === "key") return ["key", text("key")];
    return part === "session" ? ["session", text("key"), text("session")] : keyValue(given.get(part) ?? null);
  });
  return remembered === undefined ? canonical(parts) : keyText(parts, valueText(remembered));
}

/** A definition names its `per:` in the order in which a key has its parts, each member's name in quotes. */
function partsOf(identity: string): readonly string[] {
  const { per } = JSON.parse(identity) as { readonly per: readonly string[] };
  return per.map((part) => part.replaceAll(/\."([A-Za-z_][A-Za-z0-9_]*)"/g, ".$1"));
}

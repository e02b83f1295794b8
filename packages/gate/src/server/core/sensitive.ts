import type { PolicySet } from "../../../../core/src/contract/mod.ts";
import type { CheckEntry } from "../../ledger/mod.ts";
import { findMembers, isMemberName, type CheckRequest } from "../../../../core/src/wire/mod.ts";

type SensitiveSpans = NonNullable<CheckEntry["sensitive"]>;

/**
 * Returns the members of a call that its contracts list as sensitive.
 *
 * @param routed true if a contract routes the tool
 */
export function sensitiveOf(
  { sensitive: { ofTool, unrouted } }: Pick<PolicySet, "sensitive">,
  { toolName, inputText, platformText }: Pick<CheckRequest, "inputText" | "platformText" | "toolName">,
  routed: boolean,
): SensitiveSpans {
  const names = ofTool.get(toolName) ?? (routed ? none : unrouted);
  if (names.length === 0) return none;
  return [...within("input", inputText, names), ...within("platform", platformText ?? "null", names)];
}

const none: readonly never[] = [];

function within(parent: "input" | "platform", text: string, names: readonly string[]): SensitiveSpans {
  const listed = names.filter((name) => name.startsWith(`${parent}.`)).filter(isMemberName);
  const spans = findMembers(
    text,
    listed.map((name) => name.split(".").slice(1)),
  );
  return listed.flatMap((name, index) => {
    const span = spans[index];
    return span === undefined ? [] : [{ name, ...span }];
  });
}

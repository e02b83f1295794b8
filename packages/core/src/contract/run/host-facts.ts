import { pathNames, type CheckRequest } from "../../wire/mod.ts";
import { readMembers } from "../compile/reads.ts";
import type { Core } from "../core/core.ts";
import type { Route, ToolPlan } from "../compile/compile-tool.ts";
import type { Caller } from "../compile/keys.ts";
import type { Mismatch } from "../schema/schema.ts";
import type { Decision } from "../core/decision.ts";
import type { Prepared } from "./plan-lookups.ts";

/** The sent facts that count under none of the contracts of a tool. */
export function uncountedFacts(
  { platformState }: Pick<CheckRequest, "platformState">,
  { keyKind }: Caller,
  { routes }: Pick<ToolPlan, "routes">,
): readonly string[] {
  if (keyKind === undefined || platformState === null) return noNames;
  return [...platformState.keys()].filter((name) => !routes.some(({ hostFacts }) => hostFacts.has(name)));
}

const noNames: readonly string[] = [];

/**
 * Says in the reason of a decision which of the sent facts did not count, if the deciding rule reads them. Otherwise a
 * person who sent them could not understand why they are absent.
 */
export function withUncounted(decision: Decision, { caller, plan, request }: Prepared): Decision {
  const { reason, rule, verdict } = decision;
  if (caller.keyKind === undefined || verdict === "ALLOW" || request.platformState === null) return decision;
  const route = plan?.routes.find(({ contract }) => rule.startsWith(`${contract}.`));
  if (route === undefined) return decision;
  const read = readMembers(coresOf(rule, route)).flatMap(({ path }) => factIn(path) ?? []);
  const names = new Set(read.filter((name) => request.platformState?.has(name) === true && !route.hostFacts.has(name)));
  return names.size === 0 ? decision : { ...decision, reason: `${reason}; ${uncountedText([...names].toSorted())}` };
}

/** Adds the same to a mismatch of the facts and their schema; an empty text if the member counts. */
export function uncountedMismatch({ path: [name] }: Mismatch, caller: Caller, { hostFacts }: Route): string {
  const counts = caller.keyKind === undefined || typeof name !== "string" || hostFacts.has(name);
  return counts ? "" : `; ${uncountedText([name])}`;
}

function uncountedText(names: readonly string[]): string {
  const listed = names.map((name) => `platform.${name}`).join(" and ");
  const are = names.length === 1 ? "it is" : "they are";
  return `facts from a host's key do not count for ${listed}: ${are} not in the contract's host_facts`;
}

/** The first member in a path such as `platform.wallet.id`; undefined for a path of the input. */
function factIn(path: string): string | undefined {
  const [root, name] = pathNames(path) ?? [];
  return root === "platform" ? name : undefined;
}

/** The conditions that gave a verdict: those of one rule or requirement, or of all rules if none of them fired. */
function coresOf(id: string, { contract, otherwiseShows, presence, requires, rules }: Route): readonly Core[] {
  if (id === `${contract}.$otherwise`) return [...rules.map(({ when }) => when), ...otherwiseShows];
  const found = [...presence, ...requires, ...rules].find((each) => each.id === id);
  return found === undefined ? [] : [found.when, ...("shows" in found ? found.shows : [])];
}

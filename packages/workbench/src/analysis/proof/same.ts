import { spellValue, type Core, type KeyPart, type ToolPlan } from "../../../../readers/src/ir.ts";
import type { Verdict } from "../../../../core/src/wire/mod.ts";
import { keyWith, type KeyNames } from "../formula/key.ts";

/**
 * Do the plans have the same rules in the same words? Ignores names of rules, reasons without values and the order of
 * rules.
 */
export function samePlans(a: ToolPlan, b: ToolPlan): boolean {
  return spellPlan(a) === spellPlan(b);
}

/** Are the same conditions final BLOCKs? */
export function sameFinality(a: ToolPlan, b: ToolPlan): boolean {
  return finalRules(a).join("\n") === finalRules(b).join("\n");
}

function finalRules(plan: ToolPlan): readonly string[] {
  const rules = plan.routes.flatMap((route) => route.rules);
  return rules
    .filter(({ final, observed }) => final && !observed)
    .map(({ when }) => keyWith(when, makePlanKeyNames(plan)))
    .toSorted();
}

/** The names under which expressions of two plans have the same spelling. */
export function makePlanKeyNames(plan: Pick<ToolPlan, "readers">): KeyNames {
  return {
    variable: (slot) => `$${slot}`,
    counter: (name) => plan.readers.get(name)?.counter.identity ?? name,
  };
}

function spellPlan(plan: ToolPlan): string {
  const names = makePlanKeyNames(plan);
  const spell = (core: Core): string => keyWith(core, names);
  const spellAll = (cores: readonly Core[]): readonly string[] =>
    cores.map(spell).filter((text) => !text.startsWith('"'));
  const key = (per: readonly KeyPart[]): readonly string[] =>
    per.map((part) => (typeof part === "string" ? part : spell(part)));
  const routes = plan.routes.map((route) => {
    const rules = route.rules
      .filter(({ observed }) => !observed)
      .map(({ when, verdict, shows }) => [verdict, spell(when), spellFailing(verdict, spellAll(shows))]);
    return {
      schemas: [route.schemas.input, route.schemas.platform].map((schema) =>
        schema === undefined ? null : spellValue(schema),
      ),
      requires: [...route.presence, ...route.requires].map(({ when }) => spell(when)).toSorted(),
      rules: rules.map((rule) => JSON.stringify(rule)).toSorted(),
      otherwise: [route.otherwise, spellFailing(route.otherwise, spellAll(route.otherwiseShows))],
    };
  });
  const writers = plan.writers.map(({ reads: { when, per, values } }) =>
    JSON.stringify([when === undefined ? null : spell(when), key(per), spellAll(values)]),
  );
  return JSON.stringify([routes.map((route) => JSON.stringify(route)).toSorted(), writers.toSorted()]);
}

/** A reason that fails makes the verdict BLOCK: this matters unless the rule's verdict is BLOCK already. */
function spellFailing(verdict: Verdict, shows: readonly string[]): readonly string[] {
  return verdict === "BLOCK" ? [] : shows.toSorted();
}

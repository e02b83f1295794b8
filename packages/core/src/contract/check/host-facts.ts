import { didYouMean } from "../../wire/mod.ts";
import type { Report } from "../text/diagnostic.ts";
import type { ContractDocument } from "../text/document.ts";
import { parts, type Syntax } from "../text/syntax.ts";
import type { HostFacts } from "../core/core.ts";
import type { Scope } from "./scope.ts";
import type { RecordType } from "../value/type.ts";

/** Reads the facts that a contract lists under `host_facts`. Each must be a declared fact. Problems go to the report. */
export function readHostFacts(
  { hostFacts }: Pick<ContractDocument, "hostFacts">,
  platform: RecordType | undefined,
  report: Report,
): HostFacts {
  const declared = [...(platform?.fields.keys() ?? [])];
  const found = new Set<string>();
  for (const { text, span } of hostFacts) {
    const bare = text.replace(/^platform\./, "");
    const hint = didYouMean(bare, declared.includes(bare) ? [bare] : declared, "declare it under `platform:`");
    if (found.has(text)) report.add("host-facts", span, `\`${text}\` is listed twice`, "remove one");
    else if (!declared.includes(text))
      report.add("host-facts", span, `\`${text}\` is not a fact of this contract`, hint);
    found.add(text);
  }
  return found;
}

/**
 * The listed facts that expressions read, sorted. They are a part of what a counter means: they decide what it counts
 * in calls by a host's key.
 */
export function hostFactsIn(
  expressions: readonly Syntax[],
  { hostFacts, lets }: { readonly hostFacts: HostFacts; readonly lets: Scope["lets"] },
): readonly string[] {
  if (hostFacts.size === 0) return [];
  const found = new Set<string>();
  const seen = new Set<Syntax>();
  const visit = (syntax: Syntax): void => {
    if (seen.has(syntax)) return;
    seen.add(syntax);
    if (syntax.kind === "member" && syntax.of.kind === "name" && syntax.of.name === "platform") {
      if (hostFacts.has(syntax.name)) found.add(syntax.name);
      return;
    }
    if (syntax.kind === "name") {
      // An expression that uses all facts together may read each of them.
      if (syntax.name === "platform") for (const name of hostFacts) found.add(name);
      const definition = lets.get(syntax.name);
      if (definition !== undefined) visit(definition);
    }
    for (const part of parts(syntax)) visit(part);
  };
  for (const expression of expressions) visit(expression);
  return [...found].toSorted();
}

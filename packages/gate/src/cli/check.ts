import type { Diagnostic } from "../../../core/src/contract/mod.ts";
import { loadContracts, renderDiagnostics } from "../server/policy/mod.ts";
import { counted } from "./counted.ts";
import type { Outcome } from "./outcome.ts";
import { locationRow } from "./source-location.ts";

/** `svc-gate check`: compiles, and prints every error or a summary of the contracts. */
export async function checkCommand(file: string, { json }: { readonly json: boolean }): Promise<Outcome> {
  const compiled = await loadContracts(file);
  if (!compiled.ok) return badInput(compiled.problem, json);
  const { mandate, contracts, tools, counters, tables } = compiled.value;
  const costs = [...tools.values()].map(({ tool, routes, worstCost }) => ({
    tool,
    contracts: routes.map(({ contract }) => contract),
    rules: routes.reduce((sum, { rules }) => sum + rules.length, 0),
    worstCost,
  }));
  const names = counters.map(({ name }) => name);
  const forms = [...tables.values()].reduce((sum, table) => sum + table.forms.length, 0);
  if (json)
    return {
      exitCode: 0,
      text: JSON.stringify({ ok: true, mandate, contracts, tools: costs, counters: names, forms }),
    };
  const width = Math.max(4, ...costs.map(({ tool }) => tool.length));
  const rows = costs.map(
    ({ tool, rules, worstCost, contracts: by }) =>
      `  ${tool.padEnd(width)}  ${String(rules).padStart(5)}  ${String(worstCost).padStart(12)}  ${by.join(", ")}`,
  );
  const head = `  ${"tool".padEnd(width)}  rules  steps, worst  contract`;
  const listed = forms > 0 ? `, ${counted(forms, "form")}` : "";
  // A pack has no tools.
  if (costs.length === 0 && forms > 0) return { exitCode: 0, text: `${file}: no errors${listed}` };
  const title = `${file}: no errors; ${counted(contracts.length, "contract")}${listed}`;
  return { exitCode: 0, text: [title, "", head, ...rows].join("\n") };
}

/** The errors of files that do not compile, for a person or for editors and CI. */
export function badInput(problems: readonly Diagnostic[], json: boolean): Outcome {
  const errors = problems.map(({ code, message, span, hint }) => ({
    severity: "error",
    code,
    message,
    hint: hint ?? null,
    ...locationRow(span),
  }));
  return {
    exitCode: 2,
    text: json ? JSON.stringify({ ok: false, errors }) : renderDiagnostics(problems),
    forPrograms: json,
  };
}

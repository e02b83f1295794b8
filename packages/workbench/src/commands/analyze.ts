import { analyze, looseningRules, severityOf, type ContractFinding, type LooseningRule } from "../analysis/mod.ts";
import { position, renderPlace, type PolicySet } from "../../../readers/src/contract.ts";
import { loadContracts, badInput, besideMandate } from "../../../svc-gate/src/contract-files.ts";
import { counted, type Outcome } from "../../../gate/src/cli/mod.ts";
import { readKeys } from "./keys-file.ts";

export interface AnalyzeOptions {
  readonly json: boolean;
  /** Notes fail, like warnings. */
  readonly deny: boolean;
  /** A file with the keys of the gate, from `svc-gate keys list --json`. */
  readonly keys?: string;
}

/** `svc-gate analyze`: reports defects of contracts that compile. */
export async function analyzeCommand(file: string, { json, deny, keys }: AnalyzeOptions): Promise<Outcome> {
  const compiled = await loadContracts(file);
  if (!compiled.ok) return badInput(compiled.problem, json);
  const found = analyze(compiled.value, keys === undefined ? undefined : await readKeys(keys));
  const isMandate = compiled.value.mandate !== "";
  const findings = isMandate ? found.map((finding) => besideMandate(finding, file)) : found;
  const failing = findings.filter(({ code }) => deny || severityOf(code) === "warning");
  const exitCode = failing.length > 0 ? 1 : 0;
  const loosening = looseningRules(compiled.value);
  if (json) {
    const shown = loosening.map(({ tool, rule: { id, verdict }, otherwise }) => ({
      tool,
      rule: id,
      verdict,
      otherwise,
    }));
    const weakened = [...compiled.value.tables].flatMap(([contract, table]) =>
      table.weakened.map((form) => ({ contract, ...form })),
    );
    const report = { ok: exitCode === 0, findings: findings.map(asJson), loosening: shown, weakened };
    return { exitCode, text: JSON.stringify(report), forPrograms: true };
  }
  const { contracts, tools } = compiled.value;
  const looked = `${counted(contracts.length, "contract")}, ${counted(tools.size, "tool")}`;
  const notes = findings.filter(({ code }) => severityOf(code) === "note").length;
  const summary =
    findings.length === 0
      ? `${file}: nothing found in ${looked}`
      : `${counted(findings.length - notes, "warning")} and ${counted(notes, "note")} in ${looked}`;
  return {
    exitCode,
    text: [
      ...findings.map(renderFinding),
      ...renderLoosening(loosening),
      ...renderWeakened(compiled.value),
      summary,
    ].join("\n\n"),
    forPrograms: true,
  };
}

function renderLoosening(loosening: readonly LooseningRule[]): readonly string[] {
  if (loosening.length === 0) return [];
  const rows = loosening.map(
    ({ tool, rule, otherwise }) => `  ${tool}: ${rule.id} says ${rule.verdict}, \`otherwise\` ${otherwise}`,
  );
  return [["rules that let calls through (any other rule can only make a verdict stricter):", ...rows].join("\n")];
}

function renderWeakened({ tables }: PolicySet): readonly string[] {
  const rows = [...tables].flatMap(([contract, { weakened }]) =>
    weakened.map(({ form, because }) => `  ${contract}: ${form}, because ${because}`),
  );
  return rows.length === 0 ? [] : [["stricter forms of commands that contracts leave out:", ...rows].join("\n")];
}

function renderFinding({ code, message, span, hint }: ContractFinding): string {
  const gutter = " ".repeat(String(position(span.file, span.from).line).length);
  return [
    `${severityOf(code)}[${code}]: ${message}`,
    ...renderPlace(span),
    `${gutter} = help: ${hint}`,
    `${gutter} = page: ${pageOf(code)}`,
  ].join("\n");
}

function asJson({ code, message, span, hint }: ContractFinding): object {
  const [from, to] = [position(span.file, span.from), position(span.file, span.to)];
  return {
    severity: severityOf(code),
    code,
    message,
    hint,
    page: pageOf(code),
    file: span.file.name,
    ...from,
    endLine: to.line,
    endColumn: to.column,
  };
}

function pageOf(code: string): string {
  return `docs/findings/${code}.md`;
}

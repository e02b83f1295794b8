import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// The policies of each engine: the six rules, and any number of rules for tools that are not called.

/** An engine's language. */
export type Language = "rego" | "cerbos" | "cedar" | "agt" | "svc-gate";

export interface Wanted {
  /** The number of rules for other tools, ten on each, besides the six. */
  readonly others: number;
  /** Whether the limit for one payment is a hundred times too high: the table of expected verdicts must notice it. */
  readonly wrong: boolean;
  /** Whether to count each session's payments; only svc-gate can keep such a count. */
  readonly counted: boolean;
}

const rulesOfOneTool = 10;
const toolsOfOneContract = 10;

/** The line of each language that sets the limit for one payment, and its wrong version. */
const limits: Readonly<Record<Language, readonly [string, string]>> = {
  rego: ['"per_payment_usd": 50,', '"per_payment_usd": 5000,'],
  cerbos: ["R.attr.input.amount > 50.0", "R.attr.input.amount > 5000.0"],
  cedar: ["context.input.amount_cents > 5000 ", "context.input.amount_cents > 500000 "],
  agt: ["payment.amount_usd > 50", "payment.amount_usd > 5000"],
  "svc-gate": ["per_payment_usd: 50\n", "per_payment_usd: 5000\n"],
};

const sources: Readonly<Record<Language, string>> = {
  rego: "payments.rego",
  cerbos: "cerbos.yaml",
  cedar: "payments.cedar",
  agt: "agt.yaml",
  "svc-gate": "svc-gate.yaml",
};

/** Writes an engine's policies into a separate folder, and returns their names. */
export function writePolicies(language: Language, folder: string, wanted: Wanted): string {
  const into = join(folder, "policies");
  mkdirSync(into, { recursive: true });
  for (const [name, text] of Object.entries(policyFiles(language, wanted))) writeFileSync(join(into, name), text);
  return into;
}

/** Returns the files of an engine's policies, by name. */
export function policyFiles(language: Language, wanted: Wanted): Readonly<Record<string, string>> {
  const text = sixRules(language, wanted);
  const tools = Array.from({ length: Math.ceil(wanted.others / rulesOfOneTool) }, (_, tool) => tool);
  return written[language](text, tools);
}

const written: Readonly<
  Record<Language, (sixRules: string, tools: readonly number[]) => Readonly<Record<string, string>>>
> = {
  rego: (text, tools) => ({ "payments.rego": text + tools.map(regoRules).join("") }),
  cedar: (text, tools) => ({ "payments.cedar": text + tools.map(cedarRules).join("") }),
  agt: (text, tools) => ({ "payments.yaml": text + tools.map(agtRules).join("") }),
  cerbos: (text, tools) => ({
    "payments.yaml": text,
    ...Object.fromEntries(tools.map((tool) => [`other_${tool}.yaml`, cerbosRules(tool)])),
  }),
  "svc-gate": gateFiles,
};

function sixRules(language: Language, { wrong, counted }: Wanted): string {
  const text = readFileSync(join(import.meta.dirname, "policies", sources[language]), "utf8");
  const [right, tooHigh] = limits[language];
  if (!text.includes(right)) throw new Error(`${sources[language]} does not hold ${right}`);
  const limited = wrong ? text.replace(right, tooHigh) : text;
  return counted ? `${limited}${counting}` : limited;
}

/** So high that it never blocks, because the benchmark measures only the counting. */
const counting = `
  - rule: not-too-often
    on: [payment.send]
    when: counters.of_session > 100000000
    verdict: BLOCK
    reason: "{counters.of_session} payments in an hour"

counters:
  of_session: { of: [payment.send], per: session, within: 1h }
`;

const rulesOf = (render: (rule: number) => string): string =>
  Array.from({ length: rulesOfOneTool }, (_, rule) => render(rule)).join("");

function regoRules(tool: number): string {
  return rulesOf(
    (rule) => `
blocks contains "too much of a${rule}" if {
  input.tool_name == "other.${tool}"
  input.tool_input.amount > ${rule + 10}
  input.tool_input.note == "a${rule}"
}
`,
  );
}

function cedarRules(tool: number): string {
  return rulesOf(
    (rule) => `
@id("other-${tool}-${rule}")
forbid (principal, action == Action::"other.${tool}", resource)
when { context.input.amount_cents > ${rule + 10}00 && context.input.note == "a${rule}" };
`,
  );
}

function agtRules(tool: number): string {
  return rulesOf((rule) => {
    const when = `action == 'other.${tool}' and tool_input.amount > ${rule + 10} and tool_input.note == 'a${rule}'`;
    return `  - { name: other-${tool}-${rule}, condition: "${when}", action: deny, priority: 30 }\n`;
  });
}

function cerbosRules(tool: number): string {
  const rules = rulesOf(
    (rule) => `
    - name: r${rule}
      actions: [run]
      roles: [agent]
      effect: EFFECT_DENY
      condition: { match: { expr: 'R.attr.input.amount > ${rule + 10}.0 && R.attr.input.note == "a${rule}"' } }
`,
  );
  return `apiVersion: api.cerbos.dev/v1
resourcePolicy:
  resource: other.${tool}
  version: default
  rules:
    - { actions: [run], roles: [agent], effect: EFFECT_ALLOW }
${rules}`;
}

function gateFiles(payments: string, tools: readonly number[]): Readonly<Record<string, string>> {
  const contracts = Array.from({ length: Math.ceil(tools.length / toolsOfOneContract) }, (_, at) =>
    gateContract(at, tools.slice(at * toolsOfOneContract, (at + 1) * toolsOfOneContract)),
  );
  const names = ["payments.yaml", ...contracts.map((_, at) => `others-${at}.yaml`)];
  return {
    "mandate.yaml": `mandate: peers\ncontracts: [${names.join(", ")}]\n`,
    "payments.yaml": payments,
    ...Object.fromEntries(contracts.map((text, at) => [`others-${at}.yaml`, text])),
  };
}

function gateContract(at: number, tools: readonly number[]): string {
  const properties = "{ amount: { type: number }, note: { type: string } }";
  const shape = `type: object, additionalProperties: false, required: [amount, note], properties: ${properties}`;
  const routes = tools.map((tool) => `  other.${tool}: { input: { ${shape} }, otherwise: ALLOW }\n`).join("");
  const rules = tools
    .map((tool) =>
      rulesOf(
        (rule) => `  - rule: r${tool}-${rule}
    on: [other.${tool}]
    when: input.amount > ${rule + 10} && input.note == "a${rule}"
    verdict: BLOCK
    reason: "{input.amount} is too much of a${rule}"
`,
      ),
    )
    .join("");
  return `contract: others-${at}\nsummary: Rules of other tools.\ntools:\n${routes}rules:\n${rules}`;
}

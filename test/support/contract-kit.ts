import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  compileContracts,
  compileMandate,
  planLookups,
  decide,
  prepare,
  renderDiagnostic,
  position,
  type PolicySet,
  type Decision,
  type Diagnostic,
  type SourceFile,
} from "../../packages/readers/src/contract.ts";
import { openReady } from "../../packages/gate/src/server/policy/contracts.ts";
import { bad, good, parseCheckRequest, type CheckRequest, type Result } from "../../packages/core/src/wire/mod.ts";

/** The parts of a contract with one tool, `t`, as YAML; an absent part is as small as possible. */
export interface Parts {
  readonly limits?: string;
  readonly platform?: string;
  readonly input?: string;
  readonly requires?: string;
  readonly let?: string;
  readonly counters?: string;
  readonly rules?: string;
  readonly otherwise?: string;
}

const input = `{ type: object, additionalProperties: false, required: ["n", s], properties: {
        n: { type: number }, m: { type: number, minimum: 0 }, s: { type: string }, t: { type: string },
        b: { type: boolean }, list: { type: array, items: { type: string } }, any: {},
        numbers: { type: array, items: { type: number }, maxItems: 100 },
        maybe: { type: [string, "null"] }, kind: { enum: [a, b] },
        box: { type: object, additionalProperties: false, required: [x], properties: { x: { type: number }, y: { type: string } } },
        open: { type: object, additionalProperties: { type: number } } } }`;
const platform = `{ type: object, required: [wallet, spent], properties: {
    wallet: { type: string }, spent: { type: number, minimum: 0 }, price: { type: number, minimum: 0 }, as_of: { type: number } } }`;

export function contractText(parts: Parts = {}, name = "c"): string {
  const section = (key: string, text: string | undefined): string => (text === undefined ? "" : `${key}: ${text}\n`);
  return [
    `contract: ${name}\n`,
    section("limits", parts.limits ?? "{ most: 10, names: [alice, bob] }"),
    section("platform", parts.platform ?? platform),
    section("let", parts.let),
    `tools:\n  t:\n    input: ${parts.input ?? input}\n`,
    parts.requires === undefined ? "" : `    requires: ${parts.requires}\n`,
    `    otherwise: ${parts.otherwise ?? "ALLOW"}\n`,
    section("counters", parts.counters),
    section("rules", parts.rules),
  ].join("");
}

/** Returns a contract whose only rule BLOCKs if the condition is true; facts are required. */
export function conditionText(condition: string, parts: Parts = {}): string {
  const rules = `[{ rule: r, on: t, when: ${JSON.stringify(condition)}, verdict: BLOCK, reason: fired }]`;
  return contractText({ requires: "platform.present", rules, ...parts });
}

const contracts = join(import.meta.dirname, "../../contracts");

/** Returns the text of a ready contract. @param name without its ending: `hosts/codex` */
export function readReady(name: string): string {
  return readFileSync(join(contracts, `${name}.yaml`), "utf8");
}

/** Opens a ready pack. */
export function openPack(name: string): Result<SourceFile, string> {
  return openReady(name) ?? bad("not a ready pack");
}

/** Compiles contracts. Their packs are the ready ones. */
export function compile(...texts: readonly string[]): PolicySet {
  const files = texts.map((text, at) => ({ name: `c${at || ""}.yaml`, text }));
  const compiled = compileContracts(files, { open: openPack });
  if (!compiled.ok) assert.fail(compiled.problem.map(renderDiagnostic).join("\n\n"));
  return compiled.value;
}

/** Returns every problem of a text as `code: message`, in order. */
export function problems(...texts: readonly string[]): string[] {
  const compiled = compileContracts(texts.map((text, at) => ({ name: `c${at || ""}.yaml`, text })));
  return compiled.ok ? [] : compiled.problem.map(({ code, message }) => `${code}: ${message}`);
}

/** Returns the codes of these problems. */
export function codes(...texts: readonly string[]): readonly string[] {
  return problems(...texts).map((problem) => problem.slice(0, problem.indexOf(":")));
}

export function diagnostics(text: string): readonly Diagnostic[] {
  const compiled = compileContracts([{ name: "c.yaml", text }]);
  return compiled.ok ? [] : compiled.problem;
}

export function locate({ span }: Diagnostic): string {
  const { line, column } = position(span.file, span.from);
  return `${line}:${column}`;
}

/** Returns the text of the file at a diagnostic. */
export function marked({ span }: Diagnostic): string {
  return span.file.text.slice(span.from, span.to);
}

/** Returns a mandate and the files next to it. */
export function mandate(
  text: string,
  files: Readonly<Record<string, string>>,
): Result<PolicySet, readonly Diagnostic[]> {
  const contents = new Map(Object.entries(files));
  return compileMandate({ name: "mandate.yaml", text }, (name) => {
    const content = contents.get(name);
    return content === undefined ? bad("there is no such file") : good({ name, text: content });
  });
}

export interface Call {
  readonly tool?: string;
  /** JSON text, or a value for JSON.stringify. */
  readonly input?: unknown;
  readonly platform?: unknown;
  readonly session?: string;
  readonly now?: number;
  readonly counters?: Readonly<Record<string, string>>;
}

export function request({ tool = "t", input: sent = { n: 1, s: "x" }, platform: state, session }: Call): CheckRequest {
  const json = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));
  const members = [`"tool_name":${JSON.stringify(tool)}`, `"tool_input":${json(sent)}`];
  if (state !== undefined) members.push(`"platform_state":${json(state)}`);
  if (session !== undefined) members.push(`"session_id":${JSON.stringify(session)}`);
  const read = parseCheckRequest(`{${members.join(",")}}`);
  if (!read.ok) assert.fail(read.problem.detail);
  return read.value;
}

export const snapshot = { wallet: "w", spent: 5 };

/** Decides one call; a counter that the call does not set is 0. */
export function judge(policySet: PolicySet, call: Call = {}): Decision {
  const caller = { keyName: "default", sessionId: call.session ?? null };
  const lookupPlan = planLookups(prepare(policySet, request(call), caller), call.now ?? 1_700_000_000_000);
  const standing = new Map(Object.entries(call.counters ?? {}));
  return decide(
    lookupPlan,
    lookupPlan.lookups.map(({ counter }) => standing.get(counter.name) ?? "0"),
  );
}

/** Returns whether the condition is true for the call, or an error's message. */
export function isTrue(condition: string, call: Call = {}, parts: Parts = {}): boolean | string {
  const decision = judge(compile(conditionText(condition, parts)), { platform: snapshot, ...call });
  assert.equal(decision.defect, undefined, `a defect on ${condition}`);
  if (decision.errors.length > 0) return decision.reason;
  if (decision.rule !== "c.r" && decision.rule !== "c.$otherwise") return decision.reason;
  return decision.verdict === "BLOCK";
}

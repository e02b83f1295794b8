import {
  compileMandate,
  planLookups,
  count,
  decide,
  prepare,
  renderDiagnostic,
  type PolicySet,
  type Caller,
  type CompileOptions,
  type Decision,
  type Lookup,
  type Prepared,
  type SourceFile,
} from "../../../packages/readers/src/contract.ts";
import {
  addDecimals,
  bad,
  good,
  parseCheckRequest,
  type CheckRequest,
  type Result,
} from "../../../packages/core/src/wire/mod.ts";
import type { Call, Mode, Scenario, Verdict } from "./language.ts";
import { fileOf, printContract, printJson, printMandate } from "./print.ts";

/** The engine's result of one call. */
export interface Done {
  readonly decision: Decision;
  readonly answered: Verdict;
  readonly updates: readonly CounterUpdate[];
}

export interface CounterUpdate {
  readonly name: string;
  readonly identity: string;
  readonly key: string;
  readonly at: number;
  readonly amount: string;
}

/** Hooks that put defects into the engine. Each receives the right value. */
export interface Defect {
  scenario?(right: Scenario): Scenario;
  body?(right: string): string;
  caller?(right: Caller): Caller;
  lookup?(right: Lookup): Lookup;
  isWithin?(move: CounterUpdate, lookup: Lookup, now: number): boolean;
  decision?(right: Decision): Decision;
  answered?(right: Verdict, decision: Decision): Verdict;
  updates?(right: readonly CounterUpdate[]): readonly CounterUpdate[];
}

export function compile(scenario: Scenario, options: CompileOptions = {}): Result<PolicySet, readonly string[]> {
  const texts = new Map(scenario.contracts.map((contract) => [fileOf(contract), printContract(contract)]));
  const open = (name: string): Result<SourceFile, string> => {
    const text = texts.get(name);
    return text === undefined ? bad("there is no such file") : good({ name, text });
  };
  const policySet = compileMandate({ name: "mandate.yaml", text: printMandate(scenario) }, open, options);
  return policySet.ok ? policySet : bad(policySet.problem.map(renderDiagnostic));
}

/** One engine and its counter updates so far. */
export class Engine {
  readonly #policySet: PolicySet;
  readonly #mode: Mode;
  readonly #defect: Defect;
  readonly #updates: CounterUpdate[] = [];

  constructor(policySet: PolicySet, mode: Mode, defect: Defect = {}) {
    this.#policySet = policySet;
    this.#mode = mode;
    this.#defect = defect;
  }

  check(call: Call): Done {
    const defect = this.#defect;
    const caller = { keyName: call.key, sessionId: call.session };
    const request = requestOf(call, defect);
    const asking = defect.caller?.(caller) ?? caller;
    const prepared = prepare(this.#policySet, request, asking);
    const right = this.#decide(prepared, call.at);
    const decision = defect.decision?.(right) ?? right;
    const honest = answer(decision, this.#mode);
    const answered = defect.answered?.(honest, decision) ?? honest;
    const counted = count(prepared, { verdict: decision.verdict, answered });
    const each = counted.map(({ counter, key, amount }) => ({
      name: counter.name,
      identity: counter.identity,
      key,
      at: call.at,
      amount,
    }));
    const updates = defect.updates?.(each) ?? each;
    this.#updates.push(...once(updates));
    return { decision, answered, updates };
  }

  #decide(prepared: Prepared, at: number): Decision {
    const lookupPlan = planLookups(prepared, at);
    return decide(
      lookupPlan,
      lookupPlan.lookups.map((lookup) => this.#sum(this.#defect.lookup?.(lookup) ?? lookup, at)),
    );
  }

  #sum(lookup: Lookup, now: number): string {
    const defect = this.#defect;
    return this.#updates
      .filter((move) => move.identity === lookup.counter.identity && move.key === lookup.key)
      .filter((move) => defect.isWithin?.(move, lookup, now) ?? move.at > lookup.after)
      .reduce((sum, { amount }) => addDecimals(sum, amount), "0");
  }
}

/** Merges two updates of one call with one identity and one key. */
function once(updates: readonly CounterUpdate[]): readonly CounterUpdate[] {
  return updates.filter(
    (move, index) => updates.findIndex(({ identity, key }) => identity === move.identity && key === move.key) === index,
  );
}

function answer({ verdict, final }: Decision, mode: Mode): Verdict {
  if (mode === "observe") return "ALLOW";
  return mode === "assist" && verdict === "BLOCK" && !final ? "ESCALATE" : verdict;
}

export function requestOf(call: Call, defect: Defect = {}): CheckRequest {
  const body = printJson({
    obj: [
      ["tool_name", call.tool],
      ["tool_input", call.input],
      ...(call.session === null ? [] : [["session_id", call.session] as const]),
      ...(call.platform === null ? [] : [["platform_state", call.platform] as const]),
    ],
  });
  const request = parseCheckRequest(defect.body?.(body) ?? body);
  if (!request.ok) throw new Error(`${request.problem.detail}\n${body}`);
  return request.value;
}

/**
 * The naive model of a gate's decisions and counters: it walks the rules, numbers are pairs of integers, and a counter
 * is a sum over all past receipts, computed for every question. It knows no text, plan, digest or index, and shares
 * nothing with the engine that it is compared with.
 */
import { evaluate, isMet, asNumber, type Surroundings } from "./evaluate.ts";
import type { Call, Contract, Counter, Mode, Per, Requirement, Rule, Scenario, Tool, Verdict } from "./language.ts";
import { add, CannotEvaluate, decimal, fromInteger, multiply, subtract, compare, type Fraction } from "./number.ts";
import { meets } from "./validate.ts";
import { fromJson, type Value } from "./value.ts";
import { reads } from "./walk.ts";
import { durationSeconds, lies } from "./window.ts";

/** The decision of a past call. */
export interface Receipt {
  readonly call: Call;
  readonly verdict: Verdict;
  readonly answered: Verdict;
  /** Whether the input and the facts meet their schemas. */
  readonly sound: boolean;
}

/** The result of the contracts, before the mode. */
interface Alone {
  readonly verdict: Verdict;
  readonly final: boolean;
  readonly rule: string;
  readonly fired: readonly string[];
  /** The rules, requirements and counters that could not be evaluated, with the reasons. */
  readonly errors: readonly (readonly [string, string])[];
  /** The verdicts and evaluation errors of rules in observe mode. */
  readonly observed: readonly (readonly [rule: string, verdict: Verdict])[];
  /** Counters with their values, and looked-up values as `counter[value]`, with 1 or 0. */
  readonly read: ReadonlyMap<string, string>;
  readonly sound: boolean;
}

export interface Reached extends Alone {
  readonly answered: Verdict;
}

export interface Event {
  readonly counter: string;
  /** Equal for events that are counted together. */
  readonly key: string;
  /** The same without the remembered value, and that value's text. */
  readonly of: string;
  readonly value: string | undefined;
  readonly amount: Fraction;
}

type Outcome = Omit<Alone, "read">;

/** Decides a call that follows those receipts. */
export function decideCall(scenario: Scenario, past: readonly Receipt[], call: Call): Reached {
  const read = new Map<string, string>();
  const outcome = reach(scenario, call, (contract) => readingOf(scenario, contract, call, { past, read }));
  return { ...outcome, read, answered: answer(outcome, scenario.mode) };
}

type Reading = Pick<Surroundings, "counter" | "recalls">;

function readingOf(
  scenario: Scenario,
  contract: Contract,
  call: Call,
  { past, read }: { readonly past: readonly Receipt[]; readonly read: Map<string, string> },
): Reading {
  const named = (name: string): Counter => {
    const counter = contract.counters.find((each) => each.name === name);
    if (counter === undefined) throw new Error(`no counter ${name}`);
    return counter;
  };
  return {
    counter(name) {
      const counter = named(name);
      const found = readCounter(scenario, contract, counter, past, call) ?? [];
      const value = found.reduce((sum, { amount }) => add(sum, amount), fromInteger(0));
      read.set(`${contract.name}.${name}`, decimal(value));
      return value;
    },
    recalls(name, value) {
      const counter = named(name);
      const found = readCounter(scenario, contract, counter, past, call);
      if (found === undefined) return false;
      const text = keyText(value);
      const isThere = found.some((event) => event.value === text);
      read.set(`${contract.name}.${name}[${text}]`, isThere ? "1" : "0");
      return isThere;
    },
  };
}

function reach(scenario: Scenario, call: Call, countersOf: (contract: Contract) => Reading): Outcome {
  const routes = scenario.contracts.flatMap((contract) =>
    contract.tools.filter((tool) => tool.name === call.tool).map((tool) => ({ contract, tool })),
  );
  if (routes.length === 0) return blocked("$route", false);
  const around = (contract: Contract): Surroundings => surroundings(scenario, contract, call, countersOf(contract));

  for (const { contract, tool } of routes) {
    const failed = firstFailing(contract, tool, true, around(contract));
    if (failed !== undefined) return { ...failed, sound: false };
  }
  for (const { contract, tool } of routes) {
    const member = unsound(contract, tool, call);
    if (member !== undefined) return blocked(`${contract.name}.${member}`, false);
  }
  for (const { contract, tool } of routes) {
    const failed = firstFailing(contract, tool, false, around(contract));
    if (failed !== undefined) return failed;
  }
  const verdicts = routes.map(({ contract, tool }) => ofContract(contract, tool, around(contract)));
  const strictest = verdicts.reduce((best, each) =>
    strictness(each.verdict) > strictness(best.verdict) ? each : best,
  );
  return withBroken(scenario, call, {
    verdict: strictest.verdict,
    rule: strictest.rule,
    final: verdicts.some((each) => each.verdict === "BLOCK" && each.final),
    fired: verdicts.flatMap((each) => each.fired),
    errors: verdicts.flatMap((each) => each.errors),
    observed: routes.flatMap(({ contract, tool }) => observedBy(contract, tool, around(contract))),
    sound: true,
  });
}

function blocked(rule: string, sound: boolean): Outcome {
  return { verdict: "BLOCK", final: true, rule, fired: [], errors: [], observed: [], sound };
}

function strictness(verdict: Verdict): number {
  return verdict === "BLOCK" ? 2 : verdict === "ESCALATE" ? 1 : 0;
}

/** Returns the first failed requirement, among those on presence or among the others. */
function firstFailing(contract: Contract, tool: Tool, onPresence: boolean, around: Surroundings): Outcome | undefined {
  const all: readonly Requirement[] = [...contract.requires, ...tool.requires];
  for (const [index, { when }] of all.entries()) {
    if (isOnPresence(contract, when) !== onPresence) continue;
    const rule = `${contract.name}.$requires.${index + 1}`;
    const result = attempt(() => isMet(when, around));
    if ("error" in result) return { ...blocked(rule, true), errors: [[rule, result.error]] };
    if (!result.value) return blocked(rule, true);
  }
  return undefined;
}

function isOnPresence(contract: Contract, when: Requirement["when"]): boolean {
  return [...reads(when, contract.lets)].every((root) =>
    ["platform.present", "session.present", "tool"].includes(root),
  );
}

/** Returns the error of the first value that does not meet its schema. */
function unsound(contract: Contract, tool: Tool, call: Call): "$input" | "$platform" | undefined {
  if (!meets(fromJson(call.input), tool.input)) return "$input";
  if (call.platform === null || contract.platform === undefined) return undefined;
  return meets(fromJson(call.platform), contract.platform) ? undefined : "$platform";
}

/** Returns the verdict of one contract: the strictest of its fired rules, or else that of `otherwise`. */
function ofContract(contract: Contract, tool: Tool, around: Surroundings): Outcome {
  const fired: { readonly rule: Rule | undefined; readonly name: string; readonly verdict: Verdict }[] = [];
  const errors: [string, string][] = [];
  for (const rule of contract.rules) {
    if (!rule.on.includes(tool.name) || rule.observed === true) continue;
    const name = `${contract.name}.${rule.name}`;
    const result = attempt(() => isMet(rule.when, { ...around, names: [...around.names, ...rule.lets] }));
    if ("error" in result) {
      errors.push([name, result.error]);
      fired.push({ rule: undefined, name, verdict: "BLOCK" });
    } else if (result.value) fired.push({ rule, name, verdict: rule.verdict });
  }
  const names = fired.filter(({ rule }) => rule !== undefined).map(({ name }) => name);
  for (const verdict of ["BLOCK", "ESCALATE", "ALLOW"] as const) {
    const winning = fired.filter((each) => each.verdict === verdict);
    if (winning[0] === undefined) continue;
    const final = verdict === "BLOCK" && winning.some(({ rule }) => rule === undefined || rule.final);
    return { verdict, final, rule: winning[0].name, fired: names, errors, observed: [], sound: true };
  }
  const otherwise = tool.otherwise ?? "BLOCK";
  return { ...blocked(`${contract.name}.$otherwise`, true), verdict: otherwise };
}

/** Returns the verdicts or errors of its rules in observe mode. */
function observedBy(contract: Contract, tool: Tool, around: Surroundings): Outcome["observed"] {
  return contract.rules.flatMap((rule): Outcome["observed"] => {
    if (rule.observed !== true || !rule.on.includes(tool.name)) return [];
    const result = attempt(() => isMet(rule.when, { ...around, names: [...around.names, ...rule.lets] }));
    if ("error" in result) return [[`${contract.name}.${rule.name}`, "BLOCK"]];
    return result.value ? [[`${contract.name}.${rule.name}`, rule.verdict]] : [];
  });
}

/** If the call should update a counter and cannot, it is a BLOCK, so that no call is released uncounted. */
function withBroken(scenario: Scenario, call: Call, outcome: Outcome): Outcome {
  const broken: [string, string][] = [];
  for (const contract of scenario.contracts) {
    for (const counter of contract.counters) {
      const event = attempt(() => eventsOfCounter(scenario, contract, counter, call, outcome.sound));
      if ("error" in event) broken.push([`${contract.name}.$counters.${counter.name}`, event.error]);
    }
  }
  if (broken[0] === undefined) return outcome;
  const errors = [...outcome.errors, ...broken];
  if (outcome.verdict === "BLOCK") return { ...outcome, final: true, errors };
  return { ...outcome, verdict: "BLOCK", final: true, rule: broken[0][0], errors };
}

function answer({ verdict, final }: Outcome, mode: Mode): Verdict {
  if (mode === "observe") return "ALLOW";
  return mode === "assist" && verdict === "BLOCK" && !final ? "ESCALATE" : verdict;
}

/** Returns the call's updates, after its decision and answer. */
export function eventsOf(scenario: Scenario, receipt: Receipt): readonly Event[] {
  return scenario.contracts.flatMap((contract) =>
    contract.counters.flatMap((counter) => countedEvents(scenario, contract, counter, receipt)),
  );
}

function countedEvents(
  scenario: Scenario,
  contract: Contract,
  counter: Counter,
  { call, verdict, answered, sound }: Receipt,
): readonly Event[] {
  const counts = {
    attempts: true,
    released: answered === "ALLOW",
    possible: answered !== "BLOCK",
    blocked: verdict === "BLOCK",
    escalated: verdict === "ESCALATE",
  };
  if (!counts[counter.counting ?? "attempts"]) return [];
  const events = attempt(() => eventsOfCounter(scenario, contract, counter, call, sound));
  return "error" in events ? [] : events.value;
}

/** Returns the amount by which the call would update the counter, whatever the decision. @throws {CannotEvaluate} */
function eventsOfCounter(
  scenario: Scenario,
  contract: Contract,
  counter: Counter,
  call: Call,
  sound: boolean,
): readonly Event[] {
  if (!counter.of.includes(call.tool)) return [];
  if (!contract.tools.some(({ name }) => name === call.tool)) return [];
  if (!sound && readsTheCall(contract, counter)) return [];
  const around = surroundings(scenario, contract, call, noCounters);
  if (counter.when !== undefined && !isMet(counter.when, around)) return [];
  const name = `${contract.name}.${counter.name}`;
  const key = keyOf(counter.per, call, around);
  if (key === undefined) return [];
  if (counter.remembers !== undefined) {
    const remembered = evaluate(counter.remembers, around);
    const values = new Set((remembered.type === "list" ? remembered.items : [remembered]).map(keyText));
    if (values.size > 256) throw new CannotEvaluate("over 256 values");
    return [...values].map((value) => ({
      counter: name,
      key: `${key} and ${value}`,
      of: key,
      value,
      amount: fromInteger(1),
    }));
  }
  const amount = counter.sum === undefined ? fromInteger(1) : asNumber(evaluate(counter.sum, around));
  return [{ counter: name, key, of: key, value: undefined, amount }];
}

const noCounters: Reading = {
  counter: () => {
    throw new Error("a counter reads no counter");
  },
  recalls: () => {
    throw new Error("a counter asks no counter");
  },
};

/** Ignores `since`: that filters a read and updates nothing. */
function readsTheCall(contract: Contract, { when, per, sum, remembers }: Counter): boolean {
  if (per.includes("call")) return true;
  const paths = per.filter((each) => typeof each !== "string");
  return [when, sum, remembers, ...paths].some((each) => {
    const roots = each === undefined ? new Set<string>() : reads(each, contract.lets);
    return roots.has("input") || roots.has("platform");
  });
}

/** Undefined if the counter is per session and the call has no session. */
function keyOf(per: readonly Per[], call: Call, around: Surroundings): string | undefined {
  const key: string[] = [];
  for (const each of per) {
    if (each === "gate") key.push("gate");
    else if (each === "call") key.push(`call ${JSON.stringify([call.tool, plainText(fromJson(call.input))])}`);
    else if (each === "key") key.push(`key ${JSON.stringify(call.key)}`);
    else if (each === "session") {
      if (call.session === null) return undefined;
      key.push(`session ${JSON.stringify([call.key, call.session])}`);
    } else key.push(keyText(evaluate(each, around)));
  }
  return key.join(" and ");
}

/** The same text for equal values, whatever the order of members and the spelling of numbers. */
function plainText(value: Value): string {
  if (value.type === "list") return `[${value.items.map(plainText).join(",")}]`;
  if (value.type === "number") return numberText(value.value);
  if (value.type !== "map") return JSON.stringify("value" in value ? value.value : null);
  const members = value.entries.map(([name, member]) => `${JSON.stringify(name)}:${plainText(member)}`);
  return `{${members.toSorted().join(",")}}`;
}

function keyText(value: Value): string {
  if (value.type !== "number" && value.type !== "boolean" && value.type !== "text")
    throw new Error(`a key that is a ${value.type}`);
  const text = value.type === "number" ? numberText(value.value) : String(value.value);
  if (new TextEncoder().encode(text).length > 16_384) throw new CannotEvaluate("a key of over 16,384 bytes");
  return `${value.type} ${JSON.stringify(text)}`;
}

/** Returns a number as a decimal, if it has one. */
function numberText(value: Fraction): string {
  let rest = value.d;
  for (const prime of [2n, 5n]) while (rest % prime === 0n) rest /= prime;
  return rest === 1n ? decimal(value) : `${value.n}/${value.d}`;
}

/**
 * Returns the counter's value for this call: all past events of its key in its window. Undefined without its session.
 */
function readCounter(
  scenario: Scenario,
  contract: Contract,
  counter: Counter,
  past: readonly Receipt[],
  call: Call,
): readonly Event[] | undefined {
  const around = surroundings(scenario, contract, call, noCounters);
  const key = keyOf(counter.per, call, around);
  if (key === undefined) return undefined;
  const since = counter.since === undefined ? undefined : milliseconds(asNumber(evaluate(counter.since, around)));
  if (since !== undefined && compare(since, fromInteger(call.at)) > 0)
    throw new CannotEvaluate("since is in the future");
  return past.flatMap((receipt) => {
    const { at } = receipt.call;
    if (!lies(at, counter.within, call.at)) return [];
    if (since !== undefined && hasSettled(at, since, counter.settlesWithin ?? "0s")) return [];
    return countedEvents(scenario, contract, counter, receipt).filter(({ of }) => of === key);
  });
}

function milliseconds(seconds: Fraction): Fraction {
  return multiply(seconds, fromInteger(1000));
}

function hasSettled(at: number, since: Fraction, settlesWithin: string): boolean {
  return compare(subtract(since, milliseconds(durationSeconds(settlesWithin))), fromInteger(at)) >= 0;
}

function surroundings(scenario: Scenario, contract: Contract, call: Call, reading: Reading): Surroundings {
  return {
    input: fromJson(call.input),
    platform: call.platform === null ? undefined : fromJson(call.platform),
    session: call.session !== null,
    tool: call.tool,
    now: call.at,
    names: contract.lets,
    ...reading,
    limit(name) {
      const set = scenario.settings.find((each) => each.contract === contract.name && each.limit === name);
      const declared = contract.limits.find((each) => each.name === name);
      if (declared === undefined) throw new Error(`no limit ${name}`);
      return fromJson(set === undefined ? declared.value : set.value);
    },
  };
}

function attempt<Found>(work: () => Found): { readonly value: Found } | { readonly error: string } {
  try {
    return { value: work() };
  } catch (error) {
    if (error instanceof CannotEvaluate) return { error: error.message };
    throw error;
  }
}

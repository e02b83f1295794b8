import { type Canonical, type Json, type JsonObject, type KeyKind, type Verdict } from "../../wire/mod.ts";
import { checkGrantForm, checkSelf } from "./grant-forms.ts";
import { readCounters } from "./reads.ts";
import { pinnedCounters, type ApprovalTerms } from "../core/terms.ts";
import { checkCondition } from "../check/check.ts";
import { walk, worstCost, type Core, type HostFacts } from "../core/core.ts";
import { reservedName } from "../core/counter.ts";
import { collectNamedValues, type CounterWriter, type CounterReader } from "./counters.ts";
import type { OutcomeDocument, RequireDocument, RuleDocument } from "../text/document.ts";
import type { Span } from "../text/diagnostic.ts";
import type { Facts } from "../check/facts.ts";
import { planCondition, type EvaluationContext } from "../plan/plan.ts";
import { checkReason, planReason, type Reason } from "../check/reason.ts";
import { planMisses, type AllowingRule } from "./misses.ts";
import type { ReasonSyntax } from "../text/reason.ts";
import type { Mismatch, Validator } from "../schema/schema.ts";
import type { Scope } from "../check/scope.ts";
import { membershipQueries, type MembershipQuery } from "./memory.ts";
import { spell } from "../text/spell.ts";
import { parts, type Syntax } from "../text/syntax.ts";

/** Everything that is in force for one tool. */
export interface ToolPlan {
  readonly tool: string;
  /** One for each contract that lists the tool, in the mandate's order. */
  readonly routes: readonly Route[];
  /** The observing rules of all routes, kept separately: few calls match one. */
  readonly observing: readonly Rule[];
  readonly writers: readonly CounterWriter[];
  /** The counters that the tool's rules read, by full name. */
  readonly readers: ReadonlyMap<string, CounterReader>;
  /** The maximum number of steps of one decision. */
  readonly worstCost: number;
  /** True if a rule or an `otherwise` of the tool can ESCALATE. */
  readonly canEscalate: boolean;
  /** The members of the input that an approval is not bound to. */
  readonly unbound: readonly string[];
  /** The facts that an approval is bound to: they say whose money or data the call uses. */
  readonly subject: readonly string[];
}

/** The part of one contract for one tool. */
export interface Route {
  readonly contract: string;
  /** Requirements that only read presence or the tool's name: checked before the schemas. */
  readonly presence: readonly Requirement[];
  /** The schemas as written, `platform` if there is one: for programs that reason about values. */
  readonly schemas: { readonly input: Json | undefined; readonly platform: Json | undefined };
  /** Refuses the input; with `onlyDoubles` also a number that a program reading IEEE doubles would change. */
  readonly validateInput: Validator;
  readonly onlyDoubles: boolean;
  /** Refuses facts; only those that count are seen. */
  readonly validatePlatform: ((facts: JsonObject, keyKind: KeyKind | undefined) => Mismatch | undefined) | undefined;
  /** The facts that a host's key may state. */
  readonly hostFacts: HostFacts;
  readonly requires: readonly Requirement[];
  readonly rules: readonly Rule[];
  readonly otherwise: Verdict;
  readonly otherwiseReason: Reason;
  /** The expressions in that reason: if one cannot be evaluated, the verdict is BLOCK. */
  readonly otherwiseShows: readonly Core[];
  /** Says why no rule allows the call, behind that reason. */
  readonly misses: Reason | undefined;
  /** What an approval needs if no rule says more. */
  readonly terms: ApprovalTerms;
}

export interface Requirement {
  /** `contract.$requires.N`, where N starts at 1. */
  readonly id: string;
  readonly when: Core;
  readonly isTrue: (context: EvaluationContext) => boolean;
  readonly reason: Reason;
}

export interface Rule {
  /** `contract.rule`. */
  readonly id: string;
  /** The rule's name in the text. */
  readonly span: Span;
  readonly when: Core;
  readonly fires: (context: EvaluationContext) => boolean;
  readonly verdict: Verdict;
  readonly final: boolean;
  /** The rule is evaluated and recorded, but does not decide. */
  readonly observed: boolean;
  readonly reason: Reason;
  /** The expressions in its reason: if one cannot be evaluated, the verdict is BLOCK. */
  readonly shows: readonly Core[];
  /** What an approval needs because of this rule. */
  readonly terms: ApprovalTerms;
  /** The condition in one spelling, with the limits, names and counters that it uses. */
  readonly meaning: () => Readonly<Record<string, Canonical>>;
}

interface CheckedReason {
  readonly reason: Reason;
  readonly shows: readonly Core[];
}

/** The counters that are read, by full name, each with the values to look up if it remembers values. */
export type CounterReads = ReadonlyMap<string, readonly MembershipQuery[]>;

/** Compiles the part of one contract for one tool. */
export class ToolCompiler {
  readonly #contract: string;
  readonly #tool: string;
  readonly #scope: Scope;
  /** For expressions that are evaluated before the schemas are checked: the types are not proven yet. */
  readonly #early: Scope;
  /** The counter reads of its conditions and reasons. */
  readonly reads: Map<string, MembershipQuery[]> = new Map();
  cost: number = 0;
  /** The rules so far that can allow a call. */
  readonly #allowing: AllowingRule[] = [];

  constructor(contract: string, tool: string, scope: Scope) {
    this.#contract = contract;
    this.#tool = tool;
    this.#scope = scope;
    this.#early = { ...scope, input: undefined, platform: undefined, counters: undefined };
  }

  /**
   * Splits the requirements into those on presence and the rest. `early` has the facts that the first prove, `facts`
   * those that all prove.
   */
  requires(documents: readonly RequireDocument[]): {
    readonly presence: readonly Requirement[];
    readonly requires: readonly Requirement[];
    readonly early: Facts;
    readonly facts: Facts;
  } {
    const presence: Requirement[] = [];
    const requires: Requirement[] = [];
    let early: Facts = new Set();
    const later: (readonly [RequireDocument, number])[] = [];
    for (const [at, document] of documents.entries()) {
      if (!isOnPresence(document.when)) later.push([document, at]);
      else early = this.#require(document, at, early, { scope: this.#early, into: presence });
    }
    let facts = early;
    for (const [document, at] of later)
      facts = this.#require(document, at, facts, { scope: this.#scope, into: requires });
    return { presence, requires, early, facts };
  }

  #require(
    document: RequireDocument,
    at: number,
    facts: Facts,
    { scope, into }: { readonly scope: Scope; readonly into: Requirement[] },
  ): Facts {
    const { core, whenTrue, whenFalse } = checkCondition(document.when, scope, facts);
    const fallback = `\`${document.text}\` is required`;
    const { reason } = this.#reason(document.reason ?? [fallback], whenFalse, { scope, observed: false });
    this.#note([core], false);
    into.push({ id: `${this.#contract}.$requires.${at + 1}`, when: core, isTrue: this.#planIfValid(core), reason });
    return whenTrue;
  }

  rule(document: RuleDocument, facts: Facts, terms: ApprovalTerms): Rule {
    const scope: Scope =
      document.lets.size === 0
        ? this.#scope
        : { ...this.#scope, lets: new Map([...this.#scope.lets, ...document.lets]) };
    for (const name of document.lets.keys()) {
      if (this.#scope.lets.has(name))
        this.#scope.report.add("shadowed-name", document.span, `\`${name}\` is already defined by the contract`);
    }
    const { core, whenTrue } = checkCondition(document.when, scope, facts);
    const { name, span, verdict, final, observed } = document;
    this.#note([core], observed);
    if (scope.report.size === 0) {
      checkGrantForm(core, terms, document, scope);
      checkSelf(core, terms, document, scope.report);
    }
    this.pin(terms);
    const { reason, shows } = this.#reason(document.reason, whenTrue, { scope, observed });
    const id = `${this.#contract}.${name}`;
    if (verdict === "ALLOW" && !observed) this.#allowing.push({ id, when: core });
    return {
      id,
      span,
      when: core,
      fires: this.#planIfValid(core),
      verdict,
      final,
      observed,
      reason,
      shows,
      terms,
      meaning: () => meaningOf(document.when, [core, ...shows], scope),
    };
  }

  /** Notes the counters that an approval pins, so that they are read. */
  pin(terms: ApprovalTerms): void {
    for (const name of pinnedCounters(this.#contract, terms)) if (!this.reads.has(name)) this.reads.set(name, []);
  }

  otherwise(document: OutcomeDocument | undefined, facts: Facts): CheckedReason {
    const fallback = {
      ALLOW: `allowed; no rule in contract "${this.#contract}" applies`,
      ESCALATE: `${this.#contract} leaves ${this.#tool} to a person if no rule decides`,
      BLOCK: `${this.#contract} refuses ${this.#tool} unless a rule allows it`,
    }[document?.verdict ?? "BLOCK"];
    return this.#reason(document?.reason ?? [fallback], facts, { scope: this.#scope, observed: false });
  }

  /** To be called after the rules: says why no rule allows the call, if the contract does not say it itself. */
  misses(document: OutcomeDocument | undefined): Reason | undefined {
    const isSaid = document?.reason !== undefined || document?.verdict === "ALLOW";
    if (isSaid || this.#scope.report.size > 0 || this.#allowing.length === 0) return undefined;
    return planMisses(this.#allowing);
  }

  #reason(
    written: ReasonSyntax,
    facts: Facts,
    { scope, observed }: { readonly scope: Scope; readonly observed: boolean },
  ): CheckedReason {
    const checked = checkReason(written, scope, facts);
    const shows = checked.filter((part) => typeof part !== "string");
    this.#note(shows, observed);
    return { reason: scope.report.size > 0 ? () => "" : planReason(checked), shows };
  }

  #planIfValid(core: Core): (context: EvaluationContext) => boolean {
    return this.#scope.report.size > 0 ? () => false : planCondition(core, this.#scope.probe);
  }

  #note(cores: readonly Core[], observed: boolean): void {
    for (const core of cores) {
      this.cost += worstCost(core);
      for (const node of walk(core))
        if (node.op === "counter" && !this.reads.has(node.name)) this.reads.set(node.name, []);
      for (const query of membershipQueries(core, this.#scope.report, { observed }))
        this.reads.get(query.counter)?.push(query);
    }
  }
}

function meaningOf(when: Syntax, cores: readonly Core[], scope: Scope): Readonly<Record<string, Canonical>> {
  const counters = readCounters(cores).map((name) => {
    const counter = [...(scope.counters?.values() ?? [])].find(
      ({ name: own }) => own === name || reservedName(own) === name,
    );
    return [name, counter?.identity ?? ""] as const;
  });
  const called = cores.flatMap((core) =>
    [...walk(core)].flatMap((node) => (node.op === "call" ? [node.entry.name] : [])),
  );
  return {
    when: spell(when),
    names: collectNamedValues([when], scope),
    counters: Object.fromEntries(counters),
    functions: [...new Set(called)].toSorted(),
  };
}

/** Does the condition only read `platform.present`, `session.present` and `tool`? */
function isOnPresence(syntax: Syntax): boolean {
  if (syntax.kind === "member" && syntax.of.kind === "name" && !syntax.optional)
    return syntax.name === "present" && ["platform", "session"].includes(syntax.of.name);
  if (syntax.kind === "name") return syntax.name === "tool";
  return syntax.kind !== "broken" && parts(syntax).every(isOnPresence);
}

import { bad, good, nearest, type Result, type Verdict } from "../wire/mod.ts";
import { checkCondition, checkExpression, type Facts, type Scope } from "./check.ts";
import { walk, worstCost, type Core } from "./core.ts";
import { planMover, planReader, readCounter, type Counter, type Mover, type Reader } from "./counters.ts";
import { Report, type Diagnostic, type SourceFile } from "./diagnostic.ts";
import {
  readContract,
  readMandate,
  type ContractDocument,
  type MandateDocument,
  type OutcomeDocument,
  type RequireDocument,
  type RuleDocument,
} from "./document.ts";
import { limitDeclarations, limitValues, type Limits } from "./limits.ts";
import { planCondition, type Situation } from "./plan.ts";
import { checkReason, planReason, type Reason, type ReasonSyntax } from "./reason.ts";
import { readSchema } from "./read-schema.ts";
import type { Validator } from "./schema.ts";
import type { Syntax } from "./syntax.ts";
import type { RecordType } from "./type.ts";
import type { YamlMap, YamlScalar } from "./yaml.ts";

/** The compiled rule set that decides: a mandate's contracts, planned tool by tool. Immutable. */
export interface ContractInForce {
  /** The body of GET /rules, byte for byte: the mandate, then each contract, each after a line `--- # file`. */
  readonly text: string;
  readonly mandate: string;
  readonly contracts: readonly string[];
  readonly tools: ReadonlyMap<string, ToolPlan>;
  readonly counters: readonly Counter[];
}

export interface ToolPlan {
  readonly tool: string;
  /** One for each contract that lists the tool, in the mandate's order. */
  readonly routes: readonly Route[];
  readonly movers: readonly Mover[];
  /** The counters that rules of this tool read, by full name. */
  readonly readers: ReadonlyMap<string, Reader>;
  /** The most steps that one decision can take. */
  readonly worstCost: number;
}

/** What one contract says of one tool. */
export interface Route {
  readonly contract: string;
  /** Those that read presence or the tool's name alone: checked before the schemas. */
  readonly presence: readonly Requirement[];
  readonly validateInput: Validator;
  readonly validatePlatform: Validator | undefined;
  readonly requires: readonly Requirement[];
  readonly rules: readonly Rule[];
  readonly otherwise: Verdict;
  readonly otherwiseReason: Reason;
}

export interface Requirement {
  /** `contract.$requires.N`, N counted from 1. */
  readonly id: string;
  readonly holds: (situation: Situation) => boolean;
  readonly reason: Reason;
}

export interface Rule {
  /** `contract.rule`. */
  readonly id: string;
  readonly fires: (situation: Situation) => boolean;
  readonly verdict: Verdict;
  readonly final: boolean;
  readonly reason: Reason;
}

/** Finds a file that a mandate names, or says in a clause why it cannot be had. */
export type OpenFile = (name: string) => Result<SourceFile, string>;

/** Compiles a mandate and every contract that it names. All problems of all files come at once, in order. */
export function compileMandate(mandate: SourceFile, open: OpenFile): Result<ContractInForce, readonly Diagnostic[]> {
  const report = new Report();
  const document = readMandate(mandate, report);
  const files = [mandate];
  const contracts = (document?.contracts ?? []).flatMap(({ file, tools }) => {
    const opened = open(file.text);
    if (!opened.ok) {
      report.add(
        "no-file",
        file.span,
        `\`${file.text}\` cannot be read: ${opened.problem}`,
        "paths are relative to the mandate",
      );
      return [];
    }
    files.push(opened.value);
    const contract = readContract(opened.value, report);
    return contract === undefined ? [] : [{ document: contract, tools }];
  });
  return compile({ files, mandate: document, contracts, report });
}

/** Compiles contracts that no mandate names, with the limits that they declare. */
export function compileContracts(files: readonly SourceFile[]): Result<ContractInForce, readonly Diagnostic[]> {
  const report = new Report();
  const contracts = files.flatMap((file) => {
    const document = readContract(file, report);
    return document === undefined ? [] : [{ document, tools: undefined }];
  });
  return compile({ files, mandate: undefined, contracts, report });
}

interface Sources {
  readonly files: readonly SourceFile[];
  readonly mandate: MandateDocument | undefined;
  readonly contracts: readonly {
    readonly document: ContractDocument;
    readonly tools: readonly YamlScalar[] | undefined;
  }[];
  readonly report: Report;
}

function compile({ files, mandate, contracts, report }: Sources): Result<ContractInForce, readonly Diagnostic[]> {
  const compilers = contracts.map(({ document, tools }) => {
    if (tools !== undefined) checkAllowance(document, tools, report);
    return new ContractCompiler(document, mandate, report);
  });
  const names = contracts.map(({ document }) => document.name);
  for (const [at, { document }] of contracts.entries()) {
    if (names.indexOf(document.name) < at)
      report.add(
        "twice",
        document.span,
        `two contracts are called \`${document.name}\``,
        "rules and receipts name them: give one another name",
      );
  }
  checkMandateNames(mandate, names, report);
  const tools = new Map<string, ToolPlan>();
  for (const compiler of compilers) {
    for (const part of compiler.tools()) tools.set(part.tool, merge(tools.get(part.tool), part));
  }
  if (report.size > 0) return bad(report.sorted(files));
  return good({
    text: files.map(({ name, text }) => `--- # ${name}\n${text}${text.endsWith("\n") ? "" : "\n"}`).join(""),
    mandate: mandate?.name ?? "",
    contracts: names,
    tools,
    counters: compilers.flatMap((compiler) => [...compiler.counters.values()]),
  });
}

function merge(known: ToolPlan | undefined, part: ToolPlan): ToolPlan {
  if (known === undefined) return part;
  return {
    tool: part.tool,
    routes: [...known.routes, ...part.routes],
    movers: [...known.movers, ...part.movers],
    readers: new Map([...known.readers, ...part.readers]),
    worstCost: known.worstCost + part.worstCost,
  };
}

/** A contract routes no tool beyond those that the mandate lets it route. */
function checkAllowance(document: ContractDocument, allowed: readonly YamlScalar[], report: Report): void {
  for (const [tool, { span }] of document.tools) {
    if (allowed.some(({ text }) => fits(text, tool))) continue;
    const list = allowed.map(({ text }) => `\`${text}\``).join(", ");
    report.add(
      "not-allowed",
      span,
      `the mandate does not let \`${document.name}\` route \`${tool}\``,
      `it may route ${list === "" ? "nothing" : list}`,
    );
  }
}

/** A tool's name, or a beginning of names: `mail.*`. */
function fits(pattern: string, tool: string): boolean {
  return pattern.endsWith("*") ? tool.startsWith(pattern.slice(0, -1)) : pattern === tool;
}

function checkMandateNames(mandate: MandateDocument | undefined, contracts: readonly string[], report: Report): void {
  for (const section of [mandate?.limits, mandate?.counters]) {
    for (const [name, { span }] of section ?? []) {
      if (contracts.includes(name)) continue;
      const near = nearest(name, contracts);
      report.add(
        "unknown-contract",
        span,
        `no contract of this mandate is called \`${name}\``,
        near === undefined ? `there is ${contracts.join(", ")}` : `did you mean \`${near}\`?`,
      );
    }
  }
}

const nothing: Facts = new Set();
const noFields: RecordType = { kind: "record", fields: new Map(), others: undefined };

/** Compiles one contract; `tools` gives its part of each tool's plan. */
class ContractCompiler {
  readonly counters = new Map<string, Counter>();
  readonly #document: ContractDocument;
  readonly #report: Report;
  readonly #limits: Limits;
  readonly #platform: { readonly type: RecordType; readonly validate: Validator } | undefined;

  constructor(document: ContractDocument, mandate: MandateDocument | undefined, report: Report) {
    this.#document = document;
    this.#report = report;
    this.#limits = limitValues(limitDeclarations(document.limits, report), mandate?.limits.get(document.name), report);
    this.#platform = document.platform === undefined ? undefined : readSchema(document.platform, "platform", report);
    this.#readCounters(mandate?.counters.get(document.name));
    this.#checkRuleNames();
  }

  tools(): readonly ToolPlan[] {
    return [...this.#document.tools.keys()].map((tool) => this.#tool(tool));
  }

  #readCounters(settings: YamlMap | undefined): void {
    const { counters, lets, name: contract } = this.#document;
    const empty = this.#startsEmpty(settings);
    for (const [name, document] of counters) {
      const of = this.#select(document.of);
      const context = { of, startsEmpty: empty.has(name), limits: this.#limits, lets, report: this.#report };
      this.counters.set(name, readCounter(`${contract}.${name}`, document, context));
    }
  }

  #startsEmpty(settings: YamlMap | undefined): ReadonlySet<string> {
    const found = new Set<string>();
    for (const [name, { key, value }] of settings?.entries ?? []) {
      const starts = value.kind === "map" ? value.entries.get("starts")?.value : undefined;
      if (!this.#document.counters.has(name)) {
        this.#report.add("unknown-counter", key.span, `\`${this.#document.name}\` has no counter \`${name}\``);
      } else if (
        starts?.kind !== "scalar" ||
        starts.text !== "empty" ||
        (value.kind === "map" && value.entries.size > 1)
      ) {
        this.#report.add(
          "counter",
          value.span,
          "the one thing that a mandate says of a counter is `{ starts: empty }`",
        );
      } else found.add(name);
    }
    return found;
  }

  /** The tools of this contract that a list of names and beginnings of names means. */
  #select(scalars: readonly YamlScalar[]): readonly string[] {
    const tools = [...this.#document.tools.keys()];
    const found = scalars.flatMap(({ text, span }) => {
      const fitting = tools.filter((tool) => fits(text, tool));
      if (fitting.length === 0) {
        const near = nearest(text, tools);
        this.#report.add(
          "unknown-tool",
          span,
          `this contract lists no tool \`${text}\``,
          near === undefined ? "list it under `tools:`" : `did you mean \`${near}\`?`,
        );
      }
      return fitting;
    });
    return [...new Set(found)];
  }

  #checkRuleNames(): void {
    const names = this.#document.rules.map(({ name }) => name);
    for (const [at, { name, span, on }] of this.#document.rules.entries()) {
      if (names.indexOf(name) < at)
        this.#report.add(
          "twice",
          span,
          `two rules are called \`${name}\``,
          "receipts name the rule that decided: give one another name",
        );
      this.#select(on);
    }
  }

  #tool(tool: string): ToolPlan {
    const document = this.#document.tools.get(tool);
    const input = document?.input === undefined ? undefined : readSchema(document.input, "input", this.#report);
    const scope: Scope = {
      input: input?.type ?? noFields,
      platform: this.#platform?.type ?? noFields,
      limits: this.#limits,
      counters: new Map([...this.counters.keys()].map((name) => [name, `${this.#document.name}.${name}`])),
      lets: this.#document.lets,
      report: this.#report,
    };
    const compiler = new ToolCompiler(this.#document.name, tool, scope);
    const { presence, requires, early, facts } = compiler.requires([
      ...this.#document.requires,
      ...(document?.requires ?? []),
    ]);
    const rules = this.#document.rules
      .filter(({ on }) => on.some(({ text }) => fits(text, tool)))
      .map((rule) => compiler.rule(rule, facts));
    this.#checkUnusedLets(scope, facts);
    const otherwise = document?.otherwise;
    const route: Route = {
      contract: this.#document.name,
      presence,
      validateInput: input?.validate ?? (() => undefined),
      validatePlatform: this.#platform?.validate,
      requires,
      rules: rules.flatMap((rule) => rule ?? []),
      otherwise: otherwise?.verdict ?? "BLOCK",
      otherwiseReason: compiler.otherwise(otherwise, facts),
    };
    const { movers, readers } = this.#counters(tool, scope, early, compiler.reads);
    return { tool, routes: [route], movers, readers, worstCost: compiler.cost };
  }

  /** A name under `let:` that no rule uses is still checked, where it can be. */
  #checkUnusedLets(scope: Scope, facts: Facts): void {
    for (const [name, syntax] of scope.lets) {
      const written = this.#document.file.text.split(new RegExp(`\\b${name}\\b`)).length - 1;
      if (written < 2) checkExpression(syntax, scope, facts);
    }
  }

  #counters(
    tool: string,
    scope: Scope,
    early: Facts,
    reads: ReadonlySet<string>,
  ): Pick<ToolPlan, "movers" | "readers"> {
    const movers: Mover[] = [];
    const readers = new Map<string, Reader>();
    const ownScope: Scope = { ...scope, counters: undefined };
    for (const [name, counter] of this.counters) {
      const document = this.#document.counters.get(name);
      if (document === undefined) continue;
      if (counter.of.includes(tool)) movers.push(planMover(counter, document, ownScope, early));
      if (reads.has(counter.name)) readers.set(counter.name, planReader(counter, document, ownScope, early));
    }
    return { movers, readers };
  }
}

/** Compiles what one contract says of one tool. */
class ToolCompiler {
  readonly #contract: string;
  readonly #tool: string;
  readonly #scope: Scope;
  /** Full names of the counters that its conditions and reasons read. */
  readonly reads = new Set<string>();
  cost = 0;

  constructor(contract: string, tool: string, scope: Scope) {
    this.#contract = contract;
    this.#tool = tool;
    this.#scope = scope;
  }

  /** Splits the requirements into those on presence and the rest; `early` is what the first prove, `facts` what all do. */
  requires(documents: readonly RequireDocument[]): {
    readonly presence: readonly Requirement[];
    readonly requires: readonly Requirement[];
    readonly early: Facts;
    readonly facts: Facts;
  } {
    const presence: Requirement[] = [];
    const requires: Requirement[] = [];
    let early = nothing;
    const later: (readonly [RequireDocument, number])[] = [];
    for (const [at, document] of documents.entries()) {
      if (!isOnPresence(document.when)) later.push([document, at]);
      else early = this.#require(document, at, early, presence);
    }
    let facts = early;
    for (const [document, at] of later) facts = this.#require(document, at, facts, requires);
    return { presence, requires, early, facts };
  }

  #require(document: RequireDocument, at: number, facts: Facts, into: Requirement[]): Facts {
    const { core, whenTrue, whenFalse } = checkCondition(document.when, this.#scope, facts);
    const fallback = `\`${document.text}\` is required`;
    const reason = this.#reason(document.reason ?? [fallback], whenFalse);
    this.#note([core]);
    into.push({ id: `${this.#contract}.$requires.${at + 1}`, holds: this.#planned(core), reason });
    return whenTrue;
  }

  rule(document: RuleDocument, facts: Facts): Rule {
    const scope: Scope = { ...this.#scope, lets: new Map([...this.#scope.lets, ...document.lets]) };
    for (const name of document.lets.keys()) {
      if (this.#scope.lets.has(name))
        this.#scope.report.add("shadowed-name", document.span, `\`${name}\` is already defined by the contract`);
    }
    const { core, whenTrue } = checkCondition(document.when, scope, facts);
    this.#note([core]);
    const reason = this.#reason(document.reason, whenTrue, scope);
    const { verdict, final } = document;
    return { id: `${this.#contract}.${document.name}`, fires: this.#planned(core), verdict, final, reason };
  }

  otherwise(document: OutcomeDocument | undefined, facts: Facts): Reason {
    const fallback = {
      ALLOW: `no rule of ${this.#contract} objects`,
      ESCALATE: `${this.#contract} leaves ${this.#tool} to a person where no rule decides`,
      BLOCK: `${this.#contract} refuses ${this.#tool} where no rule allows it`,
    }[document?.verdict ?? "BLOCK"];
    return this.#reason(document?.reason ?? [fallback], facts);
  }

  #reason(parts: ReasonSyntax, facts: Facts, scope: Scope = this.#scope): Reason {
    const checked = checkReason(parts, scope, facts);
    this.#note(checked.filter((part) => typeof part !== "string"));
    return scope.report.size > 0 ? () => "" : planReason(checked);
  }

  #planned(core: Core): (situation: Situation) => boolean {
    return this.#scope.report.size > 0 ? () => false : planCondition(core);
  }

  #note(cores: readonly Core[]): void {
    for (const core of cores) {
      this.cost += worstCost(core);
      for (const node of walk(core)) if (node.op === "counter") this.reads.add(node.name);
    }
  }
}

/** Does the condition read nothing but `platform.present`, `session.present` and `tool`? */
function isOnPresence(syntax: Syntax): boolean {
  switch (syntax.kind) {
    case "member":
      return syntax.name === "present" && syntax.of.kind === "name" && ["platform", "session"].includes(syntax.of.name);
    case "name":
      return syntax.name === "tool";
    case "literal":
      return true;
    case "unary":
      return isOnPresence(syntax.operand);
    case "binary":
      return isOnPresence(syntax.left) && isOnPresence(syntax.right);
    case "list":
      return syntax.items.every(isOnPresence);
    case "conditional":
    case "index":
    case "call":
    case "map":
    case "broken":
      return false;
    default:
      return syntax satisfies never;
  }
}

import { bad, didYouMean, good, nearest, pathNames, type Result } from "../../wire/mod.ts";
import type { CommandTable } from "../commands/form.ts";
import { isPack } from "../commands/pack-name.ts";
import { checkMarks, isContract, openAmong, splitText, type OpenFile } from "./files.ts";
import { Packs, type JoinedContract } from "./packs.ts";
import { readAliases } from "./aliases.ts";
import { memberPath } from "./reads.ts";
import { fieldAt, pathsOf, readSettings, TermsReader, type ApprovalSettings } from "./terms.ts";
import { checkTerms } from "./grant-forms.ts";
import { unboundMembers } from "./unbound.ts";
import { ToolCompiler, type CounterReads, type Route, type ToolPlan } from "./compile-tool.ts";
import { planWriter, planReader, readCounter, type CounterWriter, type CounterReader } from "./counters.ts";
import { reservedName, reservedPart, type Counter } from "../core/counter.ts";
import { Report, type Diagnostic, type SourceFile } from "../text/diagnostic.ts";
import type { ApprovalDocument, ContractDocument, MandateDocument, MandateEntry } from "../text/document.ts";
import type { HostFacts } from "../core/core.ts";
import type { Facts } from "../check/facts.ts";
import { readHostFacts } from "../check/host-facts.ts";
import type { ContractFunction } from "../core/function.ts";
import { limitDeclarations, limitValues, type Limits } from "../check/limits.ts";
import { countedFacts } from "../plan/counted-facts.ts";
import type { Probe } from "../plan/plan.ts";
import { readContract, readMandate } from "../text/read-document.ts";
import { readSchema } from "../schema/read.ts";
import { onlyDoubles, type Validator } from "../schema/schema.ts";
import { newBudget, type Scope } from "../check/scope.ts";
import { nothingSensitive, readSensitive, type SensitiveNames } from "./sensitive.ts";
import type { Syntax } from "../text/syntax.ts";
import type { RecordType } from "../value/type.ts";
import { toJson, type YamlMap, type YamlScalar } from "../text/yaml.ts";

/** The compiled rule set that decides: a mandate's contracts, planned for each tool. Immutable. */
export interface PolicySet {
  /** The body of GET /rules, byte for byte: the mandate, then each contract, each after a line `--- # file`. */
  readonly text: string;
  readonly mandate: string;
  readonly contracts: readonly string[];
  /** The contracts as written: for programs that examine more than the compiled rules. */
  readonly documents: readonly ContractDocument[];
  readonly tools: ReadonlyMap<string, ToolPlan>;
  /** The tools by their other names. A call is resolved once, before everything else. */
  readonly aliases: ReadonlyMap<string, string>;
  readonly counters: readonly Counter[];
  /** The members that are separate parts of the evidence. */
  readonly sensitive: SensitiveNames;
  readonly approvals: ApprovalSettings;
  /** The tables of commands, by contract. */
  readonly tables: ReadonlyMap<string, CommandTable>;
  /** The functions that its conditions call. */
  readonly functions: ReadonlySet<ContractFunction>;
}

export interface CompileOptions {
  /** The functions that conditions may call. */
  readonly functions: readonly ContractFunction[];
  /** Observes the value of each part of each condition. */
  readonly probe?: Probe;
  /** Finds the packs that contracts without a mandate name, by the name beside the contract. */
  readonly open?: OpenFile | undefined;
  /** Called after each tool, so that a compilation in a thread can pause. */
  readonly passed?: (() => void) | undefined;
}

/** Loads the parsers that a contract calls. Until then a call of one is an error, so the verdict is BLOCK. */
export async function loadFunctions({ functions }: PolicySet): Promise<void> {
  await Promise.all([...functions].map(async ({ load }) => load?.()));
}

/** Compiles the text of GET /rules again. A ledger stores this text for each digest on its receipts. */
export function recompile(text: string, options: CompileOptions): Result<PolicySet, readonly Diagnostic[]> {
  const files = splitText(text);
  const [mandate, ...others] = files;
  if (mandate === undefined || isContract(mandate.text)) return compileContracts(files, options);
  return compileMandate(mandate, openAmong(others), options);
}

/** Compiles a mandate and every contract that it names. Reports all problems of all files together, in order. */
export function compileMandate(
  mandate: SourceFile,
  open: OpenFile,
  options: CompileOptions,
): Result<PolicySet, readonly Diagnostic[]> {
  const report = new Report();
  const document = readMandate(mandate, report);
  const files = [mandate];
  const packs = new Packs(open, files, report);
  const read = ({ file, tools }: MandateEntry): readonly Contract[] => {
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
    return contract === undefined ? [] : [{ ...packs.join(contract), tools }];
  };
  const contracts = (document?.contracts ?? []).flatMap(read);
  return compile({ files, mandate: document, contracts, report, options });
}

/** Compiles contracts without a mandate, with the limits that they declare. */
export function compileContracts(
  files: readonly SourceFile[],
  options: CompileOptions,
): Result<PolicySet, readonly Diagnostic[]> {
  const report = new Report();
  const given = files.filter(({ text }) => isPack(text));
  const among = openAmong(given);
  const open: OpenFile = (name) => {
    const found = among(name);
    return found.ok ? found : (options.open?.(name) ?? found);
  };
  const read: SourceFile[] = [];
  const packs = new Packs(open, read, report);
  const contracts = files.flatMap((file) => {
    if (given.includes(file)) return [];
    read.push(file);
    const document = readContract(file, report);
    return document === undefined ? [] : [{ ...packs.join(document), tools: undefined }];
  });
  return compile({ files: read, mandate: undefined, contracts, report, options });
}

interface Contract extends JoinedContract {
  readonly tools: readonly YamlScalar[] | undefined;
}

interface Sources {
  readonly files: readonly SourceFile[];
  readonly mandate: MandateDocument | undefined;
  readonly contracts: readonly Contract[];
  readonly report: Report;
  readonly options: CompileOptions;
}

function compile(sources: Sources): Result<PolicySet, readonly Diagnostic[]> {
  const { files, contracts, report } = sources;
  checkMarks(files, report);
  checkNames(sources);
  const policySet = link(sources);
  const sensitive = readSensitive(
    contracts.map(({ document }) => document),
    report,
  );
  if (report.size > 0) return bad(report.sorted(files));
  return good({ ...policySet, sensitive });
}

/** Two contracts in force have different names, and the mandate only sets limits that they declare. */
function checkNames({ mandate, contracts, report }: Sources): void {
  const names = contracts.map(({ document }) => document.name);
  for (const [at, { document }] of contracts.entries()) {
    if (names.indexOf(document.name) < at)
      report.add(
        "twice",
        document.span,
        `two contracts are called \`${document.name}\``,
        "rules and receipts name them: rename one",
      );
  }
  checkMandateNames(mandate, names, report);
}

function link({ files, mandate, contracts, report, options }: Sources): PolicySet {
  const compilers = contracts.map((contract) => {
    const { document, tools } = contract;
    if (tools !== undefined) checkAllowance(document, tools, report);
    return new ContractCompiler(contract, mandate, report, options);
  });
  const documents = contracts.map(({ document }) => document);
  const tools = new Map<string, ToolPlan>();
  for (const compiler of compilers) {
    for (const part of compiler.tools()) tools.set(part.tool, merge(tools.get(part.tool), part));
  }
  return {
    text: files.map(({ name, text }) => `--- # ${name}\n${text}${text.endsWith("\n") ? "" : "\n"}`).join(""),
    mandate: mandate?.name ?? "",
    contracts: documents.map(({ name }) => name),
    documents,
    tools,
    aliases: readAliases(documents, report),
    counters: compilers.flatMap((compiler) => [...compiler.counters.values(), ...compiler.reserved.values()]),
    sensitive: nothingSensitive,
    approvals: readSettings(mandate?.approvals, report),
    tables: new Map(contracts.flatMap(({ document, table }) => (table === undefined ? [] : [[document.name, table]]))),
    functions: new Set(compilers.flatMap((compiler) => [...compiler.calls])),
  };
}

function merge(known: ToolPlan | undefined, part: ToolPlan): ToolPlan {
  if (known === undefined) return part;
  return {
    tool: part.tool,
    routes: [...known.routes, ...part.routes],
    observing: [...known.observing, ...part.observing],
    writers: distinct([...known.writers, ...part.writers]),
    readers: new Map([...known.readers, ...part.readers]),
    worstCost: known.worstCost + part.worstCost,
    canEscalate: known.canEscalate || part.canEscalate,
    unbound: known.unbound.filter((name) => part.unbound.includes(name)),
    subject: [...new Set([...known.subject, ...part.subject])].toSorted(),
  };
}

/** Two counters with one definition are one counter: a call updates it once. */
function distinct(writers: readonly CounterWriter[]): readonly CounterWriter[] {
  const seen = new Map(writers.toReversed().map((writer) => [writer.counter.identity, writer]));
  return writers.filter((writer) => seen.get(writer.counter.identity) === writer);
}

/** A contract routes only tools that the mandate allows it. */
function checkAllowance(document: ContractDocument, allowed: readonly YamlScalar[], report: Report): void {
  const names = [...document.tools].flatMap(([tool, { span, aliases }]) => [{ text: tool, span }, ...aliases]);
  for (const { text: tool, span } of names) {
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

/** Does the pattern match the tool? A pattern is a tool's name, or a prefix: `mail.*`. */
function fits(pattern: string, tool: string): boolean {
  return pattern.endsWith("*") ? tool.startsWith(pattern.slice(0, -1)) : pattern === tool;
}

function checkMandateNames(mandate: MandateDocument | undefined, contracts: readonly string[], report: Report): void {
  for (const section of [mandate?.limits, mandate?.counters]) {
    for (const [name, { span }] of section ?? []) {
      if (contracts.includes(name)) continue;
      const hint = didYouMean(name, contracts, `it has ${contracts.join(", ") || "none"}`);
      report.add("unknown-contract", span, `no contract of this mandate is called \`${name}\``, hint);
    }
  }
}

const noFields: RecordType = { kind: "record", fields: new Map(), others: undefined, open: false };

/** Compiles one contract; `tools` returns its part of each tool's plan. */
class ContractCompiler {
  readonly counters = new Map<string, Counter>();
  /** By name: the parts of counters that parked calls reserve, if an expression reads them. */
  readonly reserved = new Map<string, Counter>();
  readonly calls = new Set<ContractFunction>();
  readonly #options: CompileOptions;
  readonly #commands: CommandTable | undefined;
  readonly #document: ContractDocument;
  readonly #report: Report;
  readonly #budget = newBudget();
  readonly #used = new Set<Syntax>();
  readonly #limits: Limits;
  readonly #platform: { readonly type: RecordType; readonly validate: Validator } | undefined;
  readonly #mandate: MandateDocument | undefined;
  readonly #terms: TermsReader;
  readonly #hostFacts: HostFacts;

  constructor(
    { document, table }: Contract,
    mandate: MandateDocument | undefined,
    report: Report,
    options: CompileOptions,
  ) {
    this.#options = options;
    this.#commands = table;
    this.#mandate = mandate;
    this.#document = document;
    this.#report = report;
    this.#limits = limitValues(limitDeclarations(document.limits, report), mandate?.limits.get(document.name), report);
    this.#platform =
      document.platform === undefined ? undefined : readSchema(document.platform, "platform", this.#budget, report);
    this.#hostFacts = readHostFacts(document, this.#platform?.type, report);
    this.#readCounters(mandate?.counters.get(document.name));
    this.#checkRuleNames();
    this.#terms = new TermsReader(report, this.#platform?.type, new Set(this.counters.keys()));
    this.#checkSubject();
  }

  tools(): readonly ToolPlan[] {
    // A tool reserves amounts under a part that only another tool reads, so all expressions are checked before any plan.
    const plans = [...this.#document.tools.keys()].map((tool) => this.#tool(tool)).map((planned) => planned());
    if (this.#report.size === 0) this.#checkUnusedLets();
    return plans;
  }

  /** Reports definitions that no expression uses: their errors would not be seen. */
  #checkUnusedLets(): void {
    for (const lets of [this.#document.lets, ...this.#document.rules.map((rule) => rule.lets)]) {
      for (const [name, syntax] of lets) {
        if (!this.#used.has(syntax))
          this.#report.add("unused-name", syntax.span, `no expression uses \`${name}\``, "use it, or remove it");
      }
    }
  }

  #readCounters(settings: YamlMap | undefined): void {
    const { counters, lets, name: contract } = this.#document;
    const empty = this.#startsEmpty(settings);
    const shared = { limits: this.#limits, lets, hostFacts: this.#hostFacts, report: this.#report };
    for (const [name, document] of counters) {
      const of = this.#select(document.of);
      const unbound = of.map((tool) => [tool, this.#unbound(tool)] as const);
      const context = { ...shared, of, startsEmpty: empty.has(name), unbound: Object.fromEntries(unbound) };
      this.counters.set(name, readCounter(`${contract}.${name}`, document, context));
    }
  }

  /** The `approval` with the members that approvals of a tool's calls are not bound to: the tool's, or else the contract's. */
  #listing(tool: string): ApprovalDocument | undefined {
    const own = this.#document.tools.get(tool)?.approval;
    return own?.unbound === undefined ? this.#document.approval : own;
  }

  /** The listed members, each once. A tool without a member has nothing to leave out. */
  #unbound(tool: string): readonly string[] {
    return [...new Set(pathsOf(this.#listing(tool)?.unbound ?? []))].toSorted();
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
        this.#report.add("counter", value.span, "the only setting of a counter in a mandate is `{ starts: empty }`");
      } else found.add(name);
    }
    return found;
  }

  /** The tools of this contract that match a list of names and prefixes. */
  #select(scalars: readonly YamlScalar[]): readonly string[] {
    const tools = [...this.#document.tools.keys()];
    const found = scalars.flatMap(({ text, span }) => {
      const fitting = tools.filter((tool) => fits(text, tool));
      if (fitting.length === 0) {
        const known = this.#ownName(text) ?? nearest(text, tools);
        this.#report.add(
          "unknown-tool",
          span,
          `this contract lists no tool \`${text}\``,
          known === undefined ? "list it under `tools:`" : `did you mean \`${known}\`?`,
        );
      }
      return fitting;
    });
    return [...new Set(found)];
  }

  /** The tool with this alias. Conditions, rules and counters name a tool by its own name only. */
  #ownName(alias: string): string | undefined {
    const tools = [...this.#document.tools];
    return tools.find(([, { aliases }]) => aliases.some(({ text }) => text === alias))?.[0];
  }

  #checkRuleNames(): void {
    const names = new Set<string>();
    for (const { name, span, on } of this.#document.rules) {
      if (names.has(name))
        this.#report.add(
          "twice",
          span,
          `two rules are called \`${name}\``,
          "receipts name the rule that decided: rename one",
        );
      names.add(name);
      this.#select(on);
    }
  }

  #checkSubject(): void {
    for (const { text, span } of this.#document.subject) {
      const [root, ...path] = pathNames(text) ?? [];
      const field =
        root !== "platform" || this.#platform === undefined ? undefined : fieldAt(this.#platform.type, path);
      if (field === undefined || path.length === 0)
        this.#report.add(
          "approval",
          span,
          `\`${text}\` is not a fact of this contract`,
          "`subject` lists facts such as `platform.wallet_id`",
        );
    }
  }

  /** @returns makes the plan, once the expressions of all tools are checked */
  #tool(tool: string): () => ToolPlan {
    this.#options.passed?.();
    const document = this.#document.tools.get(tool);
    const input =
      document?.input === undefined ? undefined : readSchema(document.input, "input", this.#budget, this.#report);
    const scope: Scope = {
      functions: this.#options.functions,
      input: input?.type ?? noFields,
      platform: this.#platform?.type ?? noFields,
      hostFacts: this.#hostFacts,
      limits: this.#limits,
      counters: this.counters,
      unbound: this.#unbound(tool),
      lets: this.#document.lets,
      commands: this.#commands,
      used: this.#used,
      calls: this.calls,
      probe: this.#options.probe,
      budget: this.#budget,
      report: this.#report,
    };
    const compiler = new ToolCompiler(this.#document.name, tool, scope);
    const { presence, requires, early, facts } = compiler.requires([
      ...this.#document.requires,
      ...(document?.requires ?? []),
    ]);
    const shared = [document?.approval, this.#document.approval, this.#mandate?.approval];
    const rules = this.#document.rules
      .filter(({ on }) => on.some(({ text }) => fits(text, tool)))
      .map((rule) => compiler.rule(rule, facts, this.#terms.ofRule(rule.approval, shared)));
    const otherwise = document?.otherwise;
    const said = compiler.otherwise(otherwise, facts);
    const terms = this.#terms.terms(shared);
    compiler.pin(terms);
    const validate = input?.validate ?? (() => undefined);
    const route: Route = {
      contract: this.#document.name,
      presence,
      schemas: {
        input: document?.input && toJson(document.input),
        platform: this.#document.platform && toJson(this.#document.platform),
      },
      validateInput: document?.onlyDoubles === true ? onlyDoubles(validate) : validate,
      onlyDoubles: document?.onlyDoubles === true,
      validatePlatform: this.#validatePlatform(),
      hostFacts: this.#hostFacts,
      requires,
      rules: rules.flatMap((rule) => rule ?? []),
      otherwise: otherwise?.verdict ?? "BLOCK",
      otherwiseReason: said.reason,
      otherwiseShows: said.shows,
      misses: compiler.misses(otherwise),
      terms,
    };
    for (const [name, counter] of this.counters)
      if (compiler.reads.has(reservedName(counter.name))) this.reserved.set(name, reservedPart(counter));
    const observing = route.rules.filter(({ observed }) => observed);
    const decidesAlone =
      route.otherwise !== "ESCALATE" && !rules.some(({ verdict, observed }) => verdict === "ESCALATE" && !observed);
    const listing = this.#listing(tool);
    return () => {
      const { writers, readers } = this.#counters(tool, scope, early, compiler.reads);
      const plan = { tool, routes: [route], observing, writers, readers, worstCost: compiler.cost };
      const checked = { isOfTool: listing === document?.approval, report: this.#report };
      const unbound = unboundMembers(listing, plan, input?.type ?? noFields, checked);
      const subject = this.#subject(plan);
      checkTerms(route, { subject, writers }, this.#report);
      return { ...plan, canEscalate: !decidesAlone, unbound, subject };
    };
  }

  #validatePlatform(): Route["validatePlatform"] {
    const validate = this.#platform?.validate;
    return validate && ((facts, keyKind) => validate(countedFacts(facts, keyKind, this.#hostFacts)));
  }

  /** The listed facts, and the facts that key a counter and are not numbers. */
  #subject({ writers, readers }: Pick<ToolPlan, "readers" | "writers">): readonly string[] {
    const keys = [...writers.map(({ reads }) => reads.per), ...[...readers.values()].map(({ per }) => per)].flat();
    const facts = keys.flatMap((key) => {
      const path = typeof key === "string" || key.type.kind === "number" ? undefined : memberPath(key);
      return path?.startsWith("platform.") === true ? [path] : [];
    });
    return [...new Set([...pathsOf(this.#document.subject), ...facts])].toSorted();
  }

  #counters(tool: string, scope: Scope, early: Facts, reads: CounterReads): Pick<ToolPlan, "readers" | "writers"> {
    const writers: CounterWriter[] = [];
    const readers = new Map<string, CounterReader>();
    const ownScope: Scope = { ...scope, counters: undefined };
    for (const [name, counter] of [...this.counters, ...this.reserved]) {
      const document = this.#document.counters.get(name);
      if (document === undefined) continue;
      if (counter.of.includes(tool)) writers.push(planWriter(counter, document, ownScope, early));
      const queries = reads.get(counter.name);
      if (queries !== undefined)
        readers.set(counter.name, planReader(counter, document, ownScope, { facts: early, queries }));
    }
    return { writers: distinct(writers), readers };
  }
}

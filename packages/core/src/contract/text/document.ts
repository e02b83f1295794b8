import type { Verdict } from "../../wire/mod.ts";
import type { SourceFile, Span } from "./diagnostic.ts";
import type { ReasonSyntax } from "./reason.ts";
import type { Syntax } from "./syntax.ts";
import type { YamlMap, YamlNode, YamlScalar } from "./yaml.ts";

/**
 * A contract as it was written: its parts with their spans; names are not resolved, nothing is checked across parts.
 */
export interface ContractDocument {
  readonly file: SourceFile;
  readonly name: string;
  readonly span: Span;
  readonly limits: ReadonlyMap<string, YamlNode>;
  readonly platform: YamlNode | undefined;
  /** The listed members whose text is a separate part of the evidence. */
  readonly sensitive: readonly YamlScalar[];
  /** The facts that say whose money or data a call uses. An approval is bound to them. */
  readonly subject: readonly YamlScalar[];
  /** The facts that a host's key may state. */
  readonly hostFacts: readonly YamlScalar[];
  readonly approval: ApprovalDocument | undefined;
  readonly requires: readonly RequireDocument[];
  /** The table of commands, which another room reads. */
  readonly commands: YamlNode | undefined;
  readonly lets: ReadonlyMap<string, Syntax>;
  readonly tools: ReadonlyMap<string, ToolDocument>;
  readonly counters: ReadonlyMap<string, CounterDocument>;
  readonly rules: readonly RuleDocument[];
}

export interface RequireDocument {
  readonly span: Span;
  readonly when: Syntax;
  readonly text: string;
  readonly reason: ReasonSyntax | undefined;
}

export interface ToolDocument {
  readonly span: Span;
  /** Other names under which callers send the tool. */
  readonly aliases: readonly YamlScalar[];
  readonly input: YamlNode | undefined;
  /** The input has only numbers that a program reading IEEE doubles does not change. */
  readonly onlyDoubles: boolean;
  readonly requires: readonly RequireDocument[];
  readonly approval: ApprovalDocument | undefined;
  readonly otherwise: OutcomeDocument | undefined;
}

/** What an approval needs, as written: a part that is not written comes from the tool, the contract or the mandate. */
export interface ApprovalDocument {
  readonly span: Span;
  readonly by: readonly YamlScalar[] | undefined;
  readonly of: YamlScalar | undefined;
  readonly decideWithin: YamlScalar | undefined;
  readonly useWithin: YamlScalar | undefined;
  readonly batch: boolean | undefined;
  readonly sessions: YamlScalar | undefined;
  readonly pins: readonly YamlScalar[] | undefined;
  readonly drift: YamlScalar | undefined;
  readonly free: readonly YamlScalar[] | undefined;
  readonly unbound: readonly YamlScalar[] | undefined;
  readonly grants: GrantsDocument | undefined;
  /** Of a rule. */
  readonly self: YamlScalar | undefined;
}

/** What a grant may be at most, as a rule writes it. */
export interface GrantsDocument {
  readonly span: Span;
  readonly atMost: YamlScalar | undefined;
  readonly uses: YamlScalar | undefined;
  readonly pin: readonly YamlScalar[];
  /** `form`: later calls may have another command line of the same form. */
  readonly by: YamlScalar | undefined;
  readonly free: readonly YamlScalar[];
}

/** A mandate's settings for all approvals, as written. */
export interface ApprovalSettingsDocument {
  readonly self: boolean;
  readonly open: YamlMap | undefined;
  readonly outcomeWithin: YamlScalar | undefined;
}

export interface OutcomeDocument {
  readonly verdict: Verdict;
  readonly reason: ReasonSyntax | undefined;
}

/** An expression with the text that it was parsed from: a counter's identity is made of texts. */
export interface WrittenExpression {
  readonly syntax: Syntax;
  readonly text: string;
}

export interface CounterDocument {
  readonly span: Span;
  readonly of: readonly YamlScalar[];
  readonly when: WrittenExpression | undefined;
  readonly per: readonly WrittenExpression[];
  readonly sum: WrittenExpression | undefined;
  readonly remembers: WrittenExpression | undefined;
  readonly counting: YamlScalar | undefined;
  readonly within: YamlScalar | undefined;
  readonly timezone: YamlScalar | undefined;
  readonly weekStarts: YamlScalar | undefined;
  readonly since: WrittenExpression | undefined;
  readonly settlesWithin: YamlScalar | undefined;
  readonly settles: YamlScalar | undefined;
  readonly claims: boolean;
}

export interface RuleDocument {
  readonly name: string;
  readonly span: Span;
  readonly on: readonly YamlScalar[];
  readonly lets: ReadonlyMap<string, Syntax>;
  readonly when: Syntax;
  readonly verdict: Verdict;
  readonly final: boolean;
  /** The rule is evaluated and recorded, but does not decide. */
  readonly observed: boolean;
  readonly approval: ApprovalDocument | undefined;
  readonly reason: ReasonSyntax;
}

/** A mandate as it was written. */
export interface MandateDocument {
  readonly name: string;
  readonly contracts: readonly MandateEntry[];
  readonly limits: ReadonlyMap<string, YamlMap>;
  readonly counters: ReadonlyMap<string, YamlMap>;
  readonly approval: ApprovalDocument | undefined;
  readonly approvals: ApprovalSettingsDocument;
}

export interface MandateEntry {
  readonly file: YamlScalar;
  /** The tools that the contract may route; undefined for any. */
  readonly tools: readonly YamlScalar[] | undefined;
}

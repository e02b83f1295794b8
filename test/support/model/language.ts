/** Contracts, mandates and calls as structure, without text: the model interprets them and the printer writes them. */

export type Verdict = "ALLOW" | "ESCALATE" | "BLOCK";
export type Mode = "observe" | "assist" | "enforce";

/** JSON whose numbers keep their spelling and whose members keep their order. */
export type Json =
  | null
  | boolean
  | string
  | { readonly num: string }
  | readonly Json[]
  | { readonly obj: readonly (readonly [string, Json])[] };
export type JsonObject = { readonly obj: readonly (readonly [string, Json])[] };

export type TypeName = "object" | "array" | "string" | "number" | "integer" | "boolean" | "null";

export interface Schema {
  /** Empty: the schema has no `type`. */
  readonly types: readonly TypeName[];
  readonly properties?: readonly (readonly [string, Schema])[];
  readonly required?: readonly string[];
  readonly additional?: boolean | Schema;
  readonly items?: Schema;
  readonly oneOf?: readonly Json[];
  readonly constant?: Json;
  readonly minimum?: string;
  readonly maximum?: string;
  readonly exclusiveMinimum?: string;
  readonly exclusiveMaximum?: string;
  readonly multipleOf?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
}

export type Operator = "||" | "&&" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "+" | "-" | "*" | "/" | "%";
export type Macro = "exists" | "all" | "exists_one" | "filter" | "map";
export type CallName = "size" | "startsWith" | "endsWith" | "contains" | "lowerAscii";

export type Expression =
  | { readonly kind: "number"; readonly text: string }
  | { readonly kind: "text"; readonly value: string }
  | { readonly kind: "boolean"; readonly value: boolean }
  | { readonly kind: "null" }
  | { readonly kind: "list"; readonly items: readonly Expression[] }
  | { readonly kind: "map"; readonly entries: readonly (readonly [string, Expression])[] }
  | { readonly kind: "root"; readonly name: RootName }
  | { readonly kind: "limit"; readonly name: string }
  | { readonly kind: "counter"; readonly name: string }
  /** `value in counters.counter` */
  | { readonly kind: "asked"; readonly counter: string; readonly value: Expression }
  /** A `let` of the rule or the contract, or the variable of a macro. */
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "member"; readonly of: Expression; readonly name: string }
  /** `of.?a.?b.orValue(otherwise)` */
  | {
      readonly kind: "default";
      readonly of: Expression;
      readonly path: readonly string[];
      readonly otherwise: Expression;
    }
  | { readonly kind: "has"; readonly of: Expression; readonly name: string }
  | { readonly kind: "index"; readonly of: Expression; readonly at: Expression }
  | { readonly kind: "not"; readonly of: Expression }
  | { readonly kind: "minus"; readonly of: Expression }
  | { readonly kind: "binary"; readonly operator: Operator; readonly left: Expression; readonly right: Expression }
  | {
      readonly kind: "choice";
      readonly condition: Expression;
      readonly yes: Expression;
      readonly no: Expression;
    }
  | {
      readonly kind: "fold";
      readonly macro: Macro;
      readonly variable: string;
      readonly over: Expression;
      readonly body: Expression;
    }
  | { readonly kind: "call"; readonly name: CallName; readonly of: Expression; readonly argument?: Expression }
  | { readonly kind: "duration"; readonly text: string }
  | { readonly kind: "timestamp"; readonly text: string };

export type RootName = "input" | "platform" | "tool" | "now" | "platform.present" | "session.present";

/** Text with expressions between braces. */
export type Reason = readonly (string | Expression)[];

export interface Requirement {
  readonly when: Expression;
  readonly reason?: Reason;
}

export interface Tool {
  readonly name: string;
  readonly input: Schema;
  readonly requires: readonly Requirement[];
  /** Undefined only in contracts that are wrong on purpose. */
  readonly otherwise?: Verdict;
}

export interface Rule {
  readonly name: string;
  readonly on: readonly string[];
  readonly lets: readonly (readonly [string, Expression])[];
  readonly when: Expression;
  readonly verdict: Verdict;
  readonly final: boolean;
  /** Whether it is in `mode: observe`. */
  readonly observed?: boolean;
  readonly reason: Reason;
}

export type Counting = "attempts" | "released" | "possible" | "blocked" | "escalated";
export type CalendarUnit = "hour" | "day" | "week" | "month" | "year";
export type Window =
  | { readonly rolling: string }
  | { readonly unit: CalendarUnit; readonly timezone?: string; readonly weekStarts?: string };
export type Per = "session" | "key" | "gate" | "call" | Expression;

export interface Counter {
  readonly name: string;
  readonly of: readonly string[];
  readonly when?: Expression;
  readonly per: readonly Per[];
  readonly sum?: Expression;
  readonly remembers?: Expression;
  readonly counting?: Counting;
  readonly within?: Window;
  readonly since?: Expression;
  readonly settlesWithin?: string;
}

export interface Limit {
  readonly name: string;
  readonly value: Json;
  readonly min?: string;
  readonly max?: string;
}

export interface Contract {
  readonly name: string;
  readonly limits: readonly Limit[];
  readonly platform?: Schema;
  readonly requires: readonly Requirement[];
  readonly lets: readonly (readonly [string, Expression])[];
  readonly tools: readonly Tool[];
  readonly counters: readonly Counter[];
  readonly rules: readonly Rule[];
}

export interface Call {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly key: string;
  readonly session: string | null;
  readonly tool: string;
  readonly input: JsonObject;
  readonly platform: JsonObject | null;
}

/** A mandate's setting: a contract's limit with another value. */
export interface Setting {
  readonly contract: string;
  readonly limit: string;
  readonly value: Json;
}

/** Contracts in force together, and their calls in order. */
export interface Scenario {
  readonly mode: Mode;
  readonly contracts: readonly Contract[];
  readonly settings: readonly Setting[];
  readonly calls: readonly Call[];
}

import type { Span } from "./diagnostic.ts";
import type { Value } from "../value/value.ts";

/** An expression as it was written (CEL's grammar). Every node has its span in the file. */
export type Syntax =
  | { readonly kind: "literal"; readonly span: Span; readonly value: Value }
  | { readonly kind: "name"; readonly span: Span; readonly name: string }
  | MemberSyntax
  | {
      readonly kind: "index";
      readonly span: Span;
      readonly of: Syntax;
      readonly at: Syntax;
      readonly optional: boolean;
    }
  | CallSyntax
  | { readonly kind: "unary"; readonly span: Span; readonly operator: "!" | "-"; readonly operand: Syntax }
  | BinarySyntax
  | {
      readonly kind: "conditional";
      readonly span: Span;
      readonly test: Syntax;
      readonly yes: Syntax;
      readonly no: Syntax;
    }
  | { readonly kind: "list"; readonly span: Span; readonly items: readonly Syntax[] }
  | { readonly kind: "map"; readonly span: Span; readonly entries: readonly (readonly [Syntax, Syntax])[] }
  /** A part that could not be read. It was reported; nothing more is reported about the expressions that contain it. */
  | { readonly kind: "broken"; readonly span: Span };

export interface MemberSyntax {
  readonly kind: "member";
  readonly span: Span;
  readonly of: Syntax;
  readonly name: string;
  readonly nameSpan: Span;
  /** Written `.?name`: an absent member is an empty optional and not an error. */
  readonly optional: boolean;
}

export interface CallSyntax {
  readonly kind: "call";
  readonly span: Span;
  readonly name: string;
  readonly nameSpan: Span;
  readonly target: Syntax | undefined;
  readonly args: readonly Syntax[];
}

export const binaryOperators = ["||", "&&", "==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%"] as const;
export type BinaryOperator = (typeof binaryOperators)[number];

export interface BinarySyntax {
  readonly kind: "binary";
  readonly span: Span;
  readonly operator: BinaryOperator;
  readonly left: Syntax;
  readonly right: Syntax;
}

/** The direct operands of an expression. */
export function parts(syntax: Syntax): readonly Syntax[] {
  switch (syntax.kind) {
    case "member":
      return [syntax.of];
    case "index":
      return [syntax.of, syntax.at];
    case "call":
      return syntax.target === undefined ? syntax.args : [syntax.target, ...syntax.args];
    case "unary":
      return [syntax.operand];
    case "binary":
      return [syntax.left, syntax.right];
    case "conditional":
      return [syntax.test, syntax.yes, syntax.no];
    case "list":
      return syntax.items;
    case "map":
      return syntax.entries.flat();
    case "literal":
    case "name":
    case "broken":
      return [];
    default:
      return syntax satisfies never;
  }
}

import { inputText, type Canonical, type Decimal, type JsonObject, type KeyKind } from "../../wire/mod.ts";
import { checkExpression } from "../check/check.ts";
import type { Core } from "../core/core.ts";
import { keyValue } from "../core/key-text.ts";
import type { WrittenExpression } from "../text/document.ts";
import type { Facts } from "../check/facts.ts";
import { plan, type Plan, type EvaluationContext } from "../plan/plan.ts";
import type { Scope } from "../check/scope.ts";
import { isKey } from "../value/type.ts";

/** The caller: its key, and its session. */
export interface Caller {
  readonly keyName: string;
  readonly sessionId: string | null;
  /** Undefined for an ordinary key. */
  readonly keyKind?: KeyKind | undefined;
  /** For a message that could not be read, and so stands for any call: the MCP server to which it is sent. */
  readonly unreadFor?: string | undefined;
}

/** A counter's key for one call: typed parts that are written as one text; null if the call has no session. */
export type KeyPlan = (context: EvaluationContext, caller: Caller) => readonly Canonical[] | null;

const words = ["session", "key", "gate", "call"] as const;
/** `call` is the tool and the whole input, without the members that an approval is not bound to. */
export type KeyPart = (typeof words)[number] | Core;

/** Plans an expression, unless the compilation has an error: then the expression never runs. */
export function planIfValid<Made>(scope: Scope, core: Core, make: (core: Core) => Made, broken: Made): Made {
  return scope.report.size > 0 ? broken : make(core);
}

export function checkKey(per: readonly WrittenExpression[], scope: Scope, facts: Facts): readonly KeyPart[] {
  return per.flatMap(({ text: word, syntax }): KeyPart[] => {
    const known = words.find((each) => each === word);
    if (known !== undefined) return [known];
    const { core } = checkExpression(syntax, scope, facts);
    if (core.type.kind === "broken") return [];
    if (core.op === "member" && isKey(core.type)) return [core];
    scope.report.add(
      "counter",
      syntax.span,
      `\`${word}\` is not a key`,
      "`session`, `key`, `gate`, `call`, or a required text, number or boolean such as `platform.wallet_id`",
    );
    return [];
  });
}

const callTexts = new WeakMap<JsonObject, { readonly unbound: readonly string[]; readonly text: string }>();

/** The text of an input, equal for equal inputs with numbers by value. It is made once for a call, because it may be long. */
function callText(input: JsonObject, unbound: readonly string[]): string {
  const known = callTexts.get(input);
  if (known?.unbound === unbound) return known.text;
  const text = inputText(input, shortNumber, unbound);
  callTexts.set(input, { unbound, text });
  return text;
}

/** `100`, `1e2` and `100.0` are `1e2`: it is never much longer than what was sent. */
function shortNumber(number: number | Decimal): string {
  const [digits, exponent] =
    typeof number === "number" ? [String(number), 0] : [String(number.coefficient), number.exponent];
  const short = digits.replace(/0+$/, "");
  return short === "" ? "0" : `${short}e${exponent + digits.length - short.length}`;
}

export function planKey(keys: readonly KeyPart[], scope: Scope): KeyPlan {
  const pieces = keys.map((part) =>
    typeof part === "string" ? part : planIfValid<Plan>(scope, part, plan, () => null),
  );
  return (context, caller) => {
    const values: Canonical[] = [];
    for (const piece of pieces) {
      if (piece === "session" && caller.sessionId === null) return null;
      if (piece === "session") values.push(["session", caller.keyName, caller.sessionId ?? ""]);
      else if (piece === "key") values.push(["key", caller.keyName]);
      else if (piece === "gate") values.push(["gate"]);
      else if (piece === "call") values.push(["call", context.tool, callText(context.input, scope.unbound ?? [])]);
      else values.push(keyValue(piece(context)));
    }
    return values;
  };
}

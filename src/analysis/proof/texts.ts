import type { Core } from "../../contract/mod.ts";
import { eitherCase, patternTerm } from "./pattern.ts";
import type { Sym } from "./sym.ts";
import { equal, type Term } from "./term.ts";

type Text = Sym & { readonly kind: "text" };

/**
 * The functions on texts; undefined for those that have no translation.
 *
 * @param opaque makes a text of which nothing is known
 */
export function textCall(core: Core & { op: "call" }, args: readonly Sym[], opaque: () => Sym): Sym | undefined {
  const [of, other] = args;
  if (of?.kind !== "text") return undefined;
  const { name } = core.entry;
  if (name === "size" && args.length === 1) return { kind: "number", term: `(to_real (str.len ${of.term}))` };
  if (name === "lowerAscii") {
    const made = opaque();
    return made.kind === "text" ? { ...made, lowered: of.lowered ?? of.term } : undefined;
  }
  if (other?.kind !== "text") return undefined;
  const term = name === "matches" ? matches(of.term, other.known) : tests(name, of, other);
  return term === undefined ? undefined : { kind: "boolean", term };
}

function matches(text: Term, pattern: string | undefined): Term | undefined {
  const whole = pattern === undefined ? undefined : patternTerm(pattern);
  return whole === undefined ? undefined : `(str.in_re ${text} ${whole})`;
}

function tests(name: string, of: Text, other: Text): Term | undefined {
  if (of.lowered !== undefined && other.known !== undefined) {
    const found = loweredTest(name, of.lowered, other.known);
    if (found !== undefined) return found;
  }
  switch (name) {
    case "startsWith":
      return `(str.prefixof ${other.term} ${of.term})`;
    case "endsWith":
      return `(str.suffixof ${other.term} ${of.term})`;
    case "contains":
      return `(str.contains ${of.term} ${other.term})`;
    default:
      return undefined;
  }
}

/** A test of a text in lower case, as one of the text itself. */
function loweredTest(name: string, text: Term, wanted: string): Term | undefined {
  if (/[A-Z]/.test(wanted)) return ["startsWith", "endsWith", "contains"].includes(name) ? "false" : undefined;
  const part = eitherCase(wanted);
  if (part === undefined) return undefined;
  switch (name) {
    case "startsWith":
      return `(str.in_re ${text} (re.++ ${part} re.all))`;
    case "endsWith":
      return `(str.in_re ${text} (re.++ re.all ${part}))`;
    case "contains":
      return `(str.in_re ${text} (re.++ re.all ${part} re.all))`;
    default:
      return undefined;
  }
}

/** Is a text in lower case the one that is written? Undefined where that cannot be said of the text itself. */
export function loweredEquals(a: Sym, b: Sym): Term | undefined {
  const [lowered, known] = a.kind === "text" && a.lowered !== undefined ? [a, b] : [b, a];
  if (lowered.kind !== "text" || lowered.lowered === undefined || known.kind !== "text" || known.known === undefined)
    return undefined;
  if (/[A-Z]/.test(known.known)) return "false";
  const part = eitherCase(known.known);
  return part === undefined ? undefined : equal(`(str.in_re ${lowered.lowered} ${part})`, "true");
}

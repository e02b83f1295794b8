import type { Core } from "../../../../readers/src/ir.ts";
import { eitherCase, patternTerm } from "./pattern.ts";
import type { Script } from "./script.ts";
import type { Sym } from "./sym.ts";
import type { Term } from "./term.ts";

type Text = Sym & { readonly kind: "text" };

/**
 * Translates the functions on texts; undefined for those without a translation.
 *
 * @param opaque creates an unknown text
 */
export function textCall(
  script: Script,
  core: Core & { op: "call" },
  args: readonly Sym[],
  opaque: () => Sym,
): Sym | undefined {
  const [of, other] = args;
  if (of?.kind !== "text") return undefined;
  const { name } = core.entry;
  if (name === "size" && args.length === 1) return { kind: "number", term: `(to_real (str.len ${of.term}))` };
  if (name === "lowerAscii") {
    const made = opaque();
    return made.kind === "text" ? { ...made, lowered: of.lowered ?? of.term } : undefined;
  }
  if (other?.kind !== "text") return undefined;
  const term = name === "matches" ? matches(script, of.term, other.known) : tests(script, name, of, other);
  return term === undefined ? undefined : { kind: "boolean", term };
}

function matches(script: Script, text: Term, pattern: string | undefined): Term | undefined {
  const whole = pattern === undefined ? undefined : patternTerm(pattern);
  return whole === undefined ? undefined : script.matches(text, whole);
}

function tests(script: Script, name: string, of: Text, other: Text): Term | undefined {
  if (of.lowered !== undefined && other.known !== undefined) {
    const found = loweredTest(script, name, of.lowered, other.known);
    if (found !== undefined) return found;
  }
  const part = other.known === undefined || other.known === "" ? undefined : `(str.to_re ${other.term})`;
  if (part !== undefined) return partTest(script, name, of.term, part);
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

/** Rewrites a test of a text in lower case as a test of the text itself. */
function loweredTest(script: Script, name: string, text: Term, wanted: string): Term | undefined {
  if (/[A-Z]/.test(wanted)) return ["startsWith", "endsWith", "contains"].includes(name) ? "false" : undefined;
  const part = eitherCase(wanted);
  return part === undefined ? undefined : partTest(script, name, text, part);
}

/** As a regular expression: the solver decides it fastest, next to the patterns of `matches`. */
function partTest(script: Script, name: string, text: Term, part: Term): Term | undefined {
  switch (name) {
    case "startsWith":
      return script.matches(text, `(re.++ ${part} re.all)`);
    case "endsWith":
      return script.matches(text, `(re.++ re.all ${part})`);
    case "contains":
      return script.matches(text, `(re.++ re.all ${part} re.all)`);
    default:
      return undefined;
  }
}

/** Does a text in lower case equal the literal? Undefined if a test of the text itself cannot express this. */
export function loweredEquals(script: Script, a: Sym, b: Sym): Term | undefined {
  const [lowered, known] = a.kind === "text" && a.lowered !== undefined ? [a, b] : [b, a];
  if (lowered.kind !== "text" || lowered.lowered === undefined || known.kind !== "text" || known.known === undefined)
    return undefined;
  if (/[A-Z]/.test(known.known)) return "false";
  const part = eitherCase(known.known);
  return part === undefined ? undefined : script.matches(lowered.lowered, part);
}

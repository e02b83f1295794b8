import { walk, type Core } from "../../../../readers/src/ir.ts";
import type { ContractFinding } from "./finding.ts";
import { simplify } from "../formula/rewrite.ts";
import type { AnalysisSubject } from "../formula/subject.ts";
import { keyOf } from "../formula/key.ts";

/**
 * Tests of texts whose meaning is not the obvious one: hosts by their ends, paths by their starts, commands by
 * parts.
 */
export function findInTexts(subjects: readonly AnalysisSubject[]): readonly ContractFinding[] {
  return subjects.flatMap(({ rules, requirements }) => [
    ...requirements.flatMap(({ when }) => findingsIn(when)),
    ...rules.flatMap(({ when, span }) => findingsIn(when).map((finding) => ({ ...finding, within: span }))),
  ]);
}

function findingsIn(when: Core): readonly ContractFinding[] {
  // Folds over literal lists are expanded item by item.
  const whole = simplify(when);
  return [...walk(whole)].flatMap((core) => {
    if (core.op !== "call") return [];
    const [of, text] = core.args;
    if (of === undefined || text?.op !== "constant" || typeof text.value !== "string") return [];
    switch (core.entry.name) {
      case "endsWith":
        return domainSuffix(core, of, text.value);
      case "startsWith":
        return pathPrefix(core, of, text.value, whole);
      case "contains":
        return substringTest(core, of, text.value);
      default:
        return [];
    }
  });
}

function domainSuffix({ span }: Core, of: Core, text: string): readonly ContractFinding[] {
  const isDomain = /^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/i.test(text);
  if (!isDomain || !(findTestedNames(of).some((name) => hostNames.test(name)) || commonEndings.test(text))) return [];
  return [
    {
      code: "domain-suffix",
      span,
      message: `\`evil-${text}\` ends with "${text}" as well`,
      hint: `compare a whole host (\`== "${text}"\`), or its end with the dot before it (".${text}")`,
    },
  ];
}

const hostNames = /host|domain|url|uri|origin|site|server|email|mail|recipient|sender/i;
const commonEndings = /\.(?:com|org|net|edu|gov|io|dev|app|co|eu|de|uk|example|internal|local|test)$/i;

function pathPrefix({ span }: Core, of: Core, text: string, whole: Core): readonly ContractFinding[] {
  if (!/^(?:~?\/|\.{1,2}\/|[A-Za-z]:[\\/]).*[^/\\.~]/.test(text) && !(isNamed(of, pathNames) && /[^/]\/$/.test(text)))
    return [];
  if (text.endsWith("/") && excludesParents(of, whole)) return [];
  const other = text.endsWith("/") ? `${text}../../elsewhere` : `${text}-evil`;
  return [
    {
      code: "path-prefix",
      span,
      message: `\`${other}\` starts with "${text}" as well`,
      hint: `compare it segment by segment: \`.under("${text.replace(/(.)\/$/, "$1")}")\``,
    },
  ];
}

const pathNames = /path|file|folder|dir/i;

/** Does another test look for `..` in the same text? */
function excludesParents(of: Core, whole: Core): boolean {
  const key = keyOf(of);
  return [...walk(whole)].some((core) => {
    const [text, part] = core.op === "call" && core.entry.name === "contains" ? core.args : [];
    return text !== undefined && keyOf(text) === key && part?.op === "constant" && part.value === "..";
  });
}

function substringTest({ span }: Core, of: Core, text: string): readonly ContractFinding[] {
  if (!/[\p{L}\p{N}]/u.test(text)) return [];
  const kind = kinds.find(([names]) => isNamed(of, names));
  if (kind === undefined) return [];
  return [
    {
      code: "substring-test",
      span,
      message: `"${text}" may be anywhere in ${kind[1]}, or be written in another way with the same meaning`,
      hint: kind[2],
    },
  ];
}

const kinds: readonly (readonly [names: RegExp, what: string, hint: string])[] = [
  [
    /^(?:url|uri|href|link|endpoint|origin)$/i,
    "a URL: in its user, path or query",
    "compare `url(...).host` or its other parts",
  ],
  [/host|domain/i, "a host name", "compare the whole name, or its end with the dot before it"],
  [
    /^(?:cmd|command|script|shell|bash|line|command_line)$/i,
    "a command",
    "read it with `shell(...)`, which fails if it does not understand the text",
  ],
  [
    /^patch(?:_?text)?$/i,
    "a patch",
    "read it with `patch(...)`, which fails if agents could read the text differently",
  ],
  [/^(?:sql|query|statement)$/i, "a query", "read it with a parser for SQL, or let the platform send its effects"],
];

function isNamed(core: Core, names: RegExp): boolean {
  return findTestedNames(core).some((name) => names.test(name));
}

/** The name of the tested text: the member that is read, without functions that only fold it. */
function findTestedNames(core: Core): readonly string[] {
  switch (core.op) {
    case "member":
      return [core.name];
    case "call":
      return core.entry.name === "lowerAscii" ? core.args.flatMap(findTestedNames) : [];
    case "conditional":
      return [...findTestedNames(core.yes), ...findTestedNames(core.no)];
    case "index":
    case "select":
      return findTestedNames(core.of);
    default:
      return [];
  }
}

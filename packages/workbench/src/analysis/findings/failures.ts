import { children, functions, isExact, isInteger, type Core } from "../../../../readers/src/ir.ts";
import type { ContractFinding } from "./finding.ts";
import { impossible } from "../formula/reasoner.ts";
import { truth } from "../formula/rewrite.ts";
import { makeComparison, isFalse, isTrue, zeroAt, type Assertion, type AnalysisSubject } from "../formula/subject.ts";
import { isWhole, withItem } from "../formula/world.ts";

/** Operations that may have no value, for calls that match the schemas: each such call is a BLOCK. */
export function findFailures(subjects: readonly AnalysisSubject[]): readonly ContractFinding[] {
  return subjects.flatMap((subject) => [
    // A requirement is evaluated after those before it.
    ...subject.requirements.flatMap(({ when }, at) => {
      const context = subject.requirements.slice(0, at).map((earlier) => isTrue(earlier.when));
      return failuresIn(when, { ...subject, context });
    }),
    ...subject.rules.flatMap(({ when, span }) =>
      failuresIn(when, subject).map((finding) => ({ ...finding, within: span })),
    ),
  ]);
}

function failuresIn(when: Core, subject: AnalysisSubject): readonly ContractFinding[] {
  return risksIn(when, { subject, before: [] })
    .filter(({ site, ways }) => !ways.every((way) => impossible(site.subject, ...site.before, way)))
    .map(({ core, message, hint }) => ({ code: "may-fail", span: core.span, message, hint }));
}

/** Where an expression is evaluated, and the conditions that are true there. */
interface FailureSite {
  readonly subject: AnalysisSubject;
  readonly before: readonly Assertion[];
}

interface Risk {
  readonly core: Core;
  readonly site: FailureSite;
  /** The operation has no value if one of these is true. */
  readonly ways: readonly Assertion[];
  readonly message: string;
  readonly hint: string;
}

function risksIn(core: Core, site: FailureSite): readonly Risk[] {
  const extendSite = (...conditions: readonly Assertion[]): FailureSite => ({
    ...site,
    before: [...site.before, ...conditions],
  });
  switch (core.op) {
    case "and":
      return [...risksIn(core.left, site), ...risksIn(core.right, extendSite(isTrue(core.left)))];
    case "or":
      return [...risksIn(core.left, site), ...risksIn(core.right, extendSite(isFalse(core.left)))];
    case "conditional":
      return [
        ...risksIn(core.test, site),
        ...risksIn(core.yes, extendSite(isTrue(core.test))),
        ...risksIn(core.no, extendSite(isFalse(core.test))),
      ];
    case "fold": {
      const { subject } = site;
      const inside = { ...site, subject: { ...subject, world: withItem(subject.world, core.slot, core.range) } };
      const found = [...risksIn(core.range, site), ...(core.test === undefined ? [] : risksIn(core.test, inside))];
      if (core.body === undefined) return found;
      const before = core.test === undefined ? inside.before : [...inside.before, isTrue(core.test)];
      return [...found, ...risksIn(core.body, { ...inside, before })];
    }
    default:
      return [...children(core).flatMap((part) => risksIn(part, site)), ...ownRisk(core, site)];
  }
}

function ownRisk(core: Core, site: FailureSite): readonly Risk[] {
  if (core.op === "binary" && (core.operator === "/" || core.operator === "%")) return [divisionRisk(core, site)];
  if (core.op !== "index") return [];
  return core.of.type.kind === "list" ? [listRisk(core, site)] : [memberRisk(core, site)];
}

function divisionRisk(core: Core & { op: "binary" }, site: FailureSite): Risk {
  const by = readCoreText(core.right);
  return {
    core,
    site,
    ways: [isTrue(makeComparison("==", core.right, zeroAt(core)))],
    message: `\`${by}\` ${core.right.op === "constant" ? "is" : "may be"} 0, and a division by it has no value: such a call is BLOCK`,
    hint: `test it first (\`${by} != 0 && ...\`), or write \`exclusiveMinimum: 0\` in its schema`,
  };
}

function listRisk(core: Core & { op: "index" }, site: FailureSite): Risk {
  const { of, at } = core;
  const isNumber = at.op === "constant" ? isExact(at.value) && isInteger(at.value) : isWhole(at, site.subject.world);
  const size: Core = sizeOf(of, core);
  return {
    core,
    site,
    ways: [
      isTrue(makeComparison(">=", at, size)),
      isTrue(makeComparison("<", at, zeroAt(core))),
      ...(isNumber ? [] : [isTrue(truth(true, core))]),
    ],
    message: `\`${readCoreText(of)}\` may have no item at \`${readCoreText(at)}\`: such a call is BLOCK`,
    hint:
      `write \`minItems\` in its schema, test \`${readCoreText(of)}.size() > ...\` first, ` +
      `or write \`[?${readCoreText(at)}].orValue(...)\``,
  };
}

function memberRisk(core: Core & { op: "index" }, site: FailureSite): Risk {
  const { of, at } = core;
  return {
    core,
    site,
    ways: [isFalse(makeComparison("in", at, of))],
    message: `\`${readCoreText(of)}\` may have no member named by \`${readCoreText(at)}\`: such a call is BLOCK`,
    hint: `test it first (\`${readCoreText(at)} in ${readCoreText(of)} && ...\`), or write \`[?${readCoreText(at)}].orValue(...)\``,
  };
}

function sizeOf(of: Core, { span }: Core): Core {
  const entry = functions.find(({ name, parameters }) => name === "size" && parameters[0] === "list");
  if (entry === undefined) throw new Error("lists have no size");
  return { op: "call", entry, args: [of], type: entry.result, span };
}

function readCoreText({ span }: Core): string {
  return span.file.text.slice(span.from, span.to);
}

import type { Span } from "../../../../readers/src/contract.ts";
import { walk, type Core, type CounterDocument, type Syntax } from "../../../../readers/src/ir.ts";
import { directionOf } from "../formula/direction.ts";
import type { ContractFinding } from "./finding.ts";
import { impossible } from "../formula/reasoner.ts";
import { reservedName, isFalse, presenceOf, readsRoot, type AnalysisSubject } from "../formula/subject.ts";

/** Counters that the agent can escape, or that count the wrong calls. */
export function findInCounters(subjects: readonly AnalysisSubject[]): readonly ContractFinding[] {
  const counters = [...Map.groupBy(subjects, ({ document }) => document).values()].flatMap(countersOf);
  return counters.flatMap((counter) => [
    ...keyFindings(counter, counters),
    ...countingFindings(counter),
    ...sessionFindings(counter),
    ...lifetimeFindings(counter),
    ...settlingFindings(counter, counters),
  ]);
}

interface CounterInUse {
  readonly name: string;
  /** `contract.counter`. */
  readonly id: string;
  readonly document: CounterDocument;
  /** The tools whose calls it counts. */
  readonly of: readonly AnalysisSubject[];
  readonly uses: readonly Use[];
  readonly parts: ReadonlySet<KeyRoot>;
  /** The part of its key that the agent chooses. */
  readonly chosen: Span | undefined;
}

/** A condition that reads the counter. */
interface Use {
  readonly subject: AnalysisSubject;
  readonly core: Core;
  readonly span: Span;
  /** A higher count makes the verdict stricter: a limit, a budget, a taint. */
  readonly limits: boolean;
  /** A higher count makes the verdict milder: it proves that an action was done. */
  readonly proves: boolean;
  /** It reads the amount of parked calls, and not the whole counter. */
  readonly isReserved: boolean;
}

type KeyRoot = "session" | "key" | "gate" | "input" | "platform";

function countersOf(subjects: readonly AnalysisSubject[]): readonly CounterInUse[] {
  const [first] = subjects;
  if (first === undefined) return [];
  const { document } = first;
  return [...document.counters].map(([name, counter]) => {
    const id = `${document.name}.${name}`;
    // Equal calls are counted to find a loop. An amount under such a key is a budget that every other input has again.
    const rootsOf = ({ syntax, text }: (typeof counter.per)[number]): readonly KeyRoot[] =>
      text === "call" && counter.sum !== undefined ? ["input"] : keyRoot(text, syntax, document.lets);
    return {
      name,
      id,
      document: counter,
      of: subjects.filter(({ tool }) => counter.of.some(({ text }) => fits(text, tool))),
      uses: subjects.flatMap((subject) => [...usesIn(subject, id, false), ...usesIn(subject, reservedName(id), true)]),
      parts: new Set(counter.per.flatMap(rootsOf)),
      chosen: counter.per.find((part) => rootsOf(part).includes("input"))?.syntax.span,
    };
  });
}

function fits(pattern: string, tool: string): boolean {
  return pattern.endsWith("*") ? tool.startsWith(pattern.slice(0, -1)) : pattern === tool;
}

function keyRoot(text: string, syntax: Syntax, lets: ReadonlyMap<string, Syntax>): readonly KeyRoot[] {
  if (text === "session" || text === "key" || text === "gate") return [text];
  let open: Syntax | undefined = syntax;
  while (open?.kind === "member" || open?.kind === "index") open = open.of;
  if (open?.kind !== "name") return [];
  if (open.name === "input" || open.name === "platform") return [open.name];
  const definition = lets.get(open.name);
  return definition === undefined ? [] : keyRoot("", definition, lets);
}

function usesIn(subject: AnalysisSubject, id: string, isReserved: boolean): readonly Use[] {
  const { rules, requirements } = subject;
  const strict = rules.filter(({ verdict }) => verdict !== "ALLOW");
  const milder = subject.route.otherwise === "ALLOW" ? [] : rules.filter(({ verdict }) => verdict === "ALLOW");
  const reads = (core: Core): boolean => [...walk(core)].some((part) => part.op === "counter" && part.name === id);
  return [
    ...strict.map((rule) => ({ core: rule.when, restricts: true })),
    ...milder.map((rule) => ({ core: rule.when, restricts: false })),
    ...requirements.map(({ when }) => ({ core: when, restricts: false })),
  ].flatMap(({ core, restricts }) => {
    if (!reads(core)) return [];
    const { grows, shrinks } = directionOf(core, id);
    const [limits, proves] = restricts ? [grows, shrinks] : [shrinks, grows];
    return [{ subject, core, span: core.span, limits, proves, isReserved }];
  });
}

/** A limit under a key that the agent, or the program that starts its sessions, can change at will. */
function keyFindings(counter: CounterInUse, all: readonly CounterInUse[]): readonly ContractFinding[] {
  const { name, document, parts, uses } = counter;
  if (!uses.some(({ limits }) => limits) || all.some((other) => backs(other, counter))) return [];
  const span = document.per[0]?.syntax.span ?? document.span;
  if (parts.has("input")) {
    const { file, from, to } = counter.chosen ?? span;
    const chosen = file.text.slice(from, to);
    return [
      {
        code: "agent-controlled-key",
        span,
        within: document.span,
        message: `the agent chooses \`${chosen}\`, so it can reset \`${name}\` by sending another value`,
        hint: "count `per: key` or by a fact such as `platform.wallet_id`, or add a counter that limits all values together",
      },
    ];
  }
  // A limit on the parked calls of one session is not a budget.
  const isReservedOnly = uses.every(({ limits, isReserved }) => !limits || isReserved);
  if (!parts.has("session") || isReservedOnly || !isBudget(counter)) return [];
  return [
    {
      code: "session-budget",
      span,
      within: document.span,
      message: `\`${name}\` is a budget that starts at 0 with each session, and it is easy to start a new session`,
      hint: "count `per: key` or by a fact such as `platform.wallet_id`",
    },
  ];
}

/** Does another counter limit the same calls in the same measure, whatever the agent sends? */
function backs(other: CounterInUse, counter: CounterInUse): boolean {
  return (
    other !== counter &&
    !other.parts.has("input") &&
    !other.parts.has("session") &&
    !other.document.per.some(({ text }) => text === "call") &&
    (other.document.sum === undefined) === (counter.document.sum === undefined) &&
    counter.of.every((subject) => other.of.includes(subject)) &&
    other.uses.some(({ limits }) => limits)
  );
}

/**
 * A counter that adds up a sum, or counts the calls that it limits over a day or more. Rates within minutes and taints
 * are not budgets.
 */
function isBudget({ document, of, uses }: CounterInUse): boolean {
  if (document.sum !== undefined) return true;
  if (document.when !== undefined || document.remembers !== undefined || isShort(document.within?.text)) return false;
  return uses.some(({ limits, subject }) => limits && of.includes(subject));
}

function isShort(within: string | undefined): boolean {
  return (
    within !== undefined &&
    (within === "hour" || /^\d+(?:ms|s|m)$/.test(within) || /^(?:[1-9]|1\d|2[0-3])h$/.test(within))
  );
}

function countingFindings({ name, document, of, uses }: CounterInUse): readonly ContractFinding[] {
  const counting = document.counting?.text ?? "attempts";
  const at = { span: document.counting?.span ?? document.span, within: document.span };
  const found: ContractFinding[] = [];
  const canRefuse = of.filter(
    ({ rules, requirements, route }) =>
      requirements.length > 0 || route.otherwise !== "ALLOW" || rules.some(({ verdict }) => verdict !== "ALLOW"),
  );
  if (
    uses.some(({ proves }) => proves) &&
    ["attempts", "blocked", "escalated"].includes(counting) &&
    canRefuse.length > 0
  )
    found.push({
      ...at,
      code: "attempt-as-proof",
      message: `\`${name}\` proves that an action was done, but also counts refused calls (\`counting: ${counting}\`)`,
      hint: "write `counting: released`",
    });
  const asks = of.filter(
    ({ rules, route }) => route.otherwise === "ESCALATE" || rules.some(({ verdict }) => verdict === "ESCALATE"),
  );
  if (uses.some(({ limits }) => limits) && counting === "released" && asks.length > 0)
    found.push({
      ...at,
      code: "approved-uncounted",
      message: `\`${name}\` limits \`${asks[0]?.tool ?? ""}\`, but \`released\` does not count calls that a person approves`,
      hint: "write `counting: possible`: it counts calls that were let through, and calls that a person may approve",
    });
  return found;
}

/**
 * A budget that no outcome changes, although another counter of the same calls shows that outcomes are reported. Without
 * such a counter nobody may know the outcomes, or they may not matter.
 */
function settlingFindings(counter: CounterInUse, all: readonly CounterInUse[]): readonly ContractFinding[] {
  const { name, document, of, uses } = counter;
  const { counting, settles, since, span, sum } = document;
  const isBudgetOfReleased = sum !== undefined && ["possible", "released"].includes(counting?.text ?? "");
  if (!isBudgetOfReleased || settles !== undefined || since !== undefined || !uses.some(({ limits }) => limits))
    return [];
  const knows = all.find(
    (other) =>
      (other.document.settles !== undefined || other.document.counting?.text === "done") &&
      other.of.some((subject) => of.includes(subject)),
  );
  if (knows === undefined) return [];
  return [
    {
      code: "unsettled-budget",
      span: counting?.span ?? span,
      within: span,
      message: `\`${name}\` keeps the amounts of failed calls, but their outcomes are reported: \`${knows.name}\` counts by them`,
      hint: "add `settles: outcome`, or `since` if the platform's facts say what was spent",
    },
  ];
}

/** Without a session, a counter per session reads 0: it is not a limit, unless a session is required. */
function sessionFindings({ name, document, parts, uses }: CounterInUse): readonly ContractFinding[] {
  if (!parts.has("session")) return [];
  const first = uses.find(({ limits, subject, span }) => {
    if (!limits) return false;
    const stops = subject.rules.filter(({ verdict }) => verdict !== "ALLOW").map(({ when }) => isFalse(when));
    const without = isFalse(presenceOf("session.present", span));
    const others = stops.filter(({ core }) => readsRoot(core, "session.present"));
    return !impossible(subject, without, ...others);
  });
  if (first === undefined) return [];
  return [
    {
      code: "session-not-required",
      span: first.span,
      within: document.span,
      message: `\`${name}\` reads 0 for a call without a session, and \`${first.subject.tool}\` accepts such calls: nothing limits them`,
      hint: "add `session.present` to `requires:`",
    },
  ];
}

/** After data loss such a counter stays unknown forever. A counter per session ends with its session. */
function lifetimeFindings({ name, document, parts, uses }: CounterInUse): readonly ContractFinding[] {
  const ends = document.within !== undefined || document.since !== undefined || parts.has("session");
  if (ends || uses.length === 0) return [];
  return [
    {
      code: "counts-for-ever",
      span: document.span,
      message: `\`${name}\` has no \`within\`, so after a data loss each call that reads it is BLOCK until somebody resets it`,
      hint: "add `within:`, such as `within: 30d`",
    },
  ];
}

import type { PolicySet, Span } from "../../../../readers/src/contract.ts";
import type { Route } from "../../../../readers/src/ir.ts";
import { shortName, type AnalysisSubject } from "../formula/subject.ts";
import { findMemberSpan } from "./approvals.ts";
import type { ContractFinding } from "./finding.ts";

/** A valid key of a gate: who uses it, and for which calls. */
export interface KnownKey {
  readonly name: string;
  /** The person who uses the key; null for a key of a program. */
  readonly person: string | null;
  readonly groups: readonly string[];
  readonly scopes: readonly string[];
  /** Returns true if the key may ask about this tool. */
  readonly allowsTool: (name: string) => boolean;
}

/**
 * Approvals that nobody can give.
 *
 * @param keys the gate's valid keys; undefined if they are not known
 */
export function findInApprovers(
  subjects: readonly AnalysisSubject[],
  { approvals: { self } }: PolicySet,
  keys: readonly KnownKey[] | undefined,
): readonly ContractFinding[] {
  return subjects
    .flatMap(findEscalationSites)
    .flatMap((asker) => [
      ...((self || asker.terms.self === true) && asker.terms.of > 1 ? [quorumWithSelf(asker, self)] : []),
      ...(keys === undefined ? [] : missingApprovers(asker, keys, self || asker.terms.self === true)),
    ]);
}

/** A rule, or an `otherwise`, that asks a person. */
interface EscalationSite {
  readonly name: string;
  readonly tool: string;
  readonly terms: Route["terms"];
  /** Its rule, or its tool. */
  readonly within: Span;
  readonly locate: (member: "by" | "of") => Span;
}

function findEscalationSites({ document, tool, route, rules }: AnalysisSubject): readonly EscalationSite[] {
  const own = document.tools.get(tool);
  const makeSite = (name: string, terms: Route["terms"], ofRule?: (typeof document.rules)[number]): EscalationSite => {
    const within = ofRule?.span ?? own?.span ?? document.span;
    const nearest = [ofRule?.approval, own?.approval, document.approval].filter((each) => each !== undefined);
    const locate = (member: "by" | "of"): Span => {
      const written = nearest.find((approval) => approval[member] !== undefined);
      return written === undefined ? within : findMemberSpan(written, member);
    };
    return { name, tool, terms, within, locate };
  };
  const asking = rules.filter(({ verdict }) => verdict === "ESCALATE");
  return [
    ...asking.map(({ id, terms }) => {
      const written = document.rules.find(({ name }) => name === shortName(id));
      return makeSite(`\`${shortName(id)}\``, terms, written);
    }),
    ...(route.otherwise === "ESCALATE" ? [makeSite(`the \`otherwise\` of \`${tool}\``, route.terms)] : []),
  ];
}

function quorumWithSelf({ name, terms, within, locate }: EscalationSite, isOfMandate: boolean): ContractFinding {
  const place = isOfMandate ? "the mandate" : "the rule";
  return {
    code: "quorum-with-self",
    span: locate("of"),
    within,
    message: `${name} needs ${terms.of} people, but ${place} says \`self: true\`, so the asker may be one of them`,
    hint: `remove \`self: true\` from ${place}, or write \`of: 1\` if one person operates the gate`,
  };
}

/** Too few people with a key that may decide, for any call or for the calls of one person's key. */
function missingApprovers(asker: EscalationSite, keys: readonly KnownKey[], self: boolean): readonly ContractFinding[] {
  const { name, tool, terms, within, locate } = asker;
  const { by, of } = terms;
  const able = keys.filter(
    ({ person, groups: own, scopes }) =>
      person !== null &&
      scopes.includes("approve") &&
      !scopes.includes("check") &&
      !scopes.includes("admin") &&
      (by === null || own.some((group) => by.includes(group))),
  );
  const people = [...new Set(able.flatMap(({ person }) => person ?? []))].toSorted();
  const groups = by === null ? "" : ` of ${by.map((group) => `\`${group}\``).join(" or ")}`;
  const wanted = `${of === 1 ? "a person" : `${of} people`}${groups}`;
  const makeFinding = (message: string): readonly ContractFinding[] => [
    {
      code: "no-approver",
      span: locate(people.length === 0 && by !== null ? "by" : "of"),
      within,
      message,
      hint: "make a key of scope `approve` for one more person, or change `by` and `of`",
    },
  ];
  const has =
    people.length === 0
      ? "no key belongs to one"
      : `only ${people.join(", ")} ${people.length === 1 ? "has" : "have"} a key`;
  if (people.length < of) return makeFinding(`${name} needs ${wanted}, but ${has}: nobody can approve such a call`);
  const isBarred = ({ person, scopes, allowsTool }: KnownKey): boolean =>
    scopes.includes("check") && allowsTool(tool) && person !== null && people.includes(person);
  const barred = self || people.length > of ? undefined : keys.find(isBarred);
  if (barred === undefined) return [];
  return makeFinding(
    `${name} needs ${wanted}, and nobody approves their own call: ` +
      `for calls of the key \`${barred.name}\`, which belongs to ${barred.person ?? ""}, too few people are left`,
  );
}

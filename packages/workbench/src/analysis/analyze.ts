import type { PolicySet } from "../../../readers/src/contract.ts";
import { findInApprovals } from "./findings/approvals.ts";
import { findInApprovers, type KnownKey } from "./findings/approvers.ts";
import { findInCounters } from "./findings/counters.ts";
import { findInFacts } from "./findings/facts.ts";
import { findFailures } from "./findings/failures.ts";
import { findInNames } from "./findings/names.ts";
import { findInRules } from "./findings/rules.ts";
import { findInSubjects } from "./findings/subjects.ts";
import { findInTexts } from "./findings/texts.ts";
import { findInTools } from "./findings/tools.ts";
import type { ContractFinding } from "./findings/finding.ts";
import { subjectsOf } from "./formula/subject.ts";
import { withoutSuppressed } from "./findings/suppressions.ts";

/**
 * The findings about contracts that compile, in the order of the files and of their text, without those that comments
 * allow. A finding that something is impossible is proven. Without a proof it is not reported.
 *
 * @param keys the valid keys of the gate; without them, nothing is said about who can approve
 */
export function analyze(policySet: PolicySet, keys?: readonly KnownKey[]): readonly ContractFinding[] {
  const subjects = subjectsOf(policySet);
  const found = [
    ...findInRules(subjects),
    ...findFailures(subjects),
    ...findInCounters(subjects),
    ...findInFacts(subjects),
    ...findInTools(subjects, policySet),
    ...findInApprovals(subjects, policySet),
    ...findInApprovers(subjects, policySet, keys),
    ...findInSubjects(subjects, policySet),
    ...findInNames(policySet.documents),
    ...findInTexts(subjects),
  ];
  const files = [...new Set(policySet.documents.map(({ file }) => file))];
  const left = withoutSuppressed(distinct(found), files);
  const order = ({ span }: ContractFinding): number => files.indexOf(span.file);
  return left.toSorted((a, b) => order(a) - order(b) || a.span.from - b.span.from);
}

/** One finding for each span: for a rule on several tools it is reported once. */
function distinct(findings: readonly ContractFinding[]): readonly ContractFinding[] {
  const key = ({ code, span }: ContractFinding): string => `${code} ${span.file.name} ${span.from} ${span.to}`;
  return [...new Map(findings.toReversed().map((finding) => [key(finding), finding])).values()].toReversed();
}

/**
 * The findings of `svc-gate analyze`: defects and likely defects of contracts.
 *
 * Promises: a finding that something is impossible is proven; each kind has a page in docs/findings.
 *
 * Does not: change a contract.
 *
 * May import: formula.
 */

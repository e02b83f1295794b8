/**
 * The findings of `svc-gate analyze`, one kind of mistake each.
 *
 * Promises: a finding is confirmed by the engine; each kind has a page in docs/findings.
 *
 * Does not: change a contract.
 *
 * Package: workbench. May import: formula.
 */

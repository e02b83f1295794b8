/**
 * `svc-gate lsp`: the language server for contracts, mandates, packs and test files.
 *
 * Promises: problems have the words and positions of the compiler, or of the reader of tests.
 *
 * Does not: write files.
 *
 * May import: fmt.
 */

/**
 * `svc-gate lsp`: the language server for contracts and test files.
 *
 * Promises: problems are those of the compiler, with the same words and places.
 *
 * Does not: write files.
 *
 * Package: workbench. May import: fmt.
 */

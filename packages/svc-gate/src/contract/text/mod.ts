/**
 * The text of contracts and mandates: YAML, documents, expressions, and diagnostics with their places.
 *
 * Promises: every node keeps its place in the file, and all problems of a file are reported together.
 *
 * Does not: resolve names, or know types.
 *
 * Package: core. May import: value.
 */

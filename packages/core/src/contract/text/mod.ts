/**
 * The text of contracts and mandates: YAML, documents, expressions, and diagnostics with their spans.
 *
 * Promises: every node keeps its span in the file, and its problems are reported together, unless its YAML is invalid.
 *
 * Does not: resolve names, or know types.
 *
 * May import: value.
 */

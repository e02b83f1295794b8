/**
 * The check of expressions: names, types, presence, and the constant parts.
 *
 * Promises: an expression that passes reads no member that may be absent, and compares no text with a number.
 *
 * Does not: read YAML, or know rules.
 *
 * Package: core. May import: core, functions, plan, text, value.
 */

/**
 * The check of expressions, limits and reasons: names, types, present members, constant values.
 *
 * Promises: an expression that passes reads no absent member by a fixed name, and compares no declared text with a
 * declared number.
 *
 * Does not: parse text, or know rules.
 *
 * May import: commands, core, plan, text, value.
 */

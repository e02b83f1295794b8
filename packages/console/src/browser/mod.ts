/**
 * The console: a program for browsers, for people who decide, read receipts or operate the gate.
 *
 * Promises: an agent's text is shown as text, never as markup.
 *
 * Does not: enforce rights; the gate does.
 */

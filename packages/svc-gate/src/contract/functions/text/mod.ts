/**
 * Functions over texts: contents, look-alikes, similar texts, mentions.
 *
 * Promises: pure and total; the cost of a call is known before it runs.
 *
 * Does not: parse a language inside the text.
 *
 * Package: core. May import: core, value.
 */

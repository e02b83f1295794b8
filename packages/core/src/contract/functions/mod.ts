/**
 * The functions that every contract may call, over texts, times, sizes and sums. The folders below implement them.
 *
 * Promises: every function has examples, which run as tests.
 *
 * Does not: read a text in a language of its own, such as a shell command or a URL: packages/readers does.
 *
 * May import: core, functions/text, functions/values.
 */

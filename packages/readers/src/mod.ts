/**
 * Functions that read a text in a language of its own: shell commands, SQL, URLs, addresses, paths, patches. The
 * compiler of contracts gets them as a table.
 *
 * Promises: each function has examples, which run as tests. A text that programs may read differently is an error, so
 * the verdict is BLOCK.
 *
 * Does not: run, open or look up anything.
 */
export { functions } from "./functions.ts";
export { isPublicText, loadAddresses } from "./net/address.ts";

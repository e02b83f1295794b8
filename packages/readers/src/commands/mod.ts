/**
 * The readers of command lines by a table of forms: which form a command fits, what it does, and which files its words name.
 *
 * Promises: a command is ALLOW only if a form lists each of its options and words. A word that no form explains counts as a
 * file that is read and written.
 *
 * Does not: look at the disk, or know programs. The tables know those.
 *
 * May import: path, shell.
 */

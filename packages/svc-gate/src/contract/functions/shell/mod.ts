/**
 * The reader of shell commands: the programs, files and scripts that a command line names.
 *
 * Promises: every part of the command is either read or reported as unknown.
 *
 * Does not: run anything, or look at files.
 *
 * Package: readers. May import: core, value.
 */

/**
 * The reader of shell commands: the programs, files and scripts that a command line names.
 *
 * Promises: a spelling that it does not know is an error; `unknown` lists words that are known only at run time.
 *
 * Does not: run anything, or look at files.
 *
 * May import: path.
 */

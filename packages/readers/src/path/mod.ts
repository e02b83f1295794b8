/**
 * Readers of file paths, of patterns for paths, and of the patches that coding agents write.
 *
 * Promises: a path is judged as text; a path or patch that programs could read differently is an error.
 *
 * Does not: look at a file system, so a link may lead elsewhere.
 *
 * May import: nothing.
 */

/**
 * The program `svc-gate`: the command line, which puts the other packages together.
 *
 * Promises: a command loads its code when it is called.
 *
 * Does not: decide, serve or read anything itself.
 */

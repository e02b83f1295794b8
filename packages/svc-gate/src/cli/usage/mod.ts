/**
 * The command line: names, options and help of each command, which is loaded when it is called.
 *
 * Promises: help and mistakes load no command.
 *
 * Does not: implement a command.
 *
 * Package: gate. May import: approvals, explain, export, replay, report, test, verify.
 */

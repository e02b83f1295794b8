/**
 * Names, options and help of most commands; the code of a command is loaded when it is called.
 *
 * Promises: help and unknown options load no command.
 *
 * Does not: implement a command.
 *
 * May import: nothing.
 */

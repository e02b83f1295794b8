/**
 * The table of commands: forms of command lines, read from packs and from the `commands` of a contract.
 *
 * Promises: a form that is ALLOW names everything that it permits. A pack can only be read whole: each mistake is reported
 * with its position.
 *
 * Does not: read command lines. The reader of shells compares them with the table.
 *
 * May import: text.
 */

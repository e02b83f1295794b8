/**
 * The pages of the console, one file each, and their parts.
 *
 * Promises: only the inbox and the sign-in load with the console; filters are in the address.
 *
 * Does not: keep state between pages, except drafts of comments.
 *
 * May import: nothing.
 */

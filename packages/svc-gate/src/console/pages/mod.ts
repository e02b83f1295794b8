/**
 * The pages of the console, one file each.
 *
 * Promises: a page is loaded when it is opened, and its filters are in its address.
 *
 * Does not: keep state between pages.
 *
 * Package: console. May import: nothing.
 */

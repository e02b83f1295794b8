/**
 * The pages for people who decide, as one program for browsers.
 *
 * Promises: a text of an agent is shown as text, never as markup.
 *
 * Does not: decide what a person may do: the gate refuses.
 *
 * Package: console.
 */

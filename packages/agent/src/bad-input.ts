/** A mistake that the user can correct: the message says what, where and what to do. The exit code is 2. */
export class InputError extends Error {}

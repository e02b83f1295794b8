/**
 * The operators' commands, and the code that the commands of other packages share with them.
 *
 * Promises: an error is printed and a command ends in the same way in every package.
 *
 * Does not: load another command, or the workbench. Ledgers have ledger-source.ts.
 */
export type { Command } from "commander";
export { NoSuchFile, whyNot } from "../server/errors.ts";
export { version } from "../server/version.ts";
export { counted } from "./counted.ts";
export { type FileKind, fileKinds, schemaText } from "./file-schemas.ts";
export { io } from "./io.ts";
export { BadInput, notWritten, readText, type Outcome } from "./outcome.ts";
export { calls } from "./run.ts";

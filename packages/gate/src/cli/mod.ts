/**
 * The code that the commands of the workbench share with those of the service.
 *
 * Promises: an error is printed and a command ends in the same way in both packages.
 *
 * Does not: serve, open ledgers, or load the workbench.
 *
 * Package: gate.
 */
export type { Command } from "commander";
export { NoSuchFile, whyNot } from "../server/errors.ts";
export { version } from "../server/version.ts";
export { type FileKind, fileKinds, schemaText } from "./file-schemas.ts";
export { io } from "./io.ts";
export { BadInput, type Outcome } from "./outcome.ts";
export { calls } from "./run.ts";

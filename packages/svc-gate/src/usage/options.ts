import { Option, type Command } from "commander";
import { io } from "../../../gate/src/cli/io.ts";

/** The data folder of a command whose argument may name it too: the argument takes precedence. */
export interface FolderOption {
  readonly dataDir: string;
}

/** The option that names the data folder. */
export function inFolder(meaning = "the data folder"): Option {
  return new Option("--data-dir <folder>", meaning).default(io().env["SVC_DATA_DIR"] ?? "./data");
}

/** The option that names a ledger in a database. */
export function inDatabase(
  meaning = "a ledger in SVC_DATABASE_URL, instead of the folder: the root's, or a tenant's",
): Option {
  return new Option("--database [tenant]", meaning);
}

/** The options of a command that an operator, or a person who decides, gives to a gate. */
export function addOperatorOptions(
  command: Command,
  folder = "the gate's data folder",
  key = "with --url: a file with a key of scope admin (default: SVC_ADMIN_KEY)",
): Command {
  return command
    .addOption(inFolder(folder))
    .option("--url <url>", "a gate elsewhere, instead of the folder")
    .option("--key-file <file>", key)
    .option("--tenant <id>", "a tenant, instead of the root")
    .option("--json", "for programs", false);
}

/** The options of a command that restores a ledger. */
export function addRestoreOptions(command: Command): Command {
  return command
    .addOption(inFolder("the gate's data folder"))
    .option("--pin <file>", "the head pin, if it is not in the folder", io().env["SVC_PIN"])
    .option("--seen <files...>", "collected checkpoints (SVC_SEEN); the file sinks of SVC_SINKS are read too");
}

/** The options of a command that reads receipts. */
export function addReceiptOptions(command: Command): Command {
  return command
    .argument("[folder]", "the data folder, instead of --data-dir")
    .addOption(inFolder())
    .addOption(inDatabase())
    .option("--url <url>", "a running gate, instead of the folder")
    .option("--key-file <file>", "with --url: a file with a key (default: SVC_API_KEY)")
    .option("--file <file>", "receipts from GET /receipts, one or a page on each line, instead of the folder")
    .option("--rules <files...>", "with --file: bodies of GET /rules, for the contracts that the receipts name");
}

/** An option that may be repeated. */
export function many(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

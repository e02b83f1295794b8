import { Option, type Command } from "commander";

/** The data folder of a command whose argument may name it too: the argument takes precedence. */
export interface FolderOption {
  readonly dataDir: string;
}

/** The option that names the data folder. */
export function inFolder(meaning = "the data folder"): Option {
  return new Option("--data-dir <folder>", meaning).default(process.env["SVC_DATA_DIR"] ?? "./data");
}

/** The option that names a ledger in a database. */
export function inDatabase(
  meaning = "a ledger in SVC_DATABASE_URL, in place of the folder: the root's, or a tenant's",
): Option {
  return new Option("--database [tenant]", meaning);
}

/** The options of a command that an operator gives to a gate. */
export function operating(command: Command): Command {
  return command
    .addOption(inFolder("the gate's data folder"))
    .option("--url <url>", "a gate elsewhere, in place of the folder")
    .option("--key-file <file>", "with --url: a file that holds a key of scope admin (SVC_ADMIN_KEY otherwise)")
    .option("--tenant <id>", "of a tenant, in place of the root")
    .option("--json", "for programs", false);
}

/** The options of a command that restores a ledger. */
export function restoring(command: Command): Command {
  return command
    .addOption(inFolder("the gate's data folder"))
    .option("--pin <file>", "the head pin, where it is not in the folder", process.env["SVC_PIN"])
    .option(
      "--seen <files...>",
      "checkpoints that somebody outside has collected (SVC_SEEN); file sinks of SVC_SINKS are asked too",
    );
}

/** The options of a command that reads receipts. */
export function placed(command: Command): Command {
  return command
    .argument("[folder]", "the data folder, in place of --data-dir")
    .addOption(inFolder())
    .addOption(inDatabase())
    .option("--url <url>", "a running gate, in place of the folder")
    .option("--key-file <file>", "with --url: a file that holds a key (SVC_API_KEY otherwise)")
    .option("--file <file>", "receipts as GET /receipts shows them, one or a page on each line, in place of the folder")
    .option("--rules <files...>", "with --file: bodies of GET /rules, for the contracts that the receipts name");
}

/** An option that may be repeated. */
export function many(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

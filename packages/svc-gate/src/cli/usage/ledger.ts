import type { Command } from "commander";
import { addExport } from "../export/usage.ts";
import { run } from "../run.ts";
import { inDatabase, inFolder, many, restoring, type FolderOption } from "./options.ts";
import type { BackupOptions } from "../backup.ts";
import type { MigrateOptions } from "../migrate.ts";
import type { RestoreOptions } from "../restore.ts";
import type { ResumeOptions } from "../resume.ts";
import type { KeygenOptions } from "../keygen.ts";
import type { ProveOptions } from "../prove.ts";
import type { TrustedKeys } from "../trusted-keys.ts";
import type { VerifyOptions } from "../verify/command.ts";

/** Adds the commands for ledgers: verify, prove, export, back up, restore. */
export function addLedgerCommands(program: Command): void {
  addProve(program);
  addKeygen(program);
  addVerify(program);
  addExport(program);
  addBackup(program);
  addRestore(program);
  addResume(program);
  addMigrate(program);
}

function addProve(program: Command): void {
  program
    .command("prove")
    .description(
      "write a proof that a row is in the ledger, in one file that anyone can verify offline (C2SP tlog-proof)",
    )
    .argument("<row>", "the row's number: `receipt.seq` of the answer")
    .argument("[folder]", "the data folder, in place of --data-dir")
    .addOption(inFolder())
    .option("--out <file>", "where to; by default <row>.tlog-proof here, and `-` is the standard output")
    .addOption(inDatabase())
    .addHelpText("after", "\nA proof is verified with `svc-gate verify <file> --key <verifier key>`.")
    .action((row: string, folder: string | undefined, options: ProveOptions & FolderOption) =>
      run(async () => (await import("../prove.ts")).proveCommand(row, folder ?? options.dataDir, options)),
    );
}

function addKeygen(program: Command): void {
  program
    .command("keygen")
    .description("the key that signs the ledger's heads: make it, show how others know it, rotate it")
    .addOption(inFolder())
    .option(
      "--signing-key <file>",
      "the key's file; signing.key in the data folder by default",
      process.env["SVC_SIGNING_KEY"],
    )
    .option("--rotate", "make another one; the one before signs beside it until --retire", false)
    .option("--retire", "the one before signs no more", false)
    .option("--name <ledger>", "the ledger's name, where its folder is not here")
    .addHelpText(
      "after",
      "\nWhat is changed takes effect at the gate's next start. The verifier key that is shown is for everybody.",
    )
    .action((options: KeygenOptions) => run(async () => (await import("../keygen.ts")).keygenCommand(options)));
}

function addVerify(program: Command): void {
  program
    .command("verify")
    .description("walk a ledger in a data folder, served or not; or verify an export, or a proof's file, offline")
    .argument("[folder]", "a data folder in place of --data-dir, the folder of an export, or a .tlog-proof file")
    .addOption(inFolder())
    .option("--json", "for programs", false)
    .option("--pin <file>", "of a data folder: its head pin, where it is not in the folder (SVC_PIN)")
    .option("--chain", "the chain alone: twice as fast, and blind to changed evidence", false)
    .option("--deep", "decide every check again too; of a ledger, fold the counters again", false)
    .option(
      "--seen <file>",
      "of a gate's own ledger: collected checkpoints it must have (repeated too; SVC_SEEN)",
      many,
      [],
    )
    .addOption(inDatabase())
    .addHelpText(
      "after",
      "\nThe file sinks of SVC_SINKS are asked how far a gate's own ledger went." +
        "\nExit code 0: the ledger is whole. 1: it is broken, or does not agree with itself; the first row is named. 2: there is none.",
    )
    .option("--key <verifier key>", "of an export or a proof: who must have signed it (may be repeated)", many, [])
    .option(
      "--witness <verifier key>",
      "of an export or a proof: whose cosignature is looked for (repeated too)",
      many,
      [],
    )
    .action((path: string | undefined, options: VerifyOptions & TrustedKeys & FolderOption) =>
      run(async () => (await import("../verify/path.ts")).verifyPathCommand(path, options.dataDir, options)),
    );
}

function addBackup(program: Command): void {
  program
    .command("backup")
    .description(
      "copy the ledgers of a data folder into a new one, beside a gate that is serving them, and verify the copy",
    )
    .argument("<to>", "the folder to make")
    .addOption(inFolder("the gate's data folder"))
    .option("--tenant <id>", "of a tenant alone; by default the root's and every tenant's")
    .option("--with-signing-key", "the key that signs heads too: who reads the backup can then sign them", false)
    .option("--json", "for programs", false)
    .addHelpText(
      "after",
      "\nExit code 0: copied, flushed and found whole. 2: it cannot be, and nothing is left behind." +
        "\n\nExample:\n  svc-gate backup /srv/backup/2026-11-21",
    )
    .action((to: string, options: BackupOptions) =>
      run(async () => (await import("../backup.ts")).backupCommand(to, options)),
    );
}

function addRestore(program: Command): void {
  restoring(
    program
      .command("restore")
      .description("put a backup into a data folder without a ledger, unless more was seen of it than the backup has")
      .argument("<backup>", "a folder that `svc-gate backup` made")
      .option("--tenant <id>", "of a tenant alone; by default all that the backup has"),
  )
    .addHelpText(
      "after",
      "\nExit code 0: restored. 2: refused, and nothing was changed." +
        "\n\nExample:\n  svc-gate restore /srv/backup/2026-11-21 --data-dir /srv/gate",
    )
    .action((backup: string, options: RestoreOptions) =>
      run(async () => (await import("../restore.ts")).restoreCommand(backup, options)),
    );
}

function addResume(program: Command): void {
  restoring(
    program
      .command("resume")
      .description(
        "continue after data loss: record the loss; rules that use affected counters block until these are known again",
      )
      .argument("[backup]", "a backup to put into the folder first; by default what lies there goes on")
      .option("--after-restore", "the ledger is behind or beside its head pin, and that is how it goes on", false)
      .requiredOption("--reason <text>", "why, for the row")
      .option("--by <name>", "who does it; by default this user")
      .option(
        "--reset <counter>",
        "CONTRACT.COUNTER counts from zero from this row on (repeatable); later too, without --after-restore",
        many,
        [],
      )
      .option("--accept <what>", "signing-key: the key that signed heads is lost, and a new one is made")
      .option("--tenant <id>", "of a tenant, in place of the root"),
  )
    .addHelpText(
      "after",
      "\nThe gate is stopped for it. Rules that read a counter block until its window has passed, or it is reset." +
        "\nExit code 0: done, start the gate. 2: refused, with why." +
        '\n\nExample:\n  svc-gate resume --after-restore /srv/backup/2026-11-21 --reason "disk lost, INC-204"',
    )
    .action((backup: string | undefined, options: ResumeOptions) =>
      run(async () => (await import("../resume.ts")).resumeCommand(backup, options)),
    );
}

function addMigrate(program: Command): void {
  program
    .command("migrate")
    .description("bring the schema of a PostgreSQL up to this version, beside gates that are serving from it")
    .option("--database-url <url>", "as its owner (SVC_DATABASE_URL)", process.env["SVC_DATABASE_URL"])
    .option("--role <name>", "the role that gates connect as: it is given what it needs, and nothing more")
    .option("--first-key <file>", "if the database has no API key: make one, and write it to this file (mode 0600)")
    .addOption(inFolder("with --first-key: the folder that holds signing.key"))
    .addHelpText("after", "\nExit code 0: done. 2: it cannot be.\n\nExample:\n  svc-gate migrate --role svc_gate")
    .action((options: MigrateOptions) => run(async () => (await import("../migrate.ts")).migrateCommand(options)));
}

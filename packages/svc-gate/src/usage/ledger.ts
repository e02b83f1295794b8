import type { Command } from "commander";
import { io } from "../../../gate/src/cli/io.ts";
import { calls, run } from "../../../gate/src/cli/run.ts";
import { inDatabase, inFolder, many, addRestoreOptions, type FolderOption } from "./options.ts";
import type { ProveOptions } from "../../../gate/src/cli/prove.ts";

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
    .argument("[folder]", "the data folder, instead of --data-dir")
    .addOption(inFolder())
    .option("--out <file>", "the file to write; by default <row>.tlog-proof here, and `-` is standard output")
    .addOption(inDatabase())
    .addHelpText("after", "\nA proof is verified with `svc-gate verify <file> --key <verifier key>`.")
    .action((row: string, folder: string | undefined, options: ProveOptions & FolderOption) =>
      run(async () =>
        (await import("../../../gate/src/cli/prove.ts")).proveCommand(row, folder ?? options.dataDir, options),
      ),
    );
}

function addKeygen(program: Command): void {
  program
    .command("keygen")
    .description("create, show or rotate the key that signs the ledger's heads")
    .addOption(inFolder())
    .option(
      "--signing-key <file>",
      "the key's file; signing.key in the data folder by default",
      io().env["SVC_SIGNING_KEY"],
    )
    .option("--rotate", "create another one; the previous one signs too until --retire", false)
    .option("--retire", "the previous one stops signing", false)
    .option("--name <ledger>", "the ledger's name, if its folder is not here")
    .addHelpText("after", "\nChanges take effect at the gate's next start. The verifier key that is shown is public.")
    .action(calls(async () => (await import("../../../gate/src/cli/keygen.ts")).keygenCommand));
}

function addVerify(program: Command): void {
  program
    .command("verify")
    .description("walk a ledger in a data folder, served or not; or verify an export, or a proof's file, offline")
    .argument("[folder]", "a data folder instead of --data-dir, the folder of an export, or a .tlog-proof file")
    .addOption(inFolder())
    .option("--json", "for programs", false)
    .option("--pin <file>", "for a data folder: its head pin, if it is not in the folder (SVC_PIN)")
    .option("--chain", "only the chain: twice as fast, but does not detect changed evidence", false)
    .option("--deep", "decide every check again too; for a ledger, fold the counters again", false)
    .option(
      "--seen <file>",
      "for a gate's own ledger: collected checkpoints that it must match (may be repeated; SVC_SEEN)",
      many,
      [],
    )
    .addOption(inDatabase())
    .addHelpText(
      "after",
      "\nThe command asks the file sinks of SVC_SINKS how far a gate's own ledger went." +
        "\nExit code 0: the ledger is intact. 1: it is broken or inconsistent; the first bad row is named. 2: no ledger was found.",
    )
    .option(
      "--key <verifier key>",
      "for an export or a proof: the key that must have signed it (may be repeated)",
      many,
      [],
    )
    .option(
      "--witness <verifier key>",
      "for an export or a proof: a witness whose cosignature is looked for (may be repeated)",
      many,
      [],
    )
    .action(calls(async () => (await import("../../../records/src/verify/path.ts")).verifyPathCommand));
}

function addExport(program: Command): void {
  program
    .command("export")
    .description(
      "write a folder that anyone can verify offline; or, with --format, its readable fields for people and programs",
    )
    .argument("<to>", "the folder; with --format a file, a folder, or `-` for standard output")
    .addOption(inFolder())
    .addOption(inDatabase())
    .option("--cosigned", "through the latest head that witnesses have cosigned", false)
    .option("--format <format>", "csv or jsonl: readable fields, which prove nothing")
    .option("--from <row>", "with --format: the first row")
    .option("--to <row>", "with --format: the last row")
    .option("--json", "for programs", false)
    .addHelpText(
      "after",
      "\nA repeated export adds new rows and removes erased data. `svc-gate verify` checks it, and so do the" +
        "\nverifiers in Python and JavaScript that come with the gate: docs/guides/export.md." +
        "\nExit code 0: done. 2: refused; an earlier export in the folder stays valid." +
        "\n\nExamples:\n  svc-gate export ./export\n  svc-gate export - --format jsonl --from 1001",
    )
    .action(calls(async () => (await import("../../../records/src/export/command.ts")).exportCommand));
}

function addBackup(program: Command): void {
  program
    .command("backup")
    .description("copy the ledgers of a data folder into a new one, while a gate is serving them, and verify the copy")
    .argument("<to>", "the folder to create")
    .addOption(inFolder("the gate's data folder"))
    .option("--tenant <id>", "only a tenant's ledger; by default the root's and every tenant's")
    .option(
      "--with-signing-key",
      "also copy the key that signs heads: anyone who can read the backup can then sign them",
      false,
    )
    .option("--json", "for programs", false)
    .addHelpText(
      "after",
      "\nExit code 0: copied, flushed and verified. 2: failed, and nothing is left behind." +
        "\n\nExample:\n  svc-gate backup /srv/backup/2026-11-21",
    )
    .action(calls(async () => (await import("../../../gate/src/cli/backup.ts")).backupCommand));
}

function addRestore(program: Command): void {
  addRestoreOptions(
    program
      .command("restore")
      .description(
        "copy a backup into a data folder without a ledger, unless an anchor has seen rows that the backup lacks",
      )
      .argument("<backup>", "a folder that `svc-gate backup` made")
      .option("--tenant <id>", "only a tenant's ledger; by default every ledger of the backup"),
  )
    .addHelpText(
      "after",
      "\nExit code 0: restored. 2: refused, and nothing was changed." +
        "\n\nExample:\n  svc-gate restore /srv/backup/2026-11-21 --data-dir /srv/gate",
    )
    .action(calls(async () => (await import("../../../gate/src/cli/restore.ts")).restoreCommand));
}

function addResume(program: Command): void {
  addRestoreOptions(
    program
      .command("resume")
      .description(
        "continue after data loss: record the loss; rules that use affected counters block until these are known again",
      )
      .argument("[backup]", "a backup to copy into the folder first; by default the folder's own ledger continues")
      .option(
        "--after-restore",
        "continue although the ledger lacks rows of its head pin, or has forked from it",
        false,
      )
      .requiredOption("--reason <text>", "the reason, for the row")
      .option("--by <name>", "the person who does it; by default this user")
      .option(
        "--reset <counter>",
        "CONTRACT.COUNTER counts from zero, starting with this row (may be repeated; also later, without --after-restore)",
        many,
        [],
      )
      .option("--accept <what>", "signing-key: the key that signed heads is lost; create a new one")
      .option("--tenant <id>", "a tenant, instead of the root"),
  )
    .addHelpText(
      "after",
      "\nStop the gate first. With --after-restore every call is stopped until `svc-gate stop --lift`." +
        "\nRules that read a counter block until its window has passed, or it is reset." +
        "\nExit code 0: done, start the gate. 2: refused, with the reason." +
        '\n\nExample:\n  svc-gate resume --after-restore /srv/backup/2026-11-21 --reason "disk lost, INC-204"',
    )
    .action(calls(async () => (await import("../../../gate/src/cli/resume.ts")).resumeCommand));
}

function addMigrate(program: Command): void {
  program
    .command("migrate")
    .description("bring the schema of a PostgreSQL up to this version, while gates are serving from it")
    .option("--database-url <url>", "as its owner (SVC_DATABASE_URL)", io().env["SVC_DATABASE_URL"])
    .option("--role <name>", "the role with which gates connect: it gets only the privileges that it needs")
    .option("--first-key <file>", "if the database has no API key: create one, and write it to this file (mode 0600)")
    .addOption(inFolder("with --first-key: the folder with signing.key"))
    .addHelpText("after", "\nExit code 0: done. 2: failed.\n\nExample:\n  svc-gate migrate --role svc_gate")
    .action(calls(async () => (await import("../../../gate/src/cli/migrate.ts")).migrateCommand));
}

import type { Command } from "commander";
import { run } from "../run.ts";
import { inDatabase, inFolder } from "./options.ts";
import type { ExportOptions } from "../export/command.ts";

/** Adds `export` to the command line. */
export function addExport(program: Command): void {
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
    .action((to: string, options: ExportOptions) =>
      run(async () => (await import("../export/command.ts")).exportCommand(to, options)),
    );
}

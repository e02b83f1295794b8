import type { Command } from "commander";
import { calls, run } from "../../../gate/src/cli/run.ts";
import { inDatabase, inFolder, addReceiptOptions, type FolderOption } from "./options.ts";
import type { ReplayCommandOptions } from "../../../records/src/replay/command.ts";
import type { ReportOptions } from "../../../records/src/report/command.ts";

/** Adds the commands for contracts before they are in force, and for receipts under them. */
export function addContractCommands(program: Command): void {
  addCheck(program);
  addTest(program);
  addExplain(program);
  addReplay(program);
  addReport(program);
  addInit(program);
}

function addCheck(program: Command): void {
  program
    .command("check")
    .description("compile a mandate or a contract and report every error, with file, line, column and a hint")
    .argument("[file]", "a mandate or a contract", "mandate.yaml")
    .option("--json", "for editors and CI", false)
    .addHelpText(
      "after",
      "\nExit code 0: no errors. 2: errors, or the file cannot be read.\n\nExample:\n  svc-gate check contracts/payments.yaml",
    )
    .action(calls(async () => (await import("../../../gate/src/cli/check.ts")).checkCommand));
}

function addTest(program: Command): void {
  program
    .command("test")
    .description(
      "decide the calls of *.test.yaml files as the gate would, and compare the results with the expected ones",
    )
    .argument(
      "[paths...]",
      "test files, contracts with one next to them, or folders (default: contracts, else the current folder)",
    )
    .option("--json", "for programs", false)
    .option("--junit <file>", "also write a report for CI, in JUnit's XML")
    .option("--coverage", "show which conditions were true and false, and which tools have no test", false)
    .option("--min <percent>", "fail if fewer outcomes are covered")
    .option("--filter <text>", "only cases whose name, or whose file's title, contains the text")
    .option("--watch", "run again when a test, a contract or a mandate changes", false)
    .addHelpText(
      "after",
      "\nExit code 0: all passed. 1: a case failed, or too little is covered. 2: no tests, or they cannot be read." +
        "\n\nExample:\n  svc-gate test contracts --coverage --min 100",
    )
    .action(calls(async () => (await import("../../../workbench/src/test/command.ts")).testCommand));
}

function addExplain(program: Command): void {
  program
    .command("explain")
    .description("explain a verdict: each rule with the values of its operands, counters and positions")
    .argument("[call]", "a file with the body of a POST /check; - reads standard input")
    .option("--contract <file>", "the contract or mandate that decides", "mandate.yaml")
    .option("--counters <json>", 'values of counters, such as {"attempts": 5}; others are 0')
    .option("--now <moment>", "the time of the check; by default, now")
    .option("--key <name>", "the name of the caller's API key", "default")
    .option("--mode <mode>", "the mode of the gate", "enforce")
    .option("--receipt <number>", "a receipt instead of a call: with its contract, its time and its counters")
    .addOption(inFolder("with --receipt: the data folder"))
    .addOption(inDatabase("with --receipt: a ledger in SVC_DATABASE_URL, the root's or a tenant's"))
    .option("--url <url>", "with --receipt: a running gate, instead of the folder")
    .option("--key-file <file>", "with --url: a file with a key (default: SVC_API_KEY)")
    .option("--json", "for programs", false)
    .addHelpText(
      "after",
      "\nExit code 0: done. 1: the result differs from the receipt. 2: the input cannot be used." +
        "\n\nExamples:\n  svc-gate explain call.json --contract contracts/payments.yaml\n  svc-gate explain --receipt 17",
    )
    .action(calls(async () => (await import("../../../records/src/explain/command.ts")).explainCommand));
}

function addReplay(program: Command): void {
  addReceiptOptions(program.command("replay"))
    .description("decide recorded receipts again: under the contracts in force then, or under another contract")
    .option(
      "--contract <file>",
      "a contract or mandate to decide under; without it each receipt must agree with itself",
    )
    .option("--mode <mode>", "with --contract: as if every answer had been given in this mode")
    .option("--sum <member>", "with --contract: add up a member of the changed calls, such as input.amount")
    .option(
      "--since <when>",
      "with --contract: decide receipts since then: 24h or 7d ago, a day, or a time in RFC 3339",
    )
    .option("--until <when>", "with --contract: decide receipts before then")
    .option("--last <number>", "with --contract: only decide the last N of these rows")
    .option("--examples <number>", "receipts to show for each change", "3")
    .option("--json", "for programs", false)
    .addHelpText(
      "after",
      "\nA recorded agent does not react to another answer: the calls after a changed verdict stay as they were recorded." +
        "\nExit code 0: nothing differs. 1: a verdict differs. 2: the input cannot be used." +
        "\n\nExample:\n  svc-gate replay ./data --contract contracts/payments-next.yaml --since 7d --sum input.amount",
    )
    .action((folder: string | undefined, options: ReplayCommandOptions & FolderOption) =>
      run(async () =>
        (await import("../../../records/src/replay/command.ts")).replayCommand(folder ?? options.dataDir, options),
      ),
    );
}

function addReport(program: Command): void {
  addReceiptOptions(program.command("report"))
    .description("show the calls that were refused or parked, or would have been: by rule, with examples")
    .option("--from <number>", "the first receipt to count", "1")
    .option("--since <when>", "count receipts since then: 24h or 7d ago, a day, or a time in RFC 3339")
    .option("--until <when>", "count receipts before then")
    .option("--last <number>", "only count the last N of these rows")
    .option("--examples <number>", "receipts to show for each rule", "2")
    .option("--json", "for programs", false)
    .addHelpText(
      "after",
      "\nIt also counts approvals by rule: those that people were asked for, and those that enforce mode would need." +
        "\n\nExit code 0, also if calls were refused.\n\nExample:\n  svc-gate report ./data --since 7d",
    )
    .action((folder: string | undefined, options: ReportOptions & FolderOption) =>
      run(async () =>
        (await import("../../../records/src/report/command.ts")).reportCommand(folder ?? options.dataDir, options),
      ),
    );
}

function addInit(program: Command): void {
  program
    .command("init")
    .description("write a mandate and a starter contract; nothing is overwritten")
    .argument("[folder]", "where to", ".")
    .action(calls(async () => (await import("../../../gate/src/cli/init.ts")).initCommand));
}

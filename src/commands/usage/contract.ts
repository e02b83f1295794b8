import type { Command } from "commander";
import { run } from "../run.ts";
import { inFolder, placed, type FolderOption } from "./options.ts";
import type { DiffOptions } from "../diff.ts";
import type { ExplainOptions } from "../explain/command.ts";
import type { AnalyzeOptions } from "../analyze.ts";
import type { ReplayOptions } from "../replay/command.ts";
import type { ReportOptions } from "../report.ts";
import type { ImportOptions } from "../import-tools/command.ts";
import type { TestOptions } from "../test/command.ts";

/** Adds what is done with contracts before they are in force, and with receipts under them. */
export function addContractCommands(program: Command): void {
  program
    .command("check")
    .description("compile a mandate or a contract: every error at once, with file, line, column and a hint")
    .argument("[file]", "a mandate or a contract", "mandate.yaml")
    .option("--json", "for editors and CI", false)
    .addHelpText(
      "after",
      "\nExit code 0: no errors. 2: errors, or the file cannot be read.\n\nExample:\n  svc-gate check contracts/payments.yaml",
    )
    .action((file: string, options: { json: boolean }) =>
      run(async () => (await import("../check.ts")).checkCommand(file, options)),
    );

  program
    .command("test")
    .description("decide the calls of *.test.yaml files as the gate would, and compare with what they expect")
    .argument(
      "[paths...]",
      "test files, contracts with one beside them, or folders (contracts, else the current folder)",
    )
    .option("--json", "for programs", false)
    .option("--junit <file>", "write a report for CI as well, in JUnit's XML")
    .option("--coverage", "which conditions were seen to be true and to be false, and which tools have no test", false)
    .option("--min <percent>", "fail where fewer outcomes are covered")
    .option("--filter <text>", "only cases whose name, or whose file's title, holds the text")
    .option("--watch", "run again when a test, a contract or a mandate changes", false)
    .addHelpText(
      "after",
      "\nExit code 0: all passed. 1: a case failed, or too little is covered. 2: no tests, or they cannot be read." +
        "\n\nExample:\n  svc-gate test contracts --coverage --min 100",
    )
    .action((paths: string[], options: TestOptions) =>
      run(async () => (await import("../test/command.ts")).testCommand(paths, options)),
    );

  program
    .command("fmt")
    .description("reformat contracts, mandates and test files in the standard layout; comments and meaning are kept")
    .argument("[files...]", "files, or folders of them; `-` reads standard input and prints", ["."])
    .option("--check", "change nothing, name the files that would change", false)
    .addHelpText(
      "after",
      "\nThe digest of a contract is that of its text: a file that changes has another one, and so have the receipts." +
        "\nExit code 0: done. 1: with --check, a file would change. 2: a file cannot be read, and was left alone." +
        "\n\nExample:\n  svc-gate fmt --check contracts",
    )
    .action((files: string[], options: { check: boolean }) =>
      run(async () => (await import("../fmt/command.ts")).fmtCommand(files, options)),
    );

  program
    .command("analyze")
    .description(
      "find what is wrong with contracts that compile: rules that never fire, limits that can be escaped, names alike",
    )
    .argument("[file]", "a mandate or a contract", "mandate.yaml")
    .option("--json", "for editors and CI", false)
    .option("--deny", "notes fail as warnings do", false)
    .addHelpText(
      "after",
      "\nA comment before a line allows a finding there: # svc-gate: allow never-fires because ..." +
        "\nExit code 0: no warnings. 1: warnings. 2: errors, or the file cannot be read." +
        "\n\nExample:\n  svc-gate analyze contracts/payments.yaml",
    )
    .action((file: string, options: AnalyzeOptions) =>
      run(async () => (await import("../analyze.ts")).analyzeCommand(file, options)),
    );

  program
    .command("schema")
    .description("print the JSON Schema of a kind of file, for editors: contract, mandate or test")
    .argument("<kind>", "contract, mandate or test")
    .addHelpText(
      "after",
      "\nA file names it in its first line:\n  # yaml-language-server: $schema=.svc-gate/contract.schema.json" +
        "\n\nExample:\n  svc-gate schema contract > contract.schema.json",
    )
    .action((kind: string) => run(async () => (await import("../schema.ts")).schemaCommand(kind)));

  program
    .command("import-tools")
    .description(
      "write a contract that lists the tools of a source, all refused; or say where a contract has drifted from it",
    )
    .argument(
      "[source]",
      "an MCP tools/list result or a list of functions (JSON), or an OpenAPI 3 document (JSON, YAML)",
    )
    .option("--stdio <command>", "start an MCP server instead and ask it; no shell, and it is ended in any case")
    .option("--timeout <seconds>", "how long the server has", "30")
    .option("--contract <file>", "a contract or a mandate: write only the tools that it lacks")
    .option("--check", "with --contract: which tools of the source are new, gone or changed", false)
    .option("--name <name>", "what the written contract is called")
    .option("--out <file>", "write there; nothing is overwritten")
    .option("--json", "for programs", false)
    .addHelpText(
      "after",
      "\nWhat the language cannot say of a schema is left open; a comment and a warning name it." +
        "\nExit code 0: done. 1: with --check, they differ. 2: the source or the contract cannot be read." +
        "\n\nExample:\n  svc-gate import-tools --stdio 'npx -y some-mcp-server' --contract contracts/mail.yaml --check",
    )
    .action((source: string | undefined, options: ImportOptions) =>
      run(async () => (await import("../import-tools/command.ts")).importToolsCommand(source, options)),
    );

  program
    .command("lsp")
    .description("a language server for contracts, mandates and test files, on standard input and output")
    .option("--stdio", "the one way to talk to it; editors say it by habit", true)
    .addHelpText("after", "\nHow editors start it is in docs/editor.md.")
    .action(() => run(async () => (await import("../lsp/command.ts")).lspCommand()));

  program
    .command("explain")
    .description("explain a verdict: each rule with the values of its operands, counters and places")
    .argument("[call]", "a file with the body of a POST /check; - reads standard input")
    .option("--contract <file>", "the contract or mandate that decides", "mandate.yaml")
    .option("--counters <json>", 'what counters stand at, such as {"attempts": 5}; others at 0')
    .option("--now <moment>", "the moment of the check; by default, this one")
    .option("--key <name>", "the name of the API key that asks", "default")
    .option("--mode <mode>", "the mode of the gate", "enforce")
    .option("--receipt <number>", "a receipt in place of a call: with its contract, its moment and its counters")
    .addOption(inFolder("with --receipt: the data folder"))
    .option("--database [tenant]", "with --receipt: a ledger in SVC_DATABASE_URL, the root's or a tenant's")
    .option("--url <url>", "with --receipt: a running gate, in place of the folder")
    .option("--key-file <file>", "with --url: a file that holds a key (SVC_API_KEY otherwise)")
    .option("--json", "for programs", false)
    .addHelpText(
      "after",
      "\nExit code 0. 1: a receipt does not come to what it says. 2: what was given cannot be used." +
        "\n\nExamples:\n  svc-gate explain call.json --contract contracts/payments.yaml\n  svc-gate explain --receipt 17",
    )
    .action((file: string | undefined, options: ExplainOptions) =>
      run(async () => (await import("../explain/command.ts")).explainCommand(file, options)),
    );

  placed(program.command("replay"))
    .description("decide recorded receipts again: under what was in force, or as if another contract had been")
    .option(
      "--contract <file>",
      "a contract or mandate to decide under; without it each receipt must agree with itself",
    )
    .option("--mode <mode>", "with --contract: as if every answer had been given in this mode")
    .option("--sum <member>", "with --contract: add up a member of what changes, such as input.amount")
    .option(
      "--since <when>",
      "with --contract: decide receipts from then on: 24h or 7d ago, a day, or a moment in RFC 3339",
    )
    .option("--until <when>", "with --contract: decide receipts before then")
    .option("--last <number>", "with --contract: decide the last so many of these rows")
    .option("--examples <number>", "receipts shown of each change", "3")
    .option("--json", "for programs", false)
    .addHelpText(
      "after",
      "\nA recorded agent does not react to another answer: what came after a changed verdict is what really came." +
        "\nExit code 0: nothing differs. 1: a verdict differs. 2: what was given cannot be used." +
        "\n\nExample:\n  svc-gate replay ./data --contract contracts/payments-next.yaml --since 7d --sum input.amount",
    )
    .action((folder: string | undefined, options: ReplayOptions & FolderOption) =>
      run(async () => (await import("../replay/command.ts")).replayCommand(folder ?? options.dataDir, options)),
    );

  placed(program.command("report"))
    .description("what the receipts say was, or would have been, refused or held: by rule, with examples")
    .option("--from <number>", "the first receipt to count", "1")
    .option("--since <when>", "count receipts from then on: 24h or 7d ago, a day, or a moment in RFC 3339")
    .option("--until <when>", "count receipts before then")
    .option("--last <number>", "count the last so many of these rows")
    .option("--examples <number>", "receipts shown of each rule", "2")
    .option("--json", "for programs", false)
    .addHelpText("after", "\nExit code 0, also if calls were refused.\n\nExample:\n  svc-gate report ./data --since 7d")
    .action((folder: string | undefined, options: ReportOptions & FolderOption) =>
      run(async () => (await import("../report.ts")).reportCommand(folder ?? options.dataDir, options)),
    );

  program
    .command("diff")
    .description("how two contracts or mandates differ: in their text, and for which calls in their verdicts")
    .argument("<before>", "a mandate or a contract")
    .argument("<after>", "another, or another version")
    .option("--json", "for programs", false)
    .option("--no-text", "only what is decided differently, not how the texts differ")
    .option("--no-weaker", "for CI: exit code 1 unless every tool is equivalent or stricter")
    .option("--time <seconds>", "for each tool; what is not settled by then is unknown", "10")
    .addHelpText(
      "after",
      "\nExit code 0: compared. 1: with --no-weaker, a tool is weaker, changed or unknown. 2: a contract does not compile." +
        "\n\nExample:\n  svc-gate diff old/mandate.yaml mandate.yaml --no-weaker",
    )
    .action((before: string, after: string, options: DiffOptions) =>
      run(async () => (await import("../diff.ts")).diffCommand(before, after, options)),
    );

  program
    .command("init")
    .description("write a mandate and a starter contract; nothing is overwritten")
    .argument("[folder]", "where to", ".")
    .action((folder: string) => run(async () => (await import("../init.ts")).initCommand(folder)));
}

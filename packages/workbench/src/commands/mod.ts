/**
 * The workbench: the commands of `svc-gate` for authors of contracts.
 *
 * Promises: it only imports svc-gate through its entry points; each command is loaded when it is called.
 *
 * Does not: serve, open ledgers, or change a gate's decisions.
 */
import { calls, type Command } from "../../../gate/src/cli/mod.ts";

/** Adds the commands for contracts before they are in force. */
export function addWorkbenchCommands(program: Command): void {
  addFmt(program);
  addAnalyze(program);
  addCommands(program);
  addSchema(program);
  addImportTools(program);
  addLsp(program);
  addDiff(program);
}

function addFmt(program: Command): void {
  program
    .command("fmt")
    .description(
      "reformat contracts, mandates, packs and test files in the standard layout; comments and meaning are kept",
    )
    .argument("[files...]", "files, or folders of them; `-` reads standard input and prints", ["."])
    .option("--check", "change nothing, but list the files that would change", false)
    .addHelpText(
      "after",
      "\nA contract's digest depends on its text: if a file changes, receipts have another digest." +
        "\nExit code 0: done. 1: with --check, a file would change. 2: a file cannot be read, and was not changed." +
        "\n\nExample:\n  svc-gate fmt --check contracts",
    )
    .action(calls(async () => (await import("./fmt/command.ts")).fmtCommand));
}

function addAnalyze(program: Command): void {
  program
    .command("analyze")
    .description(
      "find defects of contracts that compile: rules that never fire, limits that can be escaped, names that look alike",
    )
    .argument("[file]", "a mandate or a contract", "mandate.yaml")
    .option("--json", "for editors and CI", false)
    .option("--deny", "let notes fail, like warnings", false)
    .option("--keys <file>", "the gate's keys, from `svc-gate keys list --json`: report approvals that nobody can give")
    .addHelpText(
      "after",
      "\nA comment before a line allows a finding there: # svc-gate: allow never-fires because ..." +
        "\nExit code 0: no warnings. 1: warnings. 2: errors, or the file cannot be read." +
        "\n\nExample:\n  svc-gate analyze contracts/payments.yaml",
    )
    .action(calls(async () => (await import("./analyze.ts")).analyzeCommand));
}

function addCommands(program: Command): void {
  program
    .command("commands")
    .description(
      "show how a table of commands reads a command line: the form of each command, or its first piece that is not listed",
    )
    .argument("[text]", "the command line")
    .option("--contract <file>", "a mandate, a contract or a pack", "mandate.yaml")
    .option("--folder <path>", "the folder in which the text starts; `.` is a folder without a name", ".")
    .option("--drift", "name the options of the table that the help of the installed programs lacks", false)
    .option("--json", "for programs", false)
    .addHelpText(
      "after",
      "\nRules of the contract may still refuse the files that the command names." +
        "\nExit code 0: the text was read. 1: with --drift, an option is not in a help. 2: the file does not compile, or has" +
        " no table of commands." +
        '\n\nExample:\n  svc-gate commands "git log -p src" --contract contracts/packs/git.yaml',
    )
    .action(calls(async () => (await import("./commands.ts")).commandsCommand));
}

function addSchema(program: Command): void {
  program
    .command("schema")
    .description("print the JSON Schema of a kind of file, for editors: contract, mandate, pack or test")
    .argument("<kind>", "contract, mandate, pack or test")
    .addHelpText(
      "after",
      "\nA file names it in its first line:\n  # yaml-language-server: $schema=.svc-gate/contract.schema.json" +
        "\n\nExample:\n  svc-gate schema contract > contract.schema.json",
    )
    .action(calls(async () => (await import("./schema.ts")).schemaCommand));
}

function addImportTools(program: Command): void {
  program
    .command("import-tools")
    .description(
      "write a contract that lists the tools of a source, all refused; or show where a contract has drifted from it",
    )
    .argument(
      "[source...]",
      "an MCP tools/list result or a list of functions (JSON; `-` reads standard input), an OpenAPI 3 document (JSON, YAML), " +
        "or a lock file of svc-gate mcp",
    )
    .option("--mcp [url]", "ask a running MCP server: give its address, or after `--` the command that starts it")
    .option("--server <name>", "the MCP server's name: its tools are NAME.TOOL, as svc-gate mcp sends them")
    .option("--no-server", "keep the tools' own names, for programs that send them so")
    .option("--project", "a project's file names the server: its tools are project:NAME.TOOL", false)
    .option("--timeout <seconds>", "how long the server may take for one answer (default: 30)")
    .option(
      "--agent <name>",
      "start a coding agent with a scripted model, and ask which tools it offers: claude-code, codex, gemini-cli, " +
        "copilot-cli or opencode",
    )
    .option("--host <file>", "the agent's program, if it is not in PATH")
    .option("--contract <file>", "a contract or a mandate: write only the tools that it lacks")
    .option("--check", "with --contract: which tools of the source are new, gone or changed", false)
    .option("--name <name>", "the name of the written contract")
    .option("--out <file>", "the file to write; it must not exist yet")
    .option("--json", "for programs", false)
    .addHelpText(
      "after",
      "\nParts of a schema that the language cannot express are left open; a comment and a warning name them." +
        "\nA server gets no SVC_ variable. svc-gate mcp tools and svc-gate doctor --tools print what this command reads." +
        "\nExit code 0: done. 1: with --check, they differ. 2: the source or the contract cannot be read." +
        "\n\nExamples:\n  svc-gate import-tools --server mail --mcp --out mail.yaml -- npx -y some-mcp-server" +
        "\n  svc-gate import-tools --server mail --mcp --contract mail.yaml --check -- npx -y some-mcp-server" +
        "\n  svc-gate import-tools --agent claude-code --contract contracts/hosts/claude-code.yaml --check",
    )
    .action(calls(async () => (await import("./import-tools/command.ts")).importToolsCommand));
}

function addLsp(program: Command): void {
  program
    .command("lsp")
    .description("run a language server for contracts, mandates, packs and test files, on standard input and output")
    .option("--stdio", "the only transport; editors pass it by convention", true)
    .addHelpText("after", "\ndocs/guides/editor.md describes how editors start it.")
    .action(calls(async () => (await import("./lsp/command.ts")).lspCommand));
}

function addDiff(program: Command): void {
  program
    .command("diff")
    .description(
      "show how two contracts or mandates differ: in their text, in their verdicts, and in what approvals need",
    )
    .argument("<before>", "a mandate or a contract")
    .argument("<after>", "another, or another version")
    .option("--json", "for programs", false)
    .option("--no-text", "only show differences in decisions, not in the texts")
    .option(
      "--no-weaker",
      "for CI: exit code 1 unless every tool, and each setting of approvals, is equivalent or stricter",
    )
    .option("--time <seconds>", "the time for each tool; after that its result is unknown", "10")
    .addHelpText(
      "after",
      "\nExit code 0: compared. 1: with --no-weaker, a tool is weaker, changed or unknown. 2: a contract does not compile." +
        "\n\nExample:\n  svc-gate diff old/mandate.yaml mandate.yaml --no-weaker",
    )
    .action(calls(async () => (await import("./diff.ts")).diffCommand));
}

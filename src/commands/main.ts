import { Command } from "commander";
import { settings, version } from "../gate/mod.ts";
import type { DiffOptions } from "./diff.ts";
import type { ExplainOptions } from "./explain/command.ts";
import { addExport } from "./export/usage.ts";
import type { AnalyzeOptions } from "./analyze.ts";
import type { EraseOptions } from "./erase.ts";
import type { BackupOptions } from "./backup.ts";
import type { CreateOptions, KeysOptions, RotateOptions } from "./keys.ts";
import type { ReloadOptions } from "./reload.ts";
import type { ReplayOptions } from "./replay/command.ts";
import type { MigrateOptions } from "./migrate.ts";
import type { ReportOptions } from "./report.ts";
import type { RestoreOptions } from "./restore.ts";
import type { ResumeOptions } from "./resume.ts";
import type { ImportOptions } from "./import-tools/command.ts";
import { run } from "./run.ts";
import type { TestOptions } from "./test/command.ts";
import type { KeygenOptions } from "./keygen.ts";
import type { ProveOptions } from "./prove.ts";
import type { TrustedKeys } from "./verify-proof.ts";
import type { VerifyOptions } from "./verify.ts";

const program = new Command("svc-gate")
  .description("May this AI agent's tool call run? A verdict with a reason, and a receipt that anyone can verify.")
  .showHelpAfterError("(svc-gate --help lists the commands)")
  .helpCommand(false)
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));

const serving = program
  .command("serve")
  .description("answer checks over HTTP until SIGTERM or SIGINT")
  .addHelpText(
    "after",
    "\nEvery option can be set by its variable instead; the option wins." +
      "\n\nExample:\n  SVC_MODE=enforce svc-gate serve --port 8787 --mandate mandate.yaml",
  );
for (const { flag, variable, value, doc, fallback } of settings) {
  serving.option(`--${flag} <${value}>`, `${doc} (${variable}${fallback === "" ? "" : `, by default ${fallback}`})`);
}
serving.action((options: Record<string, string | undefined>) => {
  const flags = Object.fromEntries(settings.map(({ flag }) => [flag, options[camel(flag)]]));
  return run(async () => (await import("./serve.ts")).serveCommand(flags, print));
});

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
    run(async () => (await import("./check.ts")).checkCommand(file, options)),
  );

program
  .command("test")
  .description("decide the calls of *.test.yaml files as the gate would, and compare with what they expect")
  .argument("[paths...]", "test files, contracts with one beside them, or folders (contracts, else the current folder)")
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
    run(async () => (await import("./test/command.ts")).testCommand(paths, options)),
  );

program
  .command("fmt")
  .description("write contracts, mandates and test files in the one layout: comments stay, and so does what they say")
  .argument("[files...]", "files, or folders of them; `-` reads standard input and prints", ["."])
  .option("--check", "change nothing, name the files that would change", false)
  .addHelpText(
    "after",
    "\nThe digest of a contract is that of its text: a file that changes has another one, and so have the receipts." +
      "\nExit code 0: done. 1: with --check, a file would change. 2: a file cannot be read, and was left alone." +
      "\n\nExample:\n  svc-gate fmt --check contracts",
  )
  .action((files: string[], options: { check: boolean }) =>
    run(async () => (await import("./fmt/command.ts")).fmtCommand(files, options)),
  );

program
  .command("analyze")
  .description(
    "find what is wrong with contracts that compile: rules that never fire, limits that can be escaped, names alike",
  )
  .argument("[file]", "a mandate or a contract", "mandate.yaml")
  .option("--json", "for editors and CI", false)
  .option("--deny", "notes fail as warnings do", false)
  .option("--no-solver", "do not ask z3, even where it is installed")
  .addHelpText(
    "after",
    "\nA comment before a line allows a finding there: # svc-gate: allow never-fires because ..." +
      "\nExit code 0: no warnings. 1: warnings. 2: errors, or the file cannot be read." +
      "\n\nExample:\n  svc-gate analyze contracts/payments.yaml",
  )
  .action((file: string, options: AnalyzeOptions) =>
    run(async () => (await import("./analyze.ts")).analyzeCommand(file, options)),
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
  .action((kind: string) => run(async () => (await import("./schema.ts")).schemaCommand(kind)));

program
  .command("import-tools")
  .description(
    "write a contract that lists the tools of a source, all refused; or say where a contract has drifted from it",
  )
  .argument("[source]", "an MCP tools/list result or a list of functions (JSON), or an OpenAPI 3 document (JSON, YAML)")
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
    run(async () => (await import("./import-tools/command.ts")).importToolsCommand(source, options)),
  );

program
  .command("lsp")
  .description("a language server for contracts, mandates and test files, on standard input and output")
  .option("--stdio", "the one way to talk to it; editors say it by habit", true)
  .addHelpText("after", "\nHow editors start it is in docs/editor.md.")
  .action(() => run(async () => (await import("./lsp/command.ts")).lspCommand()));

program
  .command("prove")
  .description(
    "write a proof that a row is in the ledger, in one file that anyone can verify offline (C2SP tlog-proof)",
  )
  .argument("<row>", "the row's number: `receipt.seq` of the answer")
  .argument("[folder]", "the data folder", process.env["SVC_DATA_DIR"] ?? "./data")
  .option("--out <file>", "where to; by default <row>.tlog-proof here, and `-` is the standard output")
  .option("--database [tenant]", "a ledger in SVC_DATABASE_URL, in place of the folder: the root's, or a tenant's")
  .addHelpText("after", "\nA proof is verified with `svc-gate verify <file> --key <verifier key>`.")
  .action((row: string, folder: string, options: ProveOptions) =>
    run(async () => (await import("./prove.ts")).proveCommand(row, folder, options)),
  );

program
  .command("keygen")
  .description("the key that signs the ledger's heads: make it, show how others know it, rotate it")
  .option("--data-dir <folder>", "the data folder", process.env["SVC_DATA_DIR"] ?? "./data")
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
  .action((options: KeygenOptions) => run(async () => (await import("./keygen.ts")).keygenCommand(options)));

program
  .command("verify")
  .description("walk a ledger in a data folder, served or not; or verify an export, or a proof's file, offline")
  .argument(
    "[folder]",
    "the data folder, the folder of an export, or a .tlog-proof file",
    process.env["SVC_DATA_DIR"] ?? "./data",
  )
  .option("--json", "for programs", false)
  .option("--pin <file>", "the head pin, where it is not in the folder", process.env["SVC_PIN"])
  .option("--chain", "the chain alone: twice as fast, and blind to changed evidence", false)
  .option("--deep", "decide every check again too, and fold the counters again", false)
  .option("--database [tenant]", "a ledger in SVC_DATABASE_URL, in place of the folder: the root's, or a tenant's")
  .addHelpText(
    "after",
    "\nExit code 0: the ledger is whole. 1: it is broken, or does not agree with itself; the first row is named. 2: there is none.",
  )
  .option("--key <verifier key>", "of an export or a proof: who must have signed it (may be repeated)", many, [])
  .option(
    "--witness <verifier key>",
    "of an export or a proof: whose cosignature is looked for (repeated too)",
    many,
    [],
  )
  .action((folder: string, options: VerifyOptions & TrustedKeys) =>
    run(async () =>
      folder.endsWith(".tlog-proof")
        ? (await import("./verify-proof.ts")).verifyProofCommand(folder, options, options.json)
        : options.database === undefined && (await import("./verify-export.ts").then((its) => its.isExport(folder)))
          ? (await import("./verify-export.ts")).verifyExportCommand(folder, options)
          : (await import("./verify.ts")).verifyCommand(folder, options),
    ),
  );

addExport(program);

program
  .command("explain")
  .description("why a call comes to what it comes to: each rule with the values of its operands, counters, places")
  .argument("[call]", "a file with the body of a POST /check")
  .option("--contract <file>", "the contract or mandate that decides", "mandate.yaml")
  .option("--counters <json>", 'what counters stand at, such as {"attempts": 5}; others at 0')
  .option("--now <moment>", "the moment of the check; by default, this one")
  .option("--key <name>", "the name of the API key that asks", "default")
  .option("--mode <mode>", "the mode of the gate", "enforce")
  .option("--receipt <number>", "a receipt in place of a call: with its contract, its moment and its counters")
  .option("--data-dir <folder>", "with --receipt: the data folder", process.env["SVC_DATA_DIR"] ?? "./data")
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
    run(async () => (await import("./explain/command.ts")).explainCommand(file, options)),
  );

placed(program.command("replay"))
  .description("decide recorded receipts again: under what was in force, or as if another contract had been")
  .option("--contract <file>", "a contract or mandate to decide under; without it each receipt must agree with itself")
  .option("--mode <mode>", "with --contract: as if every answer had been given in this mode")
  .option("--sum <member>", "with --contract: add up a member of what changes, such as input.amount")
  .option("--examples <number>", "receipts shown of each change", "3")
  .option("--json", "for programs", false)
  .addHelpText(
    "after",
    "\nA recorded agent does not react to another answer: what came after a changed verdict is what really came." +
      "\nExit code 0: nothing differs. 1: a verdict differs. 2: what was given cannot be used." +
      "\n\nExample:\n  svc-gate replay ./data --contract contracts/payments-next.yaml --sum input.amount",
  )
  .action((folder: string, options: ReplayOptions) =>
    run(async () => (await import("./replay/command.ts")).replayCommand(folder, options)),
  );

placed(program.command("report"))
  .description("what the receipts say was, or would have been, refused or held: by rule, with examples")
  .option("--from <number>", "the first receipt to count", "1")
  .option("--examples <number>", "receipts shown of each rule", "2")
  .option("--json", "for programs", false)
  .addHelpText("after", "\nExit code 0, whatever was refused.\n\nExample:\n  svc-gate report ./data")
  .action((folder: string, options: ReportOptions) =>
    run(async () => (await import("./report.ts")).reportCommand(folder, options)),
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
    run(async () => (await import("./diff.ts")).diffCommand(before, after, options)),
  );

const keys = program
  .command("keys")
  .description("API keys: who may ask, for what, how often and until when; each act is a row of the ledger")
  .helpCommand(false)
  .addHelpText(
    "after",
    "\nThe gate that serves the data folder is asked, or the ledger itself where none does; another one with --url." +
      "\nExit code 0: done. 2: refused, and nothing changed." +
      "\n\nExample:\n  svc-gate keys create ci --scopes check,rules --expires 90d",
  );

operating(
  keys
    .command("create")
    .description("make a key and show it, this once")
    .argument("<name>", "what receipts call it; a name is never used for another key")
    .option("--owner <text>", "who answers for it")
    .option("--scopes <list>", "of check, rules, receipts, outcome, approve, admin, metrics", "check")
    .option("--expires <when>", "such as 90d, or 2027-01-31T00:00:00Z; never by default")
    .option("--tools <patterns>", "for these tools alone, such as mail.*,note.add")
    .option("--rate <rate>", "checks a second, such as 50/s, or 50/s:200 where 200 may come at once")
    .option("--quiet", "print the key alone", false),
).action((name: string, options: CreateOptions) =>
  run(async () => (await import("./keys.ts")).createCommand(name, options)),
);

operating(keys.command("list").description("the keys that there are and were: state, scopes, limits, last use")).action(
  (options: KeysOptions) => run(async () => (await import("./keys.ts")).listCommand(options)),
);

operating(
  keys
    .command("rotate")
    .description("a new key under the same name; the one before stays good for a while")
    .argument("<name>", "of the key")
    .option("--overlap <time>", "how long the one before stays good, from 0s to 30d", "24h")
    .option("--expires <when>", "a new end; by default the one that it had")
    .option("--quiet", "print the key alone", false),
).action((name: string, options: RotateOptions) =>
  run(async () => (await import("./keys.ts")).rotateCommand(name, options)),
);

operating(
  keys.command("revoke").description("from now on the key is good for nothing").argument("<name>", "of the key"),
).action((name: string, options: KeysOptions) =>
  run(async () => (await import("./keys.ts")).revokeCommand(name, options)),
);

operating(
  program
    .command("reload")
    .description("a gate that is serving puts in force what its files say now, between two batches")
    .option("--mode <mode>", "observe, assist or enforce; by default as before"),
)
  .addHelpText(
    "after",
    "\nExit code 0: done, or nothing has changed. 2: refused, with what is wrong, and what was in force stays." +
      "\n\nExample:\n  svc-gate reload --mode enforce",
  )
  .action((options: ReloadOptions) => run(async () => (await import("./reload.ts")).reloadCommand(options)));

operating(
  program
    .command("erase")
    .description("take the text of parts of receipts out of a ledger; the chain and all proofs stay as they are")
    .argument("[receipts...]", "numbers, such as 7 or 7-9")
    .option("--session <id>", "all receipts of a session, in place of numbers")
    .option("--key <name>", "with --session: of this key alone")
    .option("--before <when>", "all receipts before a day or a moment, in place of numbers")
    .requiredOption("--part <list>", "of call, input, outcome, platform, reason")
    .requiredOption("--reason <text>", "why: it stands in the ledger for ever"),
)
  .addHelpText(
    "after",
    "\nReasons and outcomes may quote the call, so they go with its input, its snapshot and its name." +
      "\nThe gate that serves the data folder is asked, or the ledger itself where none does; another one with --url." +
      "\nExit code 0: done, or there was nothing left to erase. 2: refused." +
      "\n\nExample:\n  svc-gate erase 7-9 --part input,platform --reason 'request 4711 of the person concerned'",
  )
  .action((receipts: string[], options: EraseOptions) =>
    run(async () => (await import("./erase.ts")).eraseCommand(receipts, options)),
  );

program
  .command("init")
  .description("write a mandate and a starter contract; nothing is overwritten")
  .argument("[folder]", "where to", ".")
  .action((folder: string) => run(async () => (await import("./init.ts")).initCommand(folder)));

program
  .command("backup")
  .description(
    "copy the ledgers of a data folder into a new one, beside a gate that is serving them, and verify the copy",
  )
  .argument("<to>", "the folder to make")
  .option("--data-dir <folder>", "the gate's data folder", process.env["SVC_DATA_DIR"] ?? "./data")
  .option("--tenant <id>", "of a tenant alone; by default the root's and every tenant's")
  .option("--with-signing-key", "the key that signs heads too: who reads the backup can then sign them", false)
  .option("--json", "for programs", false)
  .addHelpText(
    "after",
    "\nExit code 0: copied, flushed and found whole. 2: it cannot be, and nothing is left behind." +
      "\n\nExample:\n  svc-gate backup /srv/backup/2026-11-21",
  )
  .action((to: string, options: BackupOptions) =>
    run(async () => (await import("./backup.ts")).backupCommand(to, options)),
  );

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
    run(async () => (await import("./restore.ts")).restoreCommand(backup, options)),
  );

restoring(
  program
    .command("resume")
    .description("go on though rows that were answered are lost: a row says which, and counters are unknown meanwhile")
    .argument("[backup]", "a backup to put into the folder first; by default what lies there goes on")
    .option("--after-restore", "the ledger is behind or beside its head pin, and that is how it goes on", false)
    .requiredOption("--reason <text>", "why, for the row")
    .option("--by <name>", "who does it; by default this user")
    .option("--enter <file>", "what was lost of counters: they are known again; later too, without --after-restore")
    .option("--accept <what>", "signing-key: the key that signed heads is lost, and a new one is made")
    .option("--tenant <id>", "of a tenant, in place of the root"),
)
  .addHelpText(
    "after",
    "\nThe gate is stopped for it. Rules that read a counter block until its window has passed, or it is entered." +
      "\nExit code 0: done, start the gate. 2: refused, with why." +
      '\n\nExample:\n  svc-gate resume --after-restore /srv/backup/2026-11-21 --reason "disk lost, INC-204"',
  )
  .action((backup: string | undefined, options: ResumeOptions) =>
    run(async () => (await import("./resume.ts")).resumeCommand(backup, options)),
  );

program
  .command("migrate")
  .description("bring the schema of a PostgreSQL up to this version, beside gates that are serving from it")
  .option("--database-url <url>", "as its owner (SVC_DATABASE_URL)", process.env["SVC_DATABASE_URL"])
  .option("--role <name>", "the role that gates connect as: it is given what it needs, and nothing more")
  .addHelpText("after", "\nExit code 0: done. 2: it cannot be.\n\nExample:\n  svc-gate migrate --role svc_gate")
  .action((options: MigrateOptions) => run(async () => (await import("./migrate.ts")).migrateCommand(options)));

program
  .command("version")
  .description("print the version")
  .action(() => run(async () => ({ exitCode: 0, text: version })));

/** The options of a command that an operator gives to a gate. */
function operating(command: Command): Command {
  return command
    .option("--data-dir <folder>", "the gate's data folder", process.env["SVC_DATA_DIR"] ?? "./data")
    .option("--url <url>", "a gate elsewhere, in place of the folder")
    .option("--key-file <file>", "with --url: a file that holds a key of scope admin (SVC_ADMIN_KEY otherwise)")
    .option("--tenant <id>", "of a tenant, in place of the root")
    .option("--json", "for programs", false);
}

/** The options of a command that puts a ledger back. */
function restoring(command: Command): Command {
  return command
    .option("--data-dir <folder>", "the gate's data folder", process.env["SVC_DATA_DIR"] ?? "./data")
    .option("--pin <file>", "the head pin, where it is not in the folder", process.env["SVC_PIN"])
    .option("--seen <files...>", "checkpoints that somebody outside keeps; sinks of SVC_SINKS are asked by themselves");
}

/** The options of a command that reads receipts. */
function placed(command: Command): Command {
  return command
    .argument("[folder]", "the data folder", process.env["SVC_DATA_DIR"] ?? "./data")
    .option("--database [tenant]", "a ledger in SVC_DATABASE_URL, in place of the folder: the root's, or a tenant's")
    .option("--url <url>", "a running gate, in place of the folder")
    .option("--key-file <file>", "with --url: a file that holds a key (SVC_API_KEY otherwise)")
    .option("--file <file>", "receipts as GET /receipts shows them, one or a page on each line, in place of the folder")
    .option("--rules <files...>", "with --file: bodies of GET /rules, for the contracts that the receipts name");
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** An option that may be given again and again. */
function many(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

function camel(flag: string): string {
  return flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

await program.parseAsync();

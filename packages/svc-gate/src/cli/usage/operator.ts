import type { Command } from "commander";
import { run } from "../run.ts";
import { many, operating } from "./options.ts";
import type { EraseOptions } from "../erase.ts";
import type { CreateOptions, KeysOptions, RotateOptions } from "../keys.ts";
import type { ReloadOptions } from "../reload.ts";

/** Adds the commands with which an operator changes a gate: each writes a row in its ledger. */
export function addOperatorCommands(program: Command): void {
  addKeys(program);
  addReload(program);
  addErase(program);
}

function addKeys(program: Command): void {
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
    run(async () => (await import("../keys.ts")).createCommand(name, options)),
  );

  operating(
    keys.command("list").description("the keys that there are and were: state, scopes, limits, last use"),
  ).action((options: KeysOptions) => run(async () => (await import("../keys.ts")).listCommand(options)));

  operating(
    keys
      .command("rotate")
      .description("a new key under the same name; the one before stays good for a while")
      .argument("<name>", "of the key")
      .option("--overlap <time>", "how long the one before stays good, from 0s to 30d", "24h")
      .option("--expires <when>", "a new end; by default the one that it had")
      .option("--quiet", "print the key alone", false),
  ).action((name: string, options: RotateOptions) =>
    run(async () => (await import("../keys.ts")).rotateCommand(name, options)),
  );

  operating(
    keys.command("revoke").description("make the gate refuse a key from now on").argument("<name>", "of the key"),
  ).action((name: string, options: KeysOptions) =>
    run(async () => (await import("../keys.ts")).revokeCommand(name, options)),
  );
}

function addReload(program: Command): void {
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
    .action((options: ReloadOptions) => run(async () => (await import("../reload.ts")).reloadCommand(options)));
}

function addErase(program: Command): void {
  operating(
    program
      .command("erase")
      .description("permanently delete personal data from receipts; hashes and proofs stay valid")
      .argument("[receipts...]", "numbers, such as 7 or 7-9")
      .option("--session <id>", "all receipts of a session, in place of numbers")
      .option("--key <name>", "with --session: of this key alone")
      .option("--before <when>", "all receipts before a day or a moment, in place of numbers")
      .option(
        "--where <member=value>",
        "all receipts whose call has this value; repeat it to require several values",
        many,
        [],
      )
      .option("--yes", "with --where: erase; without it, only show what would be erased", false)
      .option(
        "--part <list>",
        "some of call, input, outcome, platform, reason, and sensitive members such as input.email; with --where by default input,platform",
      )
      .option("--reason <text>", "why: it stays in the ledger forever"),
  )
    .addHelpText(
      "after",
      "\nReasons and outcomes may quote the call, so they go with its input, its snapshot and its name." +
        "\nThe gate that serves the data folder is asked, or the ledger itself where none does; another one with --url." +
        "\nExit code 0: erased, now or before; with --where and without --yes: shown. 1: no such receipt, or none ever had the part. " +
        "2: refused." +
        "\n\nExample:\n  svc-gate erase 7-9 --part input,platform --reason 'request 4711 of the person concerned'" +
        "\n  svc-gate erase --where input.customer.email=anna@example.com",
    )
    .action((receipts: string[], options: EraseOptions) =>
      run(async () => (await import("../erase.ts")).eraseCommand(receipts, options)),
    );
}

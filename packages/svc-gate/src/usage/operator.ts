import type { Command } from "commander";
import { calls } from "../../../gate/src/cli/run.ts";
import { many, addOperatorOptions } from "./options.ts";

/** Adds the commands with which an operator changes a gate. Each but `notify` writes a row in its ledger. */
export function addOperatorCommands(program: Command): void {
  addKeys(program);
  addPeople(program);
  addReload(program);
  addErase(program);
  addNotify(program);
  addStop(program);
}

function addKeys(program: Command): void {
  const keys = program
    .command("keys")
    .description(
      "manage API keys: who may ask, for which tools, how often and until when; each act is a row of the ledger",
    )
    .helpCommand(false)
    .addHelpText(
      "after",
      "\nUses the gate that serves the data folder, or the ledger directly if no gate does. Use --url for a gate elsewhere." +
        "\nExit code 0: done. 2: refused, and nothing changed." +
        "\n\nExample:\n  svc-gate keys create ci --scopes check,rules --expires 90d",
    );

  addOperatorOptions(
    keys
      .command("create")
      .description("create a key and show it once")
      .argument("<name>", "its name on receipts; a name is never used for another key")
      .option("--owner <text>", "the person or team responsible for it")
      .option("--scopes <list>", "some of check, rules, receipts, outcome, approve, admin, metrics; check by default")
      .option("--kind <kind>", "host: a key that an agent may read, so it may do little; its scopes are fixed")
      .option("--expires <when>", "such as 90d, or 2027-01-31T00:00:00Z; never by default")
      .option("--tools <patterns>", "only for these tools, such as mail.*,note.add")
      .option("--rate <rate>", "checks per second, such as 50/s, or 50/s:200 if 200 may come at once")
      .option("--person <name>", "the person who uses it; needed for the scope approve")
      .option("--groups <list>", "the groups of the person, such as finance")
      .option("--quiet", "print only the key", false),
  ).action(calls(async () => (await import("../../../gate/src/cli/keys.ts")).createCommand));

  addOperatorOptions(
    keys.command("list").description("list current and former keys: state, scopes, people, limits, last use"),
  ).action(calls(async () => (await import("../../../gate/src/cli/keys.ts")).listCommand));

  addOperatorOptions(
    keys
      .command("rotate")
      .description("create a new key under the same name; the previous one stays valid for a while")
      .argument("<name>", "of the key")
      .option("--overlap <time>", "how long the previous one stays valid, from 0s to 30d", "24h")
      .option("--expires <when>", "a new expiry; by default the previous one")
      .option("--quiet", "print only the key", false),
  ).action(calls(async () => (await import("../../../gate/src/cli/keys.ts")).rotateCommand));

  addOperatorOptions(
    keys
      .command("update")
      .description("change who uses a key")
      .argument("<name>", "of the key")
      .option("--person <name>", "the person who uses it")
      .option("--groups <list>", "all groups of the person, such as finance,legal"),
  ).action(calls(async () => (await import("../../../gate/src/cli/keys.ts")).updateCommand));

  addOperatorOptions(
    keys.command("revoke").description("make the gate refuse a key from now on").argument("<name>", "of the key"),
  ).action(calls(async () => (await import("../../../gate/src/cli/keys.ts")).revokeCommand));
}

function addPeople(program: Command): void {
  const people = program
    .command("persons")
    .description("manage the people who may decide calls; each act is a row of the ledger")
    .helpCommand(false)
    .addHelpText(
      "after",
      "\nExit code 0: done. 2: refused, and nothing changed.\n\nExample:\n  svc-gate persons add anna" +
        "\n  svc-gate keys create anna-laptop --scopes approve,receipts --person anna --groups finance",
    );
  addOperatorOptions(people.command("add").description("add a person").argument("<name>", "such as anna")).action(
    calls(async () => (await import("../../../gate/src/cli/keys.ts")).addPersonCommand),
  );
  addOperatorOptions(people.command("list").description("list the people")).action(
    calls(async () => (await import("../../../gate/src/cli/keys.ts")).listPeopleCommand),
  );
}

function addReload(program: Command): void {
  addOperatorOptions(
    program
      .command("reload")
      .description("make a serving gate put its current files in force, between two batches")
      .option("--mode <mode>", "observe, assist or enforce; by default unchanged"),
  )
    .addHelpText(
      "after",
      "\nExit code 0: done, or nothing has changed. 2: refused, with the errors; the contracts in force stay." +
        "\n\nExample:\n  svc-gate reload --mode enforce",
    )
    .action(calls(async () => (await import("../../../gate/src/cli/reload.ts")).reloadCommand));
}

function addNotify(program: Command): void {
  const notify = program
    .command("notify")
    .description("show and repeat webhooks")
    .helpCommand(false)
    .addHelpText(
      "after",
      "\nExit code 0: done. 2: refused, and nothing changed.\n\nExample:\n  svc-gate notify replay --from 1200",
    );
  addOperatorOptions(
    notify.command("list").description("list how far each endpoint has got, and the events that were given up"),
  ).action(calls(async () => (await import("../../../gate/src/cli/notify.ts")).listCommand));
  addOperatorOptions(
    notify
      .command("replay")
      .description("send all events from a row on again; their ids stay the same")
      .requiredOption("--from <row>", "the number of the first row")
      .option("--endpoint <name>", "only to this endpoint"),
  ).action(calls(async () => (await import("../../../gate/src/cli/notify.ts")).replayCommand));
}

function addErase(program: Command): void {
  addOperatorOptions(
    program
      .command("erase")
      .description("permanently delete personal data from receipts; hashes and proofs stay valid")
      .argument("[receipts...]", "numbers, such as 7 or 7-9")
      .option("--session <id>", "all receipts of a session, instead of numbers")
      .option("--key <name>", "with --session: only of this key")
      .option("--before <when>", "all receipts before a day or a time, instead of numbers")
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
      .option("--reason <text>", "the reason: it stays in the ledger forever"),
  )
    .addHelpText(
      "after",
      "\nReasons and outcomes may quote the call, so they are erased with its input, its facts and its name." +
        "\nUses the gate that serves the data folder, or the ledger directly if no gate does. Use --url for a gate elsewhere." +
        "\nExit code 0: erased, now or before; with --where and without --yes: shown. 1: no such receipt, or none ever had the part. " +
        "2: refused." +
        "\n\nExample:\n  svc-gate erase 7-9 --part input,platform --reason 'request 4711 of the person concerned'" +
        "\n  svc-gate erase --where input.customer.email=anna@example.com",
    )
    .action(calls(async () => (await import("../../../gate/src/cli/erase.ts")).eraseCommand));
}

function addStop(program: Command): void {
  addOperatorOptions(
    program
      .command("stop")
      .description("block calls until the stop is lifted: every call, or those of some tools, of a key or of a session")
      .option("--why <text>", "why: each blocked call gets it as its reason, and it stays in the ledger forever")
      .option("--tool <name>", "only calls of this tool; repeat it for several", many, [])
      .option("--key <name>", "only calls of this key")
      .option("--session <id>", "with --key: only calls of this session")
      .option("--keep", "leave approvals open, without their votes; otherwise they are cancelled", false)
      .option("--lift", "lift the stop that has these options", false)
      .option("--list", "show the stops in force", false)
      .option("--pin <file>", "without a gate: the head pin, if it is not in the folder (SVC_PIN)")
      .addHelpText(
        "after",
        "\nA stop is in force in every mode, on every gate of the ledger, and after a restart. At the root, a stop of every call" +
          "\nor of tools is in force in each tenant too. With --url, a key of scope approve may set a stop, and only a key of scope" +
          "\nadmin lifts one." +
          "\nUses the gate that serves the data folder, or the ledger directly if no gate does." +
          "\nExit code 0: done. 2: refused, and nothing changed." +
          "\n\nExample:\n  svc-gate stop --why 'the agent pays the wrong people'\n  svc-gate stop --lift",
      ),
  ).action(calls(async () => (await import("../../../gate/src/cli/stop.ts")).stopCommand));
}

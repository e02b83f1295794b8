import type { Command } from "commander";
import { calls } from "../../../gate/src/cli/run.ts";
import { many, addOperatorOptions } from "./options.ts";

/** Adds the commands with which a person decides calls. */
export function addApprovals(program: Command): void {
  const approvals = program
    .command("approvals")
    .description("decide the calls that wait for a person; each decision is a row of the ledger")
    .helpCommand(false)
    .addHelpText(
      "after",
      "\nA person decides with a key of their own, of scope approve: see `svc-gate persons --help`." +
        "\nExit code 0: done. 2: refused, and nothing changed." +
        "\n\nExample:\n  svc-gate approvals list --key-file anna.key\n  svc-gate approvals show apr_12_... --key-file anna.key" +
        "\n  svc-gate approvals approve apr_12_... --key-file anna.key --comment 'invoice 4711 is right'",
    );

  addApproverOptions(approvals.command("list").description("list calls, newest first"))
    .option("--state <state>", "pending, approved, used, denied, expired, cancelled or superseded", "pending")
    .option("--mine", "only the calls that this key may decide", false)
    .action(calls(async () => (await import("../../../gate/src/cli/approvals/command.ts")).listCommand));

  addApproverOptions(
    approvals.command("show").description("show a whole call").argument("<id>", "of the approval"),
  ).action(calls(async () => (await import("../../../gate/src/cli/approvals/command.ts")).showCommand));

  addApproverOptions(
    approvals.command("watch").description("show each call that waits, and decide it with one key"),
  ).action(calls(async () => (await import("../../../gate/src/cli/approvals/watch.ts")).watchCommand));

  addApproverOptions(
    approvals.command("approve").description("approve exactly this call, once").argument("<id>", "of the approval"),
  )
    .option("--comment <text>", "why: it stays in the ledger forever, so name no person")
    .option("--hash <hash>", "the hash that `show` printed: refused if it is not the call's")
    .action(calls(async () => (await import("../../../gate/src/cli/approvals/command.ts")).approveCommand));

  addApproverOptions(approvals.command("deny").description("deny a call").argument("<id>", "of the approval"))
    .requiredOption("--comment <text>", "why: the agent reads it, and it stays in the ledger forever")
    .option(
      "--scope <scope>",
      "call: only this call; tool: the tool in its session; rule: the rule for its key",
      "call",
    )
    .option("--hash <hash>", "the hash that `show` printed: refused if it is not the call's")
    .action(calls(async () => (await import("../../../gate/src/cli/approvals/command.ts")).denyCommand));

  addApproverOptions(
    approvals
      .command("cancel")
      .description("cancel a call that waits, or an approval")
      .argument("<id>", "of the approval"),
  ).action(calls(async () => (await import("../../../gate/src/cli/approvals/command.ts")).cancelCommand));
}

/** Adds the commands with which a person lets calls through that resemble one call. */
export function addGrants(program: Command): void {
  const grants = program
    .command("grants")
    .description("let calls like one call through for some time, without asking again; each act is a row of the ledger")
    .helpCommand(false)
    .addHelpText(
      "after",
      "\nA rule permits grants with `approval: { grants: ... }`, and says what they may be at most." +
        "\nExit code 0: done. 2: refused, and nothing changed." +
        "\n\nExample:\n  svc-gate grants create apr_12_... --key-file anna.key --for 30m --uses 5 --amount 500 --preview",
    );

  addApproverOptions(grants.command("list").description("list the grants in force, with what is left of each")).action(
    calls(async () => (await import("../../../gate/src/cli/approvals/grants.ts")).listGrantsCommand),
  );

  addApproverOptions(
    grants
      .command("create")
      .description("make a grant from a call that waits, or that a person let through")
      .argument("<id>", "of the approval of that call"),
  )
    .option("--for <time>", "how long it lasts, such as 30m (default: as long as the rule permits)")
    .option("--uses <number>", "how many calls it lets through (default: as many as the rule permits)")
    .option("--amount <number>", "how much all its calls may add together; NAME=NUMBER if there are several", many, [])
    .option("--pin <member>", "a member of the input that must stay the same too, such as input.order", many, [])
    .option("--free <member>", "a member of the input that the call lacks and that later calls may have", many, [])
    .option("--width <name>", "how far the command line may differ, as `approvals show` lists it (default: same)")
    .option("--any-session", "for every session of the key, not only that of the call", false)
    .option(
      "--preview",
      "only say how many of the last calls it would have covered, in each width if you name none",
      false,
    )
    .action(calls(async () => (await import("../../../gate/src/cli/approvals/grants.ts")).createGrantCommand));

  addApproverOptions(
    grants
      .command("approve")
      .description("add your yes to a grant that needs more people")
      .argument("<id>", "of the grant"),
  ).action(calls(async () => (await import("../../../gate/src/cli/approvals/grants.ts")).approveGrantCommand));

  addApproverOptions(
    grants.command("revoke").description("end a grant at once").argument("<id>", "of the grant"),
  ).action(calls(async () => (await import("../../../gate/src/cli/approvals/grants.ts")).revokeGrantCommand));
}

function addApproverOptions(command: Command): Command {
  const folder = "the data folder of the gate, which says where it listens";
  return addOperatorOptions(command, folder, "a file with the person's key (default: SVC_APPROVER_KEY)");
}

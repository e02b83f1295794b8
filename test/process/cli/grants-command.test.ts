/**
 * Goal: `svc-gate grants` makes, lists, approves and ends grants with a person's key, and names every mistake. Method: the
 * program runs with a serving gate and two people. UPDATE_GOLDEN=1 rewrites the sentences.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { large, payments, startDesk, type Desk } from "../../support/approvals.ts";
import { command } from "../../support/command.ts";
import { formCommands } from "../../support/form-commands.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const contract = payments.replace(
  "approval: { by: [finance] }",
  "approval: { by: [finance], of: 2, grants: { at_most: 1h, uses: 3, pin: [input.to] } }",
);

/** Runs `svc-gate grants` as a person; returns what it prints, without ids and times. */
function grantsOf(desk: Desk, person: string): (...args: readonly string[]) => Promise<string> {
  const file = join(desk.folder, `${person}.key`);
  writeFileSync(file, `${desk.keys[person]}\n`, { mode: 0o600 });
  return async (...args) => {
    const { stdout, stderr } = await command(["grants", ...args, "--url", desk.address, "--key-file", file]);
    return `${stdout}${stderr}`.trimEnd();
  };
}

function plain(text: string): string {
  return text.replace(/grt_[0-9]+_[0-9a-f]{32}/g, "GRANT").replace(/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z/g, "TIME");
}

test("two people make a grant, and one ends it", async (t) => {
  const desk = await startDesk(t, { contract, persons: { anna: ["finance"], bob: ["finance"], cleo: ["legal"] } });
  const [anna, bob, cleo] = ["anna", "bob", "cleo"].map((person) => grantsOf(desk, person));
  assert.ok(anna !== undefined && bob !== undefined && cleo !== undefined);
  says("no-grant", await anna("list"));
  const { approval } = await desk.asks({ ...large, tool_input: { ...large.tool_input, extra: [1] } });
  const create = ["create", approval.id, "--for", "30m", "--uses", "2", "--amount", "2000"] as const;
  says("preview", await anna(...create, "--preview"));
  says("no-grant", await anna("list"));
  says("made", plain(await anna(...create)));
  says("wrong-group", await cleo(...create));
  const [id = ""] = /grt_\w+/.exec(await anna("list")) ?? [];
  says("approved", plain(await bob("approve", id)));
  says("listed", plain(await bob("list")));
  says("revoked", plain(await bob("revoke", id)));
  says("revoked-again", plain(await bob("revoke", id)));
});

test("a grant by form says how far it reaches, and why it reaches no further", async (t) => {
  const desk = await startDesk(t, { contract: formCommands });
  const anna = grantsOf(desk, "anna");
  const ask = async (text: string): Promise<string> => {
    const call = {
      tool_name: "bash",
      tool_input: { command: text },
      platform_state: { cwd: "/srv/app" },
      session_id: "s",
    };
    return (await desk.asks(call)).approval.id;
  };
  const [wide, narrow, lost] = [
    await ask("publish -m x a.ts"),
    await ask("publish -m x ../a.ts -z"),
    await ask("rm a.ts"),
  ];
  const bounds = ["--for", "8h", "--uses", "50"];
  says("widths", await anna("create", wide, "--preview"));
  says("one width", await anna("create", narrow, "--preview"));
  says("another width", await anna("create", narrow, ...bounds, "--width", "texts"));
  says("a pinned command line", await anna("create", wide, ...bounds, "--width", "texts", "--pin", "input.command"));
  says("a command that deletes", await anna("create", lost, "--preview"));
  says("a grant by form", plain(await anna("create", wide, ...bounds, "--width", "files")));
  const show = async (id: string): Promise<string> => {
    const { stdout } = await command([
      "approvals",
      "show",
      id,
      "--url",
      desk.address,
      "--key-file",
      join(desk.folder, "anna.key"),
    ]);
    return plain(stdout.slice(stdout.search(/\n(?:What a grant|No grant)/), stdout.indexOf("\nhash")).trim());
  };
  says("a card with widths", await show(wide));
  says("a card without a grant", await show(lost));
});

test("a mistake is one sentence, and makes no grant", async (t) => {
  const desk = await startDesk(t, { contract });
  const anna = grantsOf(desk, "anna");
  const { approval } = await desk.asks(large);
  const wrong: Readonly<Record<string, readonly string[]>> = {
    "no amount": [],
    "an amount that is not a number": ["--amount", "much"],
    "an amount for another member": ["--amount", "input.tip=5"],
    "too many uses": ["--amount", "5", "--uses", "4"],
    "uses that are not a number": ["--amount", "5", "--uses", "few"],
    "too long": ["--amount", "5", "--for", "2h"],
    "a time without a unit": ["--amount", "5", "--for", "30"],
    "a pin that the call lacks": ["--amount", "5", "--pin", "input.other"],
    "a pin that is not a member": ["--amount", "5", "--pin", "other"],
  };
  const bounds = ["--for", "30m", "--uses", "1"];
  for (const [name, args] of Object.entries(wrong))
    says(name, plain(await anna("create", approval.id, ...bounds, ...args)));
  says("no bounds", await anna("create", approval.id, "--amount", "5"));
  says("no number of uses", await anna("create", approval.id, "--amount", "5", "--for", "1h"));
  says("an unknown approval", await anna("create", `apr_1_${"0".repeat(32)}`, "--amount", "5"));
  says("no-grant", await anna("list"));
});

/**
 * Goal: without a gate, an operator's command and a person's command do what they do with one: the same routes check
 * the same rights and write the same rows, and the next gate obeys them. Method: a gate parks a call and stops; then
 * commands work on its folder, and a new gate is started. After each refusal, the same command succeeds.
 */
import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { large, payments, startDesk, type Desk } from "../../support/approvals.ts";
import { command } from "../../support/command.ts";
import { ask, key } from "../../support/gate.ts";

interface Said {
  readonly code: number | string;
  readonly text: string;
}

type Run = (...args: readonly string[]) => Promise<Said>;

/** Runs commands on the folder of a desk, as the operator or as the person whose key is given. */
function runnerOn(desk: Desk, person?: string, env: Readonly<Record<string, string>> = {}): Run {
  const file = join(desk.folder, `${person}.key`);
  if (person !== undefined) writeFileSync(file, `${desk.keys[person]}\n`, { mode: 0o600 });
  return async (...args) => {
    const more = person === undefined ? [] : ["--key-file", file];
    const { code, stdout, stderr } = await command([...args, ...more, "--data-dir", join(desk.folder, "data")], {
      env: { SVC_API_KEY: key, ...env },
    });
    return { code, text: `${stdout}${stderr}`.trimEnd() };
  };
}

async function parked(t: TestContext, contract?: string): Promise<{ readonly desk: Desk; readonly id: string }> {
  const desk = await startDesk(t, contract === undefined ? {} : { contract });
  const { approval } = await desk.asks(large);
  await desk.stop();
  return { desk, id: approval.id };
}

test("without a gate, a person lists, shows, and approves a call, and the next gate lets it run once", async (t) => {
  const { desk, id } = await parked(t);
  const [anna, cleo] = [runnerOn(desk, "anna"), runnerOn(desk, "cleo")];
  const listed = await anna("approvals", "list");
  assert.ok(listed.text.startsWith(`${id}  pending`), listed.text);
  const shown = await anna("approvals", "show", id);
  assert.match(shown.text, /"amount": 1200/);
  const refused = await cleo("approvals", "approve", id);
  assert.equal(refused.code, 2, "cleo is not in the group of the rule");
  assert.match(refused.text, /finance/);
  const approved = await anna("approvals", "approve", id);
  assert.match(approved.text, new RegExp(`^${id} is approved \\(row \\d+ records it\\)$`));
  const next = await startDesk(t, { folder: desk.folder, persons: {} });
  const first = await next.asks({ ...large, approval: { id } });
  const again = await next.asks({ ...large, approval: { id } });
  assert.deepEqual([first.verdict, again.verdict], ["ALLOW", "BLOCK"]);
});

test("without a gate, a person denies or cancels a call, and nobody decides without a key of their own", async (t) => {
  const { desk, id } = await parked(t);
  const without = await runnerOn(desk)("approvals", "deny", id, "--comment", "no");
  assert.match(without.text, /a person decides with a key of their own/);
  const denied = await runnerOn(desk, "anna")("approvals", "deny", id, "--comment", "no");
  assert.match(denied.text, / is denied /);
  const again = await runnerOn(desk, "bob")("approvals", "approve", id);
  assert.notEqual(again.code, 0, "a denied call stays denied");
  const next = await startDesk(t, { folder: desk.folder, persons: {} });
  assert.equal((await next.asks(large)).verdict, "BLOCK");
});

test("without a gate, a grant is made, listed and revoked, and the next gate obeys it", async (t) => {
  const contract = payments.replace("{ by: [finance] }", "{ by: [finance], grants: { at_most: 1h, uses: 3 } }");
  const { desk, id } = await parked(t, contract);
  const anna = runnerOn(desk, "anna");
  const made = await anna("grants", "create", id, "--amount", "3000", "--for", "30m", "--uses", "3");
  const [grant = ""] = /grt_\w+/.exec(made.text) ?? [];
  assert.ok(grant !== "", made.text);
  let next = await startDesk(t, { folder: desk.folder, contract, persons: {} });
  assert.equal((await next.asks(large)).verdict, "ALLOW");
  await next.stop();
  assert.match((await anna("grants", "list")).text, /used 1 of 3 times/);
  assert.match((await anna("grants", "revoke", grant)).text, / is revoked$/);
  next = await startDesk(t, { folder: desk.folder, contract, persons: {} });
  assert.equal((await next.asks(large)).verdict, "ESCALATE");
});

test("without a gate, a stop names the tool of an alias, ends approvals, and is lifted by the scope that is listed", async (t) => {
  const contract = payments.replace("  pay.send:\n", "  pay.send:\n    aliases: [send_money]\n");
  const { desk, id } = await parked(t, contract);
  const operator = runnerOn(desk);
  assert.equal((await operator("stop", "--tool", "send_money", "--why", "x")).code, 0);
  const { stops } = JSON.parse((await operator("stop", "--list", "--json")).text);
  assert.deepEqual(stops[0].scope, { tools: ["send_money", "pay.send"] });
  assert.match((await runnerOn(desk, "anna")("approvals", "approve", id)).text, /cancelled/);
  const next = await startDesk(t, { folder: desk.folder, contract, persons: {} });
  assert.match((await next.asks(large)).reason, /operator stopped every call of "send_money", "pay.send": x/);
  await next.stop();
  assert.equal((await operator("stop", "--lift", "--tool", "send_money", "--tool", "pay.send")).code, 0);
  const last = await startDesk(t, { folder: desk.folder, contract, persons: {} });
  assert.equal((await last.asks(large)).verdict, "ESCALATE");
});

test("without a gate, `notify` reads the endpoints of SVC_NOTIFY, and the next gate sends again from the row", async (t) => {
  const { desk } = await parked(t);
  const file = join(desk.folder, "notify.json");
  const secrets = [`whsec_${Buffer.alloc(24, 7).toString("base64")}`];
  writeFileSync(file, JSON.stringify({ endpoints: [{ name: "ops", url: "https://127.0.0.1:9/hook", secrets }] }));
  chmodSync(file, 0o600);
  const run = runnerOn(desk, undefined, { SVC_NOTIFY: file });
  assert.match((await run("notify", "list")).text, /^ops: through row \d+ of \d+; 0 waiting; 0 dead$/);
  assert.match((await run("notify", "replay", "--from", "1")).text, /^all events from row 1 on are sent again to ops/);
  assert.match((await run("notify", "list")).text, /^ops: through row 0 of /);
  assert.match((await runnerOn(desk)("notify", "list")).text, /^no endpoint gets the events/);
});

test("a command without a gate never changes the files of a serving gate: it goes through that gate", async (t) => {
  const desk = await startDesk(t);
  const { approval } = await desk.asks(large);
  assert.match((await runnerOn(desk, "anna")("approvals", "approve", approval.id)).text, / is approved /);
  const { json } = await ask(desk, "/ledger/verify");
  assert.equal(json.ok, true);
  assert.equal((await desk.asks({ ...large, approval: { id: approval.id } })).verdict, "ALLOW");
});

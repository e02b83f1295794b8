/**
 * Goal: a person's vote counts as long as the person may decide, and those who may read an approval see its comment.
 * Method: a gate over HTTP, and the command that shows an approval. Positive controls: planted defects.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { approved, large, naming, runScenarios, type Desk } from "../support/approvals.ts";
import { command } from "../support/command.ts";
import { ask } from "../support/gate.ts";

/** Replaces the key of a person by another one. */
async function newKey(desk: Desk, person: string, groups: readonly string[]): Promise<void> {
  const revoked = await desk.operates(`/admin/keys/${person}-laptop/revoke`, {});
  assert.equal(revoked.status, 200, revoked.text);
  const scopes = ["approve", "receipts"];
  const made = await desk.operates("/admin/keys", { name: `${person}-phone`, scopes, person, groups });
  assert.equal(made.status, 201, made.text);
  Object.assign(desk.keys, { [person]: made.json.key });
}

/** A comment with a character that a terminal does not show. */
const comment = "invoice 4711 is right\u115f";

runScenarios("votes and their comments", [
  {
    rule: "a person whose key was revoked votes again with another key, and that vote counts",
    run: async (desk) => {
      const id = await approved(desk);
      await newKey(desk, "anna", ["finance"]);
      const waiting = await desk.asks(naming(id));
      assert.deepEqual([waiting.verdict, waiting.approval.has], ["ESCALATE", 0]);
      const again = await desk.decides("anna", id, "approve");
      assert.deepEqual([again.json.status, again.json.has], ["approved", 1]);
      assert.notEqual(again.json.receipt, null);
      const third = await desk.decides("anna", id, "approve");
      assert.deepEqual([third.status, third.json.receipt], [200, null], "it changes nothing");
      const shown = await desk.as("bob", `/approvals/${id}`);
      assert.deepEqual(
        shown.json.decisions.map(({ person, receipt }: any) => [person, receipt]),
        [["anna", again.json.receipt.seq]],
      );
      assert.equal((await desk.asks(naming(id))).verdict, "ALLOW");
      assert.equal((await ask(desk, "/ledger/verify")).json.ok, true);
    },
    defect: {
      within: "ApprovalDesk.#isAgain",
      find: "again.has <= this.quorum(approval, at).has",
      put: "true",
    },
  },
  {
    rule: "a person who may read an approval sees the comment of a yes, over HTTP and in the command",
    run: async (desk) => {
      const { approval } = await desk.asks(large);
      await desk.decides("anna", approval.id, "approve", { comment });
      const { json } = await desk.as("bob", `/approvals/${approval.id}`);
      assert.equal(json.decisions[0].comment, comment);
      const file = join(desk.folder, "bob.key");
      writeFileSync(file, desk.keys["bob"] ?? "", { mode: 0o600 });
      const args = ["approvals", "show", approval.id, "--url", desk.address, "--key-file", file];
      const { code, stdout, stderr } = await command(args);
      assert.equal(code, 0, stderr);
      const [{ receipt }] = json.decisions;
      const said = `What people said\n  anna: approve, in row ${receipt}: "invoice 4711 is right\\u115f"\n`;
      assert.ok(stdout.includes(said), stdout);
    },
    defect: { within: "withVote", first: 'vote = { ...vote, comment: "" };' },
  },
  {
    rule: "the key that asked sees no comment of a yes",
    run: async (desk) => {
      const { json: agent } = await desk.operates("/admin/keys", { name: "agent", scopes: ["check"] });
      const { approval } = await desk.asks(large, agent.key);
      await desk.decides("anna", approval.id, "approve", { comment });
      const headers = { authorization: `Bearer ${agent.key}` };
      const shown = await ask(desk, `/approvals/${approval.id}`, { headers });
      assert.deepEqual([shown.status, shown.json.status], [200, "approved"]);
      assert.ok(!shown.text.includes("invoice"), shown.text);
      assert.ok(!(await ask(desk, "/approvals", { headers })).text.includes("invoice"));
    },
    defect: {
      within: "show",
      module: "http/approvals",
      find: "mine && !mayRead(call, latest, Date.now())",
      put: "false",
    },
  },
]);

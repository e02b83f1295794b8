/**
 * Goal: a person answers their own agent only where the rule says so, and never a command that destroys something or that contacts
 * a machine which no form names, nor money, nor a call for which another rule asks too. Method: one gate takes the votes, another one
 * meets the calls. Positive control: a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Desk } from "../support/approvals.ts";
import { ask, type Answer } from "../support/gate.ts";
import { formCommands } from "../support/form-commands.ts";
import { runShared } from "../support/shared-scenarios.ts";

const contract = formCommands.replace("approval: { grants", "approval: { self: true, grants");

interface Asked {
  readonly answer: Answer;
  readonly ask: () => Promise<any>;
}

/** A call of anna's agent, on which she votes herself. */
async function votes(desk: Desk, other: Desk, command: string, over: object = {}): Promise<Asked> {
  const key = await agentOf(desk);
  const platform_state = { cwd: "/srv/app", ...over };
  // At most 20 calls of a session wait at once.
  const session_id = command.slice(0, 60);
  const call = { tool_name: "bash", tool_input: { command }, platform_state, session_id };
  const { approval, verdict } = await desk.asks(call, key);
  assert.equal(verdict, "ESCALATE", command);
  const answer = await other.decides("anna", approval.id, "approve");
  return { answer, ask: () => desk.asks({ ...call, approval: { id: approval.id } }, key) };
}

async function reload(desk: Desk, text: string): Promise<void> {
  writeFileSync(join(desk.folder, "contracts", "pay.yaml"), text);
  const { status, text: said } = await desk.operates("/admin/reload", {});
  assert.equal(status, 200, said);
}

const agents = new WeakMap<Desk, Promise<string>>();

/** A key for an agent of anna's. */
function agentOf(desk: Desk): Promise<string> {
  return agents.getOrInsertComputed(desk, async () => {
    const made = await desk.operates("/admin/keys", { name: "anna-agent", scopes: ["check"], person: "anna" });
    assert.equal(made.status, 201, made.text);
    return made.json.key;
  });
}

const options = { contract };

await runShared("a person answers their own agent", [
  {
    rule: "a rule with `self` takes the yes of the asking key's person, and the row says so",
    options,
    run: async (desk, other) => {
      for (const command of [
        "restart web",
        "unlisted x",
        "git push origin main",
        "publish -m x a.ts",
        "add left-pad @types/node",
        "post --title 'fix: a' --body 'see https://h.example and @bob:x' --base main",
      ]) {
        const { answer, ask: asksAgain } = await votes(desk, other, command);
        assert.equal(answer.status, 200, `${command}: ${answer.text}`);
        const again = await asksAgain();
        assert.deepEqual([again.verdict, again.approval.status], ["ALLOW", "used"], command);
      }
    },
    defect: { within: "mayApprove", find: "asking.self === true", put: "false" },
  },
  {
    rule: "never what destroys, and never what contacts a machine that no form names",
    options,
    run: async (desk, other) => {
      for (const command of [
        "rm a.txt",
        "restart web && rm a.txt",
        "git push https://h.example/x main",
        "git push git@h.example:x main",
        "git push ../x main",
        "git push /srv/x main",
        "git push ~/x main",
        "git push --mirror origin",
        "add https://h.example/x",
        "add left-pad --registry h.example",
        "post --title h.example:x",
        "connect h.example",
        "unlisted https://h.example",
        "unlisted --to=git@h.example:x",
        "unlisted -x < /dev/tcp/h.example/80",
        "AT=https://h.example restart web",
        "VIA=./x git push origin main",
        "unlisted <<E\nhttps://h.example\nE",
        "rm $X",
        "git --namespace x push --mirror origin",
        "git -x push origin main",
        "wrap rm a.txt",
        "wrap --exec 'rm a.txt'",
        "wrap curl.example:80",
        "wrap --host h.example",
        "A=1 wrap x",
        "wrap > a.txt https://h.example",
        "git push h.example/x main",
        "add h/x",
        "node -e '1'",
        "false > a.txt",
        "exec > a.txt",
        `wrap ${"x ".repeat(30)}`,
      ]) {
        const { answer } = await votes(desk, other, command);
        assert.deepEqual([answer.status, answer.json.code], [403, "self-approval"], command);
      }
    },
    defect: { within: "isPersonal", first: "return true;" },
  },
  {
    rule: "never after a change of the contract by which another person must approve it",
    options,
    run: async (desk, other) => {
      const { answer, ask: asksAgain } = await votes(desk, other, "restart web");
      assert.equal(answer.status, 200, answer.text);
      const before = await votes(desk, other, "restart api");
      const lossy = contract.replace("words: [NAME], does: runs, verdict: ESCALATE", "words: [NAME], does: destroys");
      assert.notEqual(lossy, contract);
      for (const each of new Set([desk, other])) await reload(each, lossy);
      for (const again of [asksAgain, before.ask]) {
        const { approval, verdict } = await again();
        assert.equal(verdict, "ESCALATE");
        assert.equal(approval.new, true);
        const { json } = await other.decides("anna", approval.id, "approve");
        assert.equal(json.code, "self-approval");
      }
    },
    defect: { within: "isSameCause", find: "shown.self !== true || now.self === true", put: "true" },
  },
  {
    rule: "never as the maker of the key that asks",
    options,
    run: async (desk, other) => {
      const maker = await desk.operates("/admin/keys", { name: "anna-admin", scopes: ["admin"], person: "anna" });
      const made = await ask(desk, "/admin/keys", {
        method: "POST",
        headers: { authorization: `Bearer ${maker.json.key}`, "content-type": "application/json" },
        body: JSON.stringify({ name: "program", scopes: ["check"] }),
      });
      assert.equal(made.status, 201, made.text);
      const call = { tool_name: "bash", tool_input: { command: "restart web" }, platform_state: { cwd: "/srv/app" } };
      const { approval } = await desk.asks(call, made.json.key);
      const { json } = await other.decides("anna", approval.id, "approve");
      assert.equal(json.code, "self-approval");
    },
    defect: { within: "mayApprove", find: "shared.isAsker", put: "true" },
  },
  {
    rule: "never if another rule asks too",
    options,
    run: async (desk, other) => {
      const { answer } = await votes(desk, other, "restart web", { user: "night" });
      assert.equal(answer.json.code, "self-approval");
    },
    defect: { within: "combineTerms", find: "all.every(({ self }) => self === true)", put: "true" },
  },
  {
    rule: "a grant of one's own lets through only what one could approve",
    options,
    run: async (desk, other) => {
      const key = await agentOf(desk);
      const asks = (command: string): Promise<any> =>
        desk.asks(
          { tool_name: "bash", tool_input: { command }, platform_state: { cwd: "/srv/app" }, session_id: "s1" },
          key,
        );
      const { approval } = await asks("restart web");
      const { json } = await other.as("anna", `/approvals/${approval.id}`);
      const made = await other.as("anna", "/grants", { approval: approval.id, hash: json.hash, width: "texts" });
      assert.deepEqual([made.status, made.json.status], [201, "active"], made.text);
      assert.equal((await asks("restart api")).verdict, "ALLOW");
      assert.equal((await asks("rm a.txt")).verdict, "ESCALATE");
    },
    defect: { within: "grantBody", find: "asking.self === true", put: "false" },
  },
]);

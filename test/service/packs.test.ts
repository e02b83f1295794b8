/**
 * Goal: a pack of commands is a part of the contract in force. Its text is in GET /rules, in the digest and in the
 * ledger. A change of the file takes effect only by a reload, which is a row. `replay` and `verify --deep` decide with
 * the pack of that time. Method: a gate in this process whose pack changes on disk, and then disappears; its ledger
 * and an export.
 */
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { exportCommand } from "../../packages/records/src/export/command.ts";
import { replayCommand } from "../../packages/records/src/replay/command.ts";
import { verifyCommand } from "../../packages/records/src/verify/command.ts";
import { verifyPathCommand } from "../../packages/records/src/verify/path.ts";
import { ask, check, startGate, temporaryFolder, type Answer, type Running } from "../support/gate.ts";

const contract = `contract: desk
commands: { from: [git.yaml] }
tools:
  run:
    input: { type: object, additionalProperties: false, required: [command], properties: { command: { type: string, maxLength: 200 } } }
    otherwise: ESCALATE
rules:
  - rule: known
    on: run
    when: commands(input.command, "/srv/app").verdict == "ALLOW"
    verdict: ALLOW
    reason: "each command is listed"
  - rule: not-known
    on: run
    when: commands(input.command, "/srv/app").verdict == "ESCALATE"
    verdict: ESCALATE
    reason: "{commands(input.command, \\"/srv/app\\").reason}; it was {input.command}"
`;

const pack = (...commands: readonly string[]): string =>
  `pack: git\nforms:\n${commands.map((run) => `  - { run: ${run}, does: reads, examples: [${run}] }\n`).join("")}`;

function write(gate: Running, text: string): void {
  writeFileSync(join(gate.folder, "contracts", "git.yaml"), text);
}

function reload(gate: Running): Promise<Answer> {
  const { key } = JSON.parse(readFileSync(join(gate.folder, "data", "operator.json"), "utf8")) as { key: string };
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return ask(gate, "/admin/reload", { method: "POST", headers, body: "{}" });
}

async function verdictOf(gate: Running, command: string): Promise<string> {
  const { json } = await check(gate, { tool_name: "run", tool_input: { command }, session_id: "s" });
  return json.verdict;
}

const verifyOptions = { json: true, pin: undefined, chain: false, deep: true, database: undefined };
const byHand = { dataDir: "", key: [], witness: [] };
const exportOptions = {
  database: undefined,
  cosigned: false,
  format: undefined,
  from: undefined,
  to: undefined,
  json: true,
};

function deepResult({ text }: { readonly text: string }): object {
  const { ok, rows, deep } = JSON.parse(text) as { ok: boolean; rows: number; deep: { replayed: number } };
  return { ok, rows, replayed: deep.replayed };
}

suite("a pack of commands", () => {
  test("a reason shows the sentence about a command without quotes, and the words of the call escaped", async (t) => {
    const gate = await startGate(t, {
      contracts: { "desk.yaml": contract, "git.yaml": pack("git status") },
      mandate: "mandate: test\ncontracts: [contracts/desk.yaml]\n",
    });
    for (const [command, reason] of [
      ["git push", '`git push`: it is not listed; it was "git push"'],
      ["git 'a`b'", "`git`: `a'b` is not listed here; it was \"git 'a`b'\""],
      ["git 'x\nz'", "`git`: `x\\u000az` is not listed here; it was \"git 'x\\u000az'\""],
      [`git ${"x".repeat(120)}`, undefined],
    ] as const) {
      const { json } = await check(gate, { tool_name: "run", tool_input: { command }, session_id: "s" });
      assert.equal(json.reason.includes("\n"), false);
      assert.ok(json.reason.length < 200, json.reason);
      if (reason !== undefined) assert.equal(json.reason, `Svc: ${reason}`);
    }
  });

  test("a pack is a part of the contract in force, in the ledger and in an export", async (t) => {
    const folder = temporaryFolder(t);
    const gate = await startGate(t, {
      folder,
      contracts: { "desk.yaml": contract, "git.yaml": pack("git status", "git diff") },
      mandate: "mandate: test\ncontracts: [contracts/desk.yaml]\n",
    });
    assert.deepEqual([await verdictOf(gate, "git status"), await verdictOf(gate, "git log")], ["ALLOW", "ESCALATE"]);
    const before = await ask(gate, "/rules");
    assert.match(before.text, /^--- # contracts\/git\.yaml\npack: git$/m);

    write(gate, pack("git log"));
    assert.equal(await verdictOf(gate, "git status"), "ALLOW", "a file that changed is not in force yet");
    assert.equal((await reload(gate)).json.changed, true);
    assert.deepEqual([await verdictOf(gate, "git status"), await verdictOf(gate, "git log")], ["ESCALATE", "ALLOW"]);
    const after = await ask(gate, "/rules");
    assert.notEqual(after.headers.get("etag"), before.headers.get("etag"));
    const old = await ask(gate, `/rules?contract=sha256:${before.headers.get("etag")?.replaceAll('"', "")}`);
    assert.equal(old.text, before.text);

    for (const [text, problem] of [
      ["pack: git\nforms:\n  - { run: git log, does: reads, examples: [git push] }\n", "git push"],
      ["pack: git\nforms:\n  - { run: git log, done: reads }\n", "done"],
    ] as const) {
      write(gate, text);
      const { status, json } = await reload(gate);
      assert.deepEqual([status, json.code], [422, "contract-refused"]);
      assert.ok(
        json.detail.includes(join(folder, "contracts", "git.yaml")) && json.detail.includes(problem),
        json.detail,
      );
    }
    assert.equal(await verdictOf(gate, "git log"), "ALLOW", "a refused pack changes nothing");
    rmSync(join(folder, "contracts", "git.yaml"));
    assert.match((await reload(gate)).json.detail, /`git\.yaml` cannot be read/);

    await gate.stop();
    const data = join(folder, "data");
    const rows = { ok: true, rows: 7, replayed: 6 };
    assert.deepEqual(deepResult(await verifyCommand(data, verifyOptions)), rows);
    const target = join(folder, "export");
    assert.equal((await exportCommand(target, { ...exportOptions, dataDir: data })).exitCode, 0);
    assert.deepEqual(deepResult(await verifyPathCommand(target, { ...verifyOptions, ...byHand })), rows);
    // Under today's contract with the pack of the start, the calls after the reload would be answered otherwise.
    write(gate, pack("git status", "git diff"));
    const replay = await replayCommand(data, { examples: "1", json: true, contract: join(folder, "mandate.yaml") });
    assert.equal(JSON.parse(replay.text).changed, 3);
  });
});

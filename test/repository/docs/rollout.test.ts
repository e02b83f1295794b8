/**
 * Goal: docs/guides/rollout.md shows real output, and rules that observe decide nothing. Method: the page's steps run
 * with gates in this process; each block of output is compared, without timestamps. UPDATE_GOLDEN=1 writes the blocks
 * and the sentences.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { setTimeout } from "node:timers/promises";
import { explainCommand } from "../../../packages/records/src/explain/command.ts";
import { replayCommand, type ReplayCommandOptions } from "../../../packages/records/src/replay/command.ts";
import { reportCommand } from "../../../packages/records/src/report/command.ts";
import { control } from "../../support/controls/control.ts";
import { ask, check, key, startGate, temporaryFolder, type Running } from "../../support/gate.ts";
import { ShownPage } from "../../support/shown-page.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const page = new ShownPage("guides/rollout.md", "rollout");
const block = (name: string): string => page.block(name);
/** Removes the timestamps. */
const assertShown = (name: string, text: string): void =>
  page.assertShown(name, text.replaceAll(/\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z/g, "2026-11-21T09:00:00Z"));

const call = (tool_name: string, tool_input: object, session_id: string): object => ({
  tool_name,
  tool_input,
  session_id,
});
const mail = (session: string): object => call("mail.send", { to: "ada@example.com" }, session);
const refund = (usd: number, order: string, session: string): object => call("refund.give", { usd, order }, session);

/** Sends an administrator's request, with the key of this machine's operator. */
async function change(gate: Running, route: "keys" | "reload", body: object): Promise<void> {
  const operator = JSON.parse(readFileSync(join(gate.folder, "data", "operator.json"), "utf8")) as {
    readonly key: string;
  };
  const headers = { authorization: `Bearer ${operator.key}`, "content-type": "application/json" };
  const { status } = await ask(gate, `/admin/${route}`, { method: "POST", headers, body: JSON.stringify(body) });
  assert.ok(status < 300, `${route}: ${status}`);
}

/** Two sessions of a support agent, as its customers make them. */
const traffic: readonly object[] = [
  refund(20, "A-1", "mon-1"),
  ...Array.from({ length: 4 }, () => mail("mon-1")),
  refund(80, "A-2", "mon-2"),
  refund(25, "A-1", "mon-2"),
  mail("mon-2"),
  call("order.delete", { order: "A-1" }, "mon-2"),
];

const names = ["support.yaml", "support-next.yaml"];
const contracts = (): Record<string, string> => Object.fromEntries(names.map((name) => [name, block(name)]));
const mandate = "mandate: support-agent\ncontracts: [contracts/support.yaml]\n";
const tenth = { receipt: "10", contract: "", key: "default", mode: "enforce", json: false };
const plain: ReplayCommandOptions = { examples: "2", json: false };

function start(t: TestContext, folder: string, mode: string): Promise<Running> {
  return startGate(t, { folder, contracts: contracts(), mandate, flags: { mode } });
}

async function send(gate: Running, calls: readonly object[]): Promise<readonly { readonly verdict: string }[]> {
  const answers = [];
  for (const body of calls) answers.push((await check(gate, body)).json);
  return answers;
}

suite("docs/guides/rollout.md", () => {
  test("docs/guides/rollout.md shows the real output of each step", async (t) => {
    const folder = temporaryFolder(t);
    const data = join(folder, "data");
    // The report counts by day, so all calls must come on one.
    const tomorrowIn = 86_400_000 - (Date.now() % 86_400_000);
    if (tomorrowIn < 30_000) await setTimeout(tomorrowIn);
    const observing = await start(t, folder, "observe");
    assert.ok((await send(observing, traffic)).every(({ verdict }) => verdict === "ALLOW"));
    await observing.stop();
    assertShown("report", (await reportCommand(data, { from: "1", examples: "1", json: false })).text);

    const next = join(folder, "contracts", "support-next.yaml");
    const replayed = await replayCommand(data, { ...plain, contract: next, sum: "input.usd" });
    assert.equal(replayed.exitCode, 1);
    assertShown("replay", replayed.text.replaceAll(`${folder}/`, ""));

    const enforcing = await start(t, folder, "enforce");
    const answers = await send(enforcing, [
      refund(5, "A-3", "tue-1"),
      refund(5, "A-3", "tue-1"),
      ...traffic.slice(1, 5),
    ]);
    assert.deepEqual(
      answers.map(({ verdict }) => verdict),
      ["ALLOW", "ALLOW", "BLOCK", "BLOCK", "BLOCK", "BLOCK"],
    );
    const again = await replayCommand(data, { ...plain, contract: next, last: "6" });
    assert.equal(again.exitCode, 1);
    assertShown("since", again.text.replaceAll(`${folder}/`, ""));
    const agreement = await replayCommand(data, plain);
    assert.equal(agreement.exitCode, 0);
    assertShown("agreement", agreement.text);
    const keyFile = join(folder, "key");
    writeFileSync(keyFile, key);
    const byEnforcing = await replayCommand(data, { ...plain, url: enforcing.address, keyFile });
    assert.equal(byEnforcing.text, agreement.text, "a gate gives the contracts of its older receipts too");
  });
});

suite("the sources of receipts for replay and report", () => {
  test("replay and report give the same result from a folder, a gate and a file", async (t) => {
    const folder = temporaryFolder(t);
    const gate = await start(t, folder, "assist");
    await send(gate, [...traffic, ...traffic]);
    const next = join(folder, "contracts", "support-next.yaml");
    const [keyFile, pages, rules] = ["key", "pages.jsonl", "rules.txt"].map((name) => join(folder, name));
    writeFileSync(keyFile ?? "", `${key}\n`);
    writeFileSync(pages ?? "", (await ask(gate, "/receipts?kind=all&limit=1000")).text);
    writeFileSync(rules ?? "", (await ask(gate, "/rules")).text);
    const sources = [{}, { url: gate.address, keyFile }, { file: pages, rules: [rules ?? ""] }];
    const found = await Promise.all(
      sources.map(async (source) => [
        (await replayCommand(join(folder, "data"), { ...plain, ...source })).text,
        (await reportCommand(join(folder, "data"), { from: "1", examples: "2", json: true, last: "11", ...source }))
          .text,
        (await replayCommand(join(folder, "data"), { ...plain, contract: next, last: "11", ...source })).text,
      ]),
    );
    says("decided-again-as-recorded", found[0]?.[0] ?? "");
    assert.deepEqual(found[1], found[0]);
    assert.deepEqual(found[2], found[0]);
  });

  test("replay and report do not treat a row that records a change as a check", async (t) => {
    const folder = temporaryFolder(t);
    const data = join(folder, "data");
    const gate = await start(t, folder, "enforce");
    await send(gate, traffic);
    await change(gate, "keys", { name: "ci" });
    await send(gate, traffic);
    await change(gate, "reload", { mode: "observe" });
    const pages = (await ask(gate, "/receipts?kind=all&limit=1000")).text;
    const rules = join(folder, "rules.txt");
    writeFileSync(rules, (await ask(gate, "/rules")).text);
    const { text } = await replayCommand(data, plain);
    says("decided-again-as-recorded", text);
    const report = await reportCommand(data, { from: "1", examples: "0", json: true });
    const { receipts, erased, changes } = JSON.parse(report.text);
    assert.deepEqual({ receipts, erased, changes }, { receipts: 18, erased: 0, changes: 2 });
    const shown = (await reportCommand(data, { from: "1", examples: "0", json: false })).text;
    const changed = shown.split("\n").filter((line) => line.startsWith("acts beside "));
    assert.equal(changed.length, 1, shown);
    says("rows-of-changes", changed[0] ?? "");
    await assert.rejects(explainCommand(undefined, { ...tenth, dataDir: data }), /10 is not a check/);

    const forged = join(folder, "forged.jsonl");
    writeFileSync(
      forged,
      pages.replace(String.raw`{\"act\":\"keys.create\"`, String.raw`{\"act\":\"keys.revoke\",\"x\":\"\"`),
    );
    const doubted = await replayCommand("", { ...plain, file: forged, rules: [rules] });
    says("leaf-that-is-not-one", doubted.text);
  });

  test("replay explains each unusable source or option in one sentence", async (t) => {
    const folder = temporaryFolder(t);
    const gate = await start(t, folder, "assist");
    const [wrongKey, notLines] = ["wrong", "not-lines"].map((name) => join(folder, name));
    writeFileSync(wrongKey ?? "", "no such key");
    writeFileSync(notLines ?? "", '{"seq": 1}\n');
    const rows: readonly (readonly [Partial<ReplayCommandOptions>, string])[] = [
      [{ url: gate.address, keyFile: wrongKey }, "wrong-key"],
      [{ url: "http://127.0.0.1:1", keyFile: wrongKey }, "no-gate"],
      [{ file: notLines }, "file-without-receipts"],
      [{ file: join(folder, "none") }, "no-file"],
      [{ sum: "input.usd" }, "sum-without-contract"],
      [{ contract: join(folder, "contracts", "support.yaml"), sum: "input.none" }, "sum-of-no-number"],
      [{ contract: "x", sum: "usd" }, "sum-of-no-member"],
      [{ contract: "x", mode: "loose" }, "unknown-mode"],
      [{ examples: "many" }, "examples-are-no-number"],
    ];
    for (const [options, name] of rows)
      await assert.rejects(replayCommand(join(folder, "data"), { ...plain, ...options }), saying(name));
    await assert.rejects(replayCommand(join(folder, "nothing"), plain), saying("no-ledger"));
  });
});

/** Compares the message of an error with the sentence of this name. */
const saying =
  (name: string) =>
  (error: Error): true => {
    says(name, error.message);
    return true;
  };

const quiet = '  - { rule: quiet, on: refund.give, when: input.usd > 1, verdict: BLOCK, reason: "{input.usd}" }';

suite("a rule in mode observe", () => {
  test("a rule in mode observe is recorded with its errors and decides nothing", async (t) => {
    const contract = [
      block("support.yaml").trimEnd(),
      quiet.replace("verdict:", "mode: observe, verdict:"),
      "  - { rule: wrong, on: refund.give, when: 1 / (input.usd - 20) > 0, mode: observe, verdict: BLOCK, reason: x }",
    ].join("\n");
    const gate = await startGate(t, { contracts: { "support.yaml": contract } });
    assert.equal((await check(gate, refund(20, "A", "s"))).json.verdict, "ALLOW");
    const { json } = await ask(gate, "/receipts/1");
    const outcome = JSON.parse(Buffer.from(json.evidence[4], "base64url").toString())[2];
    assert.deepEqual(outcome, {
      counters: {},
      errors: {},
      fired: [],
      observed: [
        { reason: "20", rule: "support.quiet", verdict: "BLOCK" },
        { reason: outcome.observed[1]?.reason, rule: "support.wrong", verdict: "BLOCK" },
      ],
    });
    says("rule-that-cannot-be-evaluated", outcome.observed[1]?.reason ?? "");
    const report = JSON.parse(
      (await reportCommand(join(gate.folder, "data"), { from: "1", examples: "1", json: true })).text,
    );
    assert.deepEqual(
      report.observing.map(({ rule, effect }: { rule: string; effect: string }) => [rule, effect]),
      [
        ["support.quiet", "ALLOW becomes BLOCK"],
        ["support.wrong", "ALLOW becomes BLOCK"],
      ],
    );
  });

  control("positive control: the same rule without its mode decides", async (t) => {
    const contract = `${block("support.yaml")}${quiet}\n`;
    const gate = await startGate(t, { contracts: { "support.yaml": contract } });
    assert.equal((await check(gate, refund(20, "A", "s"))).json.verdict, "BLOCK");
  });
});

/**
 * Goal: an outcome is taken once, from the right key and in time, and changes exactly the counters that say so. Method: a
 * gate over HTTP gets calls and outcomes. Positive controls: each rule fails on a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { suite, test } from "node:test";
import { reportCommand } from "../../packages/records/src/report/command.ts";
import { approved, naming, large, runScenarios } from "../support/approvals.ts";
import { command } from "../support/command.ts";
import { ask, key, temporaryFolder } from "../support/gate.ts";
import { scenario, settled, startTill, type Till } from "../support/outcomes.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const code = ({ status, json }: { readonly status: number; readonly json: any }): unknown => [status, json.code];

runScenarios("outcomes", [
  scenario(
    "R16: `failed` lowers a counter that settles by outcome, if the key that reports it cannot ask",
    async (till) => {
      const paid = await till.pays(400);
      await till.pays(300);
      const { status, json } = await till.reports("books", paid, "failed");
      assert.deepEqual([status, json.status, json.receipt.seq], [200, "failed", paid.receipt.seq]);
      assert.deepEqual(await till.values(), { spent: 300, gross: 700, paid: 0, finished: 0 });
      assert.equal((await till.pays(900)).verdict, "ALLOW");
      assert.equal((await till.pays(400)).verdict, "BLOCK");
    },
    {
      within: "PendingCounters.settle",
      find: "this.#effects.push(...added, ...taken);",
      put: "this.#effects.push(...added);",
    },
  ),
  scenario(
    "R16: from the key that asked, an outcome never lowers a counter",
    async (till) => {
      const paid = await till.pays(400);
      assert.equal((await till.reports("asker", paid, "failed")).status, 200);
      assert.equal((await till.values()).spent, 400);
      const other = await till.pays(400);
      assert.equal((await till.reports("asker", other, "done", { amount: 1 })).status, 200);
      assert.equal((await till.values()).spent, 800);
    },
    [
      { within: "reportOutcome", find: 'scopes.has("outcome") && !scopes.has("check")', put: "true" },
      { within: "OutcomeDesk.#reportIn", find: "reporter.mayLower && leaf.key !== reporter.name", put: "true" },
    ],
  ),
  scenario(
    "a key that cannot ask may say what really happened after the key that asked has reported",
    async (till) => {
      const paid = await till.pays(400);
      await till.reports("asker", paid, "failed");
      assert.deepEqual(code(await till.reports("asker", paid, "done")), [409, "outcome-refused"]);
      assert.equal((await till.reports("books", paid, "failed")).status, 200);
      assert.equal((await till.values()).spent, 0);
      assert.deepEqual(code(await till.reports("asker", paid, "done")), [409, "outcome-refused"]);
      assert.equal((await till.reports("asker", paid, "failed")).status, 200, "a retry of its own report");
    },
    {
      within: "sameAmong",
      find: 'status === "unknown" || !mayLower || each.outcome.may_lower',
      put: "true",
    },
  ),
  scenario(
    "[P7, P10] the last report of a key that cannot ask is the truth, whatever it leaves out, and it can be corrected",
    async (till) => {
      const paid = await till.pays(400);
      await till.reports("asker", paid, "done", { amount: 900 });
      assert.deepEqual(await till.values(), { spent: 900, gross: 400, paid: 0, finished: 1 });
      for (const [status, more, values] of [
        ["done", {}, { spent: 400, gross: 400, paid: 400, finished: 1 }],
        ["done", { amount: 50 }, { spent: 50, gross: 400, paid: 400, finished: 1 }],
        ["failed", {}, { spent: 0, gross: 400, paid: 0, finished: 0 }],
        ["done", { amount: 60 }, { spent: 60, gross: 400, paid: 400, finished: 1 }],
        ["done", {}, { spent: 400, gross: 400, paid: 400, finished: 1 }],
        ["unknown", {}, { spent: 900, gross: 400, paid: 0, finished: 1 }],
        ["failed", {}, { spent: 0, gross: 400, paid: 0, finished: 0 }],
      ] as const) {
        const said = JSON.stringify([status, more]);
        assert.equal((await till.reports("books", paid, status, more)).status, 200, said);
        assert.deepEqual(await till.values(), values, said);
      }
    },
    { within: "amountAfter", find: "outcomes.findLast($each)", put: "outcomes.find((outcome) => outcome.may_lower)" },
  ),
  scenario(
    "[P7] a call counts as done by its own key's word only where the contract says `claims`, until another key says no",
    async (till) => {
      const paid = await till.pays(400);
      const claimed = await till.reports("asker", paid, "done");
      assert.deepEqual(claimed.json.warnings, [
        `pay.paid counts row ${paid.receipt.seq} when a key that cannot ask for calls reports it`,
      ]);
      assert.deepEqual(await till.values(), { spent: 400, gross: 400, paid: 0, finished: 1 });
      const settledNow = await till.reports("books", paid, "failed");
      assert.equal(settledNow.json.warnings, undefined);
      assert.deepEqual(await till.values(), { spent: 0, gross: 400, paid: 0, finished: 0 });
    },
    { within: "amountAfter", find: "claims && claimed.length > 0", put: "claimed.length > 0" },
  ),
  scenario(
    "[P14] a report that takes nothing back says so, and a retry says it again",
    async (till) => {
      const paid = await till.pays(400);
      const says = `pay.spent still counts row ${paid.receipt.seq}: only a key that cannot ask for calls takes an amount back`;
      for (let round = 0; round < 2; round += 1)
        assert.deepEqual((await till.reports("asker", paid, "failed")).json.warnings, [says]);
      const looked = await till.operates("/admin/reload", {});
      assert.equal(looked.status, 200, looked.text);
      const free = await till.asks({
        ...large,
        tool_name: "pay.free",
        tool_input: {},
        platform_state: { wallet: "w" },
      });
      assert.equal(free.verdict, "ALLOW", free.reason);
      assert.deepEqual((await till.reports("books", free, "failed")).json.warnings, [
        `no counter takes back what row ${free.receipt.seq} added: none that counted it has "settles: outcome"`,
      ]);
    },
    { within: "warningsOf", module: "outcomes/desk", first: "return [];" },
    {
      contract: settled.replace(
        "tools:\n",
        "tools:\n  pay.free: { input: { type: object, additionalProperties: false }, requires: platform.present, otherwise: ALLOW }\n",
      ),
    },
  ),
  scenario(
    "a call has at most 100 outcomes",
    async (till) => {
      const paid = await till.pays(4);
      for (let round = 0; round < 50; round += 1)
        for (const status of ["done", "failed"])
          assert.equal((await till.reports("books", paid, status)).status, 200, `${round}`);
      const more = await till.reports("books", paid, "done");
      assert.deepEqual(code(more), [409, "outcome-refused"]);
      assert.match(more.json.detail, /has 100 outcomes already/);
    },
    { within: "OutcomeDesk.#reportIn", find: "earlier.length >= outcomesMax", put: "false" },
  ),
  scenario(
    "the same outcome again is 200 without a row, and the asking key cannot change a final one",
    async (till) => {
      const paid = await till.pays(400);
      const first = await till.reports("asker", paid, "done");
      const rows = await till.rows();
      const again = await till.reports("asker", paid, "done");
      assert.deepEqual([again.status, again.json], [200, first.json]);
      assert.equal(await till.rows(), rows);
      const other = await till.reports("asker", paid, "failed");
      assert.deepEqual(code(other), [409, "outcome-refused"]);
      assert.match(other.json.detail, /is done already/);
      assert.deepEqual(code(await till.reports("asker", paid, "unknown")), [409, "outcome-refused"]);
      assert.deepEqual(code(await till.reports("asker", paid, "done", { amount: 5 })), [409, "outcome-refused"]);
      assert.equal(await till.rows(), rows);
      const settledBy = await till.reports("books", paid, "done");
      assert.equal(await till.rows(), rows + 1);
      const retried = await till.reports("books", paid, "done");
      assert.deepEqual([retried.status, retried.json], [200, settledBy.json]);
      assert.deepEqual((await till.reports("asker", paid, "done")).json, first.json, "a late retry");
      assert.equal(await till.rows(), rows + 1);
    },
    { within: "mayFollow", find: 'standing.status === "unknown"', put: "true" },
  ),
  scenario(
    "`unknown` is not final, and changes no counter",
    async (till) => {
      const paid = await till.pays(400);
      assert.equal((await till.reports("asker", paid, "unknown")).status, 200);
      const rows = await till.rows();
      assert.equal((await till.reports("books", paid, "unknown")).status, 200);
      assert.equal(await till.rows(), rows);
      const other = await till.pays(100);
      assert.equal((await till.reports("books", other, "unknown")).status, 200);
      assert.equal((await till.values()).spent, 500);
      assert.equal((await till.reports("books", paid, "failed")).status, 200);
      assert.equal((await till.values()).spent, 100);
    },
    {
      within: "amountAfter",
      find: 'truth?.status === "failed"',
      put: 'truth !== undefined && truth.status !== "done"',
    },
  ),
  scenario(
    "`done` with another amount replaces what counted: the key that asked can only raise it",
    async (till) => {
      const [raised, lowered, both] = [await till.pays(100), await till.pays(100), await till.pays(100)];
      await till.reports("asker", raised, "done", { amount: 150.5 });
      await till.reports("books", lowered, "done", { amount: 40 });
      await till.reports("asker", both, "done", { amount: 130 });
      assert.equal((await till.values()).spent, 150.5 + 40 + 130);
      await till.reports("books", both, "done", { amount: 120 });
      assert.deepEqual(await till.values(), { spent: 150.5 + 40 + 120, gross: 300, paid: 200, finished: 3 });
      const free = await till.pays(100);
      await till.reports("asker", free, "done", { amount: 99 });
      assert.equal((await till.values()).spent, 410.5);
      await till.reports("books", free, "done", { amount: 0 });
      assert.equal((await till.values()).spent, 310.5);
    },
    { within: "amountAfter", find: "isAbove(each, most)", put: "true" },
  ),
  scenario(
    "`counting: done` counts each call once, when its outcome `done` comes",
    async (till) => {
      const paid = await till.pays(400);
      await till.pays(100);
      assert.deepEqual(await till.values(), { spent: 500, gross: 500, paid: 0, finished: 0 });
      await till.reports("asker", paid, "done");
      assert.deepEqual(await till.values(), { spent: 500, gross: 500, paid: 0, finished: 1 });
      assert.equal((await till.reports("books", paid, "done")).status, 200);
      assert.deepEqual(await till.values(), { spent: 500, gross: 500, paid: 400, finished: 1 });
      assert.equal((await till.reports("books", paid, "done", { amount: 300 })).status, 200);
      assert.deepEqual(await till.values(), { spent: 400, gross: 500, paid: 400, finished: 1 });
      assert.equal((await till.reports("books", paid, "done", { amount: 400 })).status, 200);
      assert.deepEqual(await till.values(), { spent: 500, gross: 500, paid: 400, finished: 1 });
    },
    { within: "settlementOf", find: 'counter.counting === "done" ? [] : called', put: "called" },
  ),
  scenario(
    "R16: only a call that was let through has an outcome",
    async (till) => {
      const blocked = await till.pays(2000);
      assert.equal(blocked.verdict, "BLOCK");
      assert.deepEqual(code(await till.reports("books", blocked, "done")), [409, "outcome-refused"]);
      const parked = await till.pays(1200);
      assert.equal(parked.verdict, "ESCALATE");
      assert.deepEqual(code(await till.reports("books", parked, "done")), [409, "outcome-refused"]);
      const { outcome } = (await till.reports("asker", await till.pays(1), "done")).json;
      assert.deepEqual(code(await till.reports("books", { receipt: outcome }, "done")), [409, "outcome-refused"]);
      assert.deepEqual(await till.values(), { spent: 1201, gross: 1, paid: 0, finished: 1 });
    },
    { within: "hasOutcome", find: 'answered === "ALLOW"', put: "true" },
  ),
  scenario(
    "R16: observe mode takes no outcomes",
    async (till) => {
      const paid = await till.pays(400);
      assert.deepEqual(code(await till.reports("books", paid, "failed")), [409, "outcome-refused"]);
      assert.deepEqual(code(await till.reports("asker", paid, "done")), [409, "outcome-refused"]);
    },
    { within: "hasOutcome", find: 'mode !== "observe"', put: "true" },
    { mode: "observe" },
  ),
  scenario(
    "R16: another key that asks may not report",
    async (till) => {
      const paid = await till.pays(400);
      const made = await till.operates("/admin/keys", { name: "other", scopes: ["check", "outcome"] });
      const answer = await ask(till, "/outcomes", {
        method: "POST",
        headers: { authorization: `Bearer ${made.json.key}`, "content-type": "application/json" },
        body: JSON.stringify({ receipt: { seq: paid.receipt.seq, hash: paid.receipt.hash }, status: "done" }),
      });
      assert.deepEqual(code(answer), [403, "forbidden"]);
      assert.equal((await till.values()).finished, 0);
    },
    {
      within: "OutcomeDesk.#reportIn",
      find: "if (!reporter.mayLower && leaf.key !== reporter.name) return $answer;",
      put: "",
    },
  ),
  scenario(
    "R16: an outcome is taken in time, or not at all",
    async (till) => {
      const paid = await till.pays(400);
      await new Promise((resolve) => setTimeout(resolve, 1100));
      const late = await till.reports("books", paid, "failed");
      assert.deepEqual(code(late), [409, "outcome-refused"]);
      assert.equal((await till.values()).spent, 400);
    },
    { within: "OutcomeDesk.#reportIn", find: "at > leaf.at + outcomeWithinMs", put: "false" },
    { mandate: "mandate: test\ncontracts: [contracts/pay.yaml]\napprovals: { outcome_within: 1s }\n" },
  ),
  scenario(
    "a call that a person approved is taken back like every other call",
    async (till) => {
      const id = await approved(till);
      const used = await till.asks(naming(id, { ...large }));
      assert.equal(used.verdict, "ALLOW", used.reason);
      assert.equal((await till.values()).spent, 1200);
      await till.reports("books", used, "failed");
      assert.deepEqual(await till.values(), { spent: 0, gross: 1200, paid: 0, finished: 0 });
    },
    { within: "OutcomeTables.withoutTaken", find: "if (!this.#hasTaken) return value;", put: "return value;" },
  ),
  scenario(
    "R18: the caller's own reference is stored as a keyed digest only",
    async (till) => {
      const paid = await till.pays(400);
      const { outcome } = (await till.reports("books", paid, "done", { ref: "stripe-4242" })).json;
      const { json, text } = await ask(till, `/receipts/${outcome.seq}`);
      const { ref, ...rest } = json.tool_input;
      assert.match(ref, /^[0-9a-f]{64}$/);
      const { seq: row, hash } = paid.receipt;
      assert.deepEqual(rest, { before: [], hash, may_lower: true, row, rules: 2, status: "done" });
      assert.doesNotMatch(text, /stripe/);
    },
    { within: "OutcomeDesk.#reportIn", find: "transaction.digest(`${refDomain}${given.ref}`)", put: "given.ref" },
  ),
]);

suite("outcomes", () => {
  test("a body with an unknown or wrong member is refused", async (t) => {
    const till = await startTill(t);
    const { receipt } = await till.pays(1);
    const { seq, hash } = receipt;
    const bodies: readonly (readonly [object, number])[] = [
      [{ receipt, status: "done" }, 200],
      [{ receipt: { seq, hash }, status: "done", by: "me" }, 400],
      [{ receipt: { seq, hash, extra: 1 }, status: "done" }, 400],
      [{ receipt: { seq, hash: hash.slice(1) }, status: "done" }, 400],
      [{ receipt: { seq: String(seq), hash }, status: "done" }, 400],
      [{ receipt: [seq, hash], status: "done" }, 400],
      [{ status: "done" }, 400],
      [{ receipt: { seq, hash } }, 400],
      [{ receipt: { seq, hash }, status: "ok" }, 400],
      [{ receipt: { seq, hash }, status: "done", amount: -1 }, 400],
      [{ receipt: { seq, hash }, status: "done", amount: "1" }, 400],
      [{ receipt: { seq, hash }, status: "failed", amount: 1 }, 400],
      [{ receipt: { seq, hash }, status: "done", ref: "" }, 400],
      [{ receipt: { seq, hash }, status: "done", ref: "x".repeat(257) }, 400],
      [{ receipt: { seq, hash: "0".repeat(64) }, status: "done" }, 404],
      [{ receipt: { seq: seq + 50, hash }, status: "done" }, 404],
    ];
    for (const [body, status] of bodies) {
      const answer = await ask(till, "/outcomes", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      assert.equal(answer.status, status, `${JSON.stringify(body)}: ${answer.text}`);
    }
  });

  test("receipts show the outcome, and calls without one can be listed", async (t) => {
    const till = await startTill(t);
    const [done, failed, open, missing] = [
      await till.pays(1),
      await till.pays(2),
      await till.pays(3),
      await till.pays(4),
    ];
    await till.pays(5000);
    await till.reports("asker", done, "done");
    await till.reports("asker", failed, "unknown");
    const { outcome } = (await till.reports("books", failed, "failed")).json;
    await till.reports("asker", open, "unknown");
    const shown = (await ask(till, `/receipts/${failed.receipt.seq}`)).json.outcome;
    assert.deepEqual(shown, { status: "failed", seq: outcome.seq });
    assert.equal((await ask(till, `/receipts/${missing.receipt.seq}`)).json.outcome, undefined);
    const listed = async (query: string): Promise<unknown> =>
      (await ask(till, `/receipts?${query}`)).json.receipts.map(({ seq }: { readonly seq: number }) => seq);
    assert.deepEqual(await listed("outcome=missing"), [missing.receipt.seq]);
    assert.deepEqual(await listed("outcome=done"), [done.receipt.seq]);
    assert.deepEqual(await listed("outcome=failed&tool_name=pay.send"), [failed.receipt.seq]);
    assert.deepEqual(await listed("outcome=unknown&key=default"), [open.receipt.seq]);
    assert.equal((await ask(till, "/receipts?outcome=gone")).status, 400);
  });

  test("an amount that two different numbers of a call could mean is refused", async (t) => {
    const two = settled.replace(
      "  gross: { of: [pay.send], per: platform.wallet, sum: input.amount, counting: released, within: 24h }",
      "  gross: { of: [pay.send], per: platform.wallet, sum: input.amount * 2, counting: released, settles: outcome }",
    );
    const till = await startTill(t, { contract: two });
    const paid = await till.pays(10);
    const answer = await till.reports("books", paid, "done", { amount: 9 });
    assert.deepEqual(code(answer), [409, "outcome-refused"]);
    assert.match(answer.json.detail, /pay\.spent, pay\.gross/);
    assert.equal((await till.reports("books", paid, "failed")).status, 200);
    assert.deepEqual(await till.values(), { spent: 0, gross: 0, paid: 0, finished: 0 });
  });

  test("a ledger with outcomes verifies, and is decided again to the same answers, also after a restart", async (t) => {
    const first = await startTill(t);
    await mixed(first);
    const values = await first.values();
    await first.stop();
    const later = settled
      .replace("paid: { of", "paid: { when: input.amount < 1000, of")
      .replace(
        "spent: { of: [pay.send], per: platform.wallet, sum: input.amount, counting: possible, within: 24h",
        "spent: { of: [pay.send], per: platform.wallet, sum: input.amount, counting: possible, within: 25h",
      );
    const till = await startTill(t, { folder: first.folder, persons: {}, contract: later }, first.books);
    assert.deepEqual(await till.values(), values, "the new counters are folded from the rows");
    const { json } = await ask(till, "/ledger/verify");
    assert.equal(json.ok, true, JSON.stringify(json));
    await till.stop();
    const data = `${till.folder}/data`;
    for (const args of [
      ["verify", data],
      ["verify", "--deep", data],
      ["replay", data],
    ]) {
      const { code: exit, stdout, stderr } = await command(args);
      assert.equal(exit, 0, `${args.join(" ")}: ${stdout}${stderr}`);
    }
    const to = join(temporaryFolder(t), "export");
    assert.equal((await command(["export", to, "--data-dir", data])).code, 0);
    const deep = await command(["verify", "--deep", to]);
    assert.equal(deep.code, 0, `${deep.stdout}${deep.stderr}`);
    const { vkeys } = JSON.parse(readFileSync(join(to, "log.json"), "utf8")) as { readonly vkeys: readonly string[] };
    for (const [program, verifier] of [
      [process.execPath, "svc-verify.mjs"],
      ["python3", "svc_verify.py"],
    ] as const) {
      const given = [join(root, "verify", verifier), to, "--key", vkeys[0] ?? ""];
      assert.equal(JSON.parse(spawnSync(program, given, { encoding: "utf8" }).stdout).ok, true, verifier);
    }
  });

  test("the report counts outcomes, and calls without one", async (t) => {
    const till = await startTill(t);
    await mixed(till);
    await till.stop();
    const options = { from: "1", examples: "0" };
    const report = (json: boolean): ReturnType<typeof reportCommand> =>
      reportCommand(`${till.folder}/data`, { ...options, json });
    const { outcomes } = JSON.parse((await report(true)).text);
    assert.deepEqual(outcomes, { let_through: 12, done: 6, failed: 4, unknown: 0, missing: 2 });
    assert.match((await report(false)).text, /6 done, 4 failed, 0 unknown, 2 without one/);
  });

  test("an erased call still takes its outcome", async (t) => {
    const till = await startTill(t);
    const paid = await till.pays(400);
    const erased = await till.operates("/admin/erase", {
      rows: [[paid.receipt.seq, paid.receipt.seq]],
      parts: ["call", "input"],
      reason: "asked",
    });
    assert.equal(erased.status, 200, erased.text);
    assert.equal((await till.reports("books", paid, "failed")).status, 200);
    assert.equal((await till.values()).spent, 0);
    assert.equal((await ask(till, "/ledger/verify")).json.ok, true);
  });

  test("the key of the environment can report outcomes of its calls", async (t) => {
    const till = await startTill(t);
    assert.ok(key.length > 0);
    assert.equal((await till.reports("asker", await till.pays(1), "done", { ref: "1" })).status, 200);
  });
});

/** Outcomes of every kind, on several wallets. */
async function mixed(till: Till): Promise<void> {
  for (const wallet of ["w", "v"]) {
    const answers = [];
    for (let amount = 10; amount <= 60; amount += 10) answers.push(await till.pays(amount, wallet));
    const [one, two, three, four, five] = answers;
    await till.reports("asker", one, "unknown");
    await till.reports("books", one, "failed");
    await till.reports("asker", two, "done", { amount: 25 });
    await till.reports("books", two, "done", { amount: 21.5 });
    await till.reports("books", three, "done");
    await till.reports("asker", four, "failed");
    await till.reports("asker", five, "failed");
    await till.reports("books", five, "done", { amount: 49 });
  }
}

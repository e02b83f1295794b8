/**
 * Goal: a grant lets through exactly the calls that a person meant, for as long as the person meant, and no longer (rule
 * R9 and complaint C20 of the design of approvals). Method: scenarios against a gate over HTTP. Positive control: the
 * same scenario fails on a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import {
  assertLedgerValid,
  large,
  losesRows,
  naming,
  payments,
  runScenarios,
  startDesk,
  type Desk,
  type Scenario,
} from "../support/approvals.ts";
import { control } from "../support/controls/control.ts";
import { ask, root, temporaryFolder, type Answer } from "../support/gate.ts";

const hourMs = 3_600_000;

/** Payments of which a person may grant three within an hour, to the same payee. */
const granting = payments
  .replace(
    "approval: { by: [finance] }",
    "approval: { by: [finance], grants: { at_most: 1h, uses: 3, pin: [input.to] } }",
  )
  .replace("> 2500", "> 250000");

const paying = (amount: number, over: object = {}): object => ({
  ...large,
  ...over,
  tool_input: { amount, to: "anna", ...(over as { readonly tool_input?: object }).tool_input },
});

/** Parks the payment of 1,200, and makes a grant from it. */
async function granted(desk: Desk, grant: object = {}): Promise<Answer> {
  const { approval } = await desk.asks(large);
  return grants(desk, approval.id, grant);
}

async function grants(desk: Desk, id: string, grant: object, person = "anna"): Promise<Answer> {
  const { json } = await desk.as(person, `/approvals/${id}`);
  return desk.as(person, "/grants", { approval: id, hash: json.hash, amounts: { "input.amount": 4000 }, ...grant });
}

async function verdictOf(desk: Desk, call: object): Promise<string> {
  return (await desk.asks(call)).verdict;
}

async function made(desk: Desk, grant: object = {}): Promise<any> {
  const { status, json, text } = await granted(desk, grant);
  assert.equal(status, 201, text);
  return json;
}

const scenarios: readonly Scenario[] = [
  {
    rule: "a grant lets calls like its own through, each named in the ledger",
    options: { contract: granting },
    run: async (desk) => {
      const { id, status, receipt } = await made(desk);
      assert.equal(status, "active");
      const { verdict, reason, approval, receipt: row } = await desk.asks(paying(1100));
      assert.equal(verdict, "ALLOW", reason);
      assert.match(reason, /^Svc: anna granted calls like this one, which a rule parked: 1100 is a large payment/);
      assert.deepEqual([approval.id, approval.status, approval.next], [id, "granted", "none"]);
      const { asked } = await desk.outcomeOf(row.seq);
      assert.deepEqual([asked.how, asked.grant], ["grant", receipt.seq]);
      const { json } = await ask(desk, "/receipts?kind=all&limit=1");
      assert.equal(json.receipts[0].act, "approval.use");
      const [shown] = (await desk.as("anna", "/grants")).json.grants;
      assert.deepEqual([shown.used, shown.spent, shown.free], [1, { "input.amount": "1100" }, ["input.note"]]);
    },
    defect: { within: "answeredAfter", find: 'how === "used" || how === "grant"', put: 'how === "used"' },
  },
  {
    rule: "C20: a grant past the cap of the rule is refused with 400, and nothing is shortened",
    options: { contract: granting },
    run: async (desk) => {
      const { approval } = await desk.asks(large);
      const rows = await desk.rows();
      for (const past of [{ uses: 4 }, { until: Date.now() + 2 * hourMs }, { until: Date.now() - 1 }])
        assert.equal((await grants(desk, approval.id, past)).status, 400, JSON.stringify(past));
      assert.equal(await desk.rows(), rows);
    },
    defect: { within: "lengthFor", find: "uses > offer.uses", put: "false" },
  },
  {
    rule: "C20: a grant ends at its time when a call uses it, without any sweep",
    options: { contract: granting },
    run: async (desk) => {
      await made(desk, { until: Date.now() + 1500 }); // short wait: the case is about the end
      assert.equal(await verdictOf(desk, paying(1100)), "ALLOW");
      await new Promise((resolve) => setTimeout(resolve, 1600));
      assert.equal(await verdictOf(desk, paying(1101)), "ESCALATE");
      assert.deepEqual((await desk.as("anna", "/grants")).json.grants, []);
    },
    defect: {
      within: "coveredAmounts",
      find: "call.at < grant.until && grant.used < grant.uses",
      put: "grant.used < grant.uses",
    },
  },
  {
    rule: "C20: a grant has a number of uses, also within one batch",
    options: { contract: granting },
    run: async (desk) => {
      await made(desk, { uses: 2 });
      const calls = [1001, 1002, 1003, 1004, 1005].map((amount) => verdictOf(desk, paying(amount)));
      const verdicts = await Promise.all(calls);
      assert.equal(verdicts.filter((verdict) => verdict === "ALLOW").length, 2, verdicts.join());
    },
    defect: { within: "withUse", find: "grant.used + 1", put: "grant.used" },
  },
  {
    rule: "R9: no call of a grant is larger than the call that it was made from",
    options: { contract: granting },
    run: async (desk) => {
      await made(desk);
      assert.equal(await verdictOf(desk, paying(1201)), "ESCALATE");
      assert.equal(await verdictOf(desk, paying(1199)), "ALLOW");
    },
    defect: { within: "coveredAmounts", find: "isAbove(value, top)", put: "false" },
  },
  {
    rule: "R9: all calls of a grant together stay within the amount that the person typed",
    options: { contract: granting },
    run: async (desk) => {
      await made(desk, { amounts: { "input.amount": 2300 } });
      const verdicts = [await verdictOf(desk, paying(1200)), await verdictOf(desk, paying(1101))];
      assert.deepEqual([...verdicts, await verdictOf(desk, paying(1100))], ["ALLOW", "ESCALATE", "ALLOW"]);
    },
    defect: {
      within: "coveredAmounts",
      find: 'isAbove(addDecimals(grant.spent[member] ?? "0", value), amount)',
      put: "isAbove(value, amount)",
    },
  },
  {
    rule: "R9: a call with another value of a pinned member is not covered, and a member that is free may differ",
    options: { contract: granting },
    run: async (desk) => {
      const { approval } = await desk.asks(paying(1200, { tool_input: { extra: "one" } }));
      const { json } = await grants(desk, approval.id, {});
      assert.deepEqual(json.free, ["input.extra", "input.note"]);
      const covered = (input: object): Promise<string> => verdictOf(desk, paying(1100, { tool_input: input }));
      assert.equal(await covered({ to: "eve", extra: "one" }), "ESCALATE");
      assert.equal(await covered({ extra: "two", note: "unbound" }), "ALLOW");
      assert.equal(await covered({}), "ALLOW", "without the member");
    },
    defect: { within: "coveredAmounts", find: "call.pin(member) !== digest", put: "false" },
  },
  {
    rule: "a grant is bound to the facts that say whose money the call uses",
    options: { contract: granting },
    run: async (desk) => {
      await made(desk);
      assert.equal(await verdictOf(desk, paying(1100, { platform_state: { wallet: "other" } })), "ESCALATE");
      assert.equal(await verdictOf(desk, paying(1100)), "ALLOW");
    },
    defect: {
      within: "ApprovableCall.#offer",
      first: "this.#plan.prepared.plan = { ...this.#plan.prepared.plan, subject: [] };",
    },
  },
  {
    rule: "a grant holds for one session, unless the person grants every session of the key",
    options: { contract: granting },
    run: async (desk) => {
      await made(desk);
      const other = paying(1100, { session_id: "s2" });
      assert.equal(await verdictOf(desk, other), "ESCALATE");
      const { approval } = await desk.asks(other);
      assert.equal((await grants(desk, approval.id, { any_session: true })).status, 201);
      assert.equal(await verdictOf(desk, paying(1050, { session_id: "s3" })), "ALLOW");
    },
    defect: { within: "coveredAmounts", find: "call.session === grant.place", put: "true" },
  },
  {
    rule: "a grant lifts only the rules that the person was shown",
    options: { contract: granting },
    run: async (desk) => {
      await made(desk);
      const dear = paying(1100, { platform_state: { wallet: "w", price: 50 } });
      assert.equal(await verdictOf(desk, dear), "ESCALATE");
      const { reason } = await desk.asks(paying(1100, { tool_input: { to: "nobody" } }));
      assert.match(reason, /nobody gets money/);
    },
    defect: [
      {
        within: "coveredAmounts",
        find: "rules.some(([rule, meaning]) => grant.causes[rule] !== meaning)",
        put: "false",
      },
      { within: "BatchApprovals.grantFor", find: "grants === undefined", put: "false" },
    ],
  },
  {
    rule: "a person can end a grant at once",
    options: { contract: granting },
    run: async (desk) => {
      const { id } = await made(desk);
      const { status, json } = await desk.as("bob", `/grants/${id}/revoke`, {});
      assert.deepEqual([status, json.status], [200, "revoked"]);
      assert.equal(await verdictOf(desk, paying(1100)), "ESCALATE");
      assert.equal((await desk.as("bob", `/grants/${id}/revoke`, {})).status, 404);
    },
    defect: { within: "afterAct", find: 'act.act === "grant.revoke"', put: "false" },
  },
  {
    rule: "a stop ends the grants in its scope, and lifting the stop does not bring them back",
    options: { contract: granting },
    run: async (desk) => {
      await made(desk);
      const scope = { tools: ["pay.send"] };
      await desk.operates("/admin/stop", { scope, why: "drill", approvals: "keep" });
      await desk.operates("/admin/stop/lift", { scope });
      assert.equal(await verdictOf(desk, paying(1100)), "ESCALATE");
    },
    defect: { within: "endsGrant", find: '"tools" in scope', put: "false" },
  },
  {
    rule: "R18: erasing a part of the row that a grant was made from ends the grant",
    options: { contract: granting },
    run: async (desk) => {
      const { approval, receipt } = await desk.asks(large);
      assert.equal((await grants(desk, approval.id, {})).status, 201);
      const erased = await desk.operates("/admin/erase", {
        rows: [[receipt.seq, receipt.seq]],
        parts: ["input"],
        reason: "asked for",
      });
      assert.equal(erased.status, 200, erased.text);
      assert.deepEqual((await desk.as("anna", "/grants")).json.grants, []);
      assert.equal(await verdictOf(desk, paying(1100)), "ESCALATE");
    },
    defect: [
      { within: "withGrantRow", find: "from <= source && source <= to && source < seq", put: "false" },
      {
        within: "knownGrants",
        find: "source === undefined ? [] : [[grant.row, { grant, source }]]",
        put: "[{ grant, source: { pin: () => '', number: () => '9999', members: () => [] } }]",
      },
    ],
  },
  {
    rule: "R18: the row of a grant holds no value of the call",
    options: { contract: granting },
    run: async (desk) => {
      const { receipt } = await made(desk, { pins: ["input.amount"] });
      const { json } = await ask(desk, `/receipts/${receipt.seq}`);
      const input = (json.evidence as readonly string[])
        .map((part) => Buffer.from(part, "base64url").toString())
        .find((part) => part.includes('"pins"'));
      assert.ok(input !== undefined);
      // Salt and digests are random, and may contain anything.
      const said = input.replace(/^\["[\w-]{22}"/, "").replaceAll(/[0-9a-f]{64}/g, "");
      for (const value of ['"w"', "s1", "1200"]) assert.ok(!said.includes(value), `${value} in ${input}`);
    },
    defect: { within: "pinDigest", find: "return digest($text);", put: "return text;" },
  },
  {
    rule: "a denial comes before a grant",
    options: { contract: granting },
    run: async (desk) => {
      await made(desk);
      const again = await desk.asks(paying(1201));
      await desk.decides("anna", again.approval.id, "deny", { scope: "rule" });
      assert.equal(await verdictOf(desk, paying(1100)), "BLOCK");
    },
    defect: { within: "judgeCall", find: "if (denial !== undefined) return $denied;", put: "" },
  },
  {
    rule: "the vote for a grant does not count any more when the person's key is revoked",
    options: { contract: granting },
    run: async (desk) => {
      await made(desk);
      assert.equal((await desk.operates("/admin/keys/anna-laptop/revoke", {})).status, 200);
      assert.equal(await verdictOf(desk, paying(1100)), "ESCALATE");
    },
    defect: { within: "BatchApprovals.grantFor", find: "quorum?.isMet === true", put: "quorum !== undefined" },
  },
  {
    rule: "a changed rule ends what a grant lifts",
    options: { contract: granting },
    run: async (desk) => {
      await made(desk);
      writeFileSync(join(desk.folder, "contracts", "pay.yaml"), granting.replace("> 1000", "> 999"));
      const reloaded = await desk.operates("/admin/reload", {});
      assert.equal(reloaded.status, 200, reloaded.text);
      assert.equal(await verdictOf(desk, paying(1100)), "ESCALATE");
    },
    defect: { within: "coveredAmounts", find: "grant.causes[rule] !== meaning", put: "!(rule in grant.causes)" },
  },
  {
    rule: "a rule of two people needs two people for a grant",
    options: { contract: granting.replace("by: [finance], grants", "by: [finance], of: 2, grants") },
    run: async (desk) => {
      for (const name of ["anna", "bob"])
        await desk.operates(`/admin/keys/${name}-laptop/update`, { groups: ["finance"] });
      const { id, status, receipt } = await made(desk);
      assert.equal(status, "pending");
      assert.equal(await verdictOf(desk, paying(1100)), "ESCALATE");
      const second = await desk.as("bob", `/grants/${id}/approve`, { hash: receipt.hash });
      assert.equal(second.status, 200, second.text);
      const again = await desk.as("bob", `/grants/${id}/approve`, { hash: receipt.hash });
      assert.equal(again.json.receipt, null, "the same yes again adds no row");
      assert.equal((await desk.as("bob", `/grants/${id}/approve`, { hash: "0".repeat(64) })).status, 409);
    },
    defect: { within: "BatchApprovals.grantFor", find: "quorum?.isMet === true", put: "quorum !== undefined" },
  },
  {
    rule: "a preview says what the grant would have let through, and writes nothing",
    options: { contract: granting },
    run: async (desk) => {
      for (const amount of [1001, 1002, 1003, 1004, 1300]) await desk.asks(paying(amount));
      await desk.asks(paying(1003));
      const { approval } = await desk.asks(large);
      const rows = await desk.rows();
      const { status, json, text } = await grants(desk, approval.id, { preview: true });
      assert.equal(status, 200, text);
      assert.deepEqual([json.covers, json.of], [3, 7], "three uses, and no more");
      assert.equal(await desk.rows(), rows);
      assert.equal(await verdictOf(desk, paying(1100)), "ESCALATE");
    },
    defect: { within: "GrantDesk.#computePreview", find: "grant = withUse(grant, amounts);", put: "" },
  },
  {
    rule: "a yes can make a grant in the same transaction, and a refused grant takes the yes with it",
    options: { contract: granting },
    run: async (desk) => {
      const { approval } = await desk.asks(large);
      const amounts = { "input.amount": 4000 };
      const refused = await desk.decides("anna", approval.id, "approve", { grant: { amounts, uses: 4 } });
      assert.equal(refused.status, 400, refused.text);
      assert.equal((await desk.as("anna", `/approvals/${approval.id}`)).json.status, "pending");
      const { status, json, text } = await desk.decides("anna", approval.id, "approve", { grant: { amounts } });
      assert.deepEqual([status, json.status], [200, "approved"], text);
      assert.match(json.grant, /^grt_/);
      assert.equal(await verdictOf(desk, naming(approval.id)), "ALLOW");
      assert.equal(await verdictOf(desk, paying(1100)), "ALLOW");
    },
    defect: { within: "ApprovalDesk.#decideIn", find: "grant?.ok === false", put: "false" },
  },
  {
    rule: "a call that waits for a person, and that a grant then covers, ends with its hold",
    options: { contract: granting },
    run: async (desk) => {
      const waiting = await desk.asks(paying(1100));
      await made(desk);
      assert.equal(await verdictOf(desk, paying(1100)), "ALLOW");
      const { json } = await desk.as("anna", `/approvals/${waiting.approval.id}`);
      assert.equal(json.status, "superseded");
    },
    defect: {
      within: "judgeCall",
      find: 'return { how: "grant", misfits, supersedes: same, ...granted };',
      put: 'return { how: "grant", misfits, supersedes: undefined, ...granted };',
    },
  },
  {
    rule: "a card says what a grant may be at most, and names each member that it leaves free",
    options: { contract: granting },
    run: async (desk) => {
      const { approval } = await desk.asks(paying(1200, { tool_input: { extra: { a: 1 } } }));
      const { json } = await desk.as("anna", `/approvals/${approval.id}`);
      assert.deepEqual(json.grants_allowed, {
        at_most_ms: hourMs,
        uses: 3,
        pins: ["input.to", "platform.wallet"],
        sums: ["input.amount"],
        most: [],
        least: [],
        free: ["input.extra.a", "input.note"],
      });
      const { approval: dear } = await desk.asks({ ...paying(5), platform_state: { wallet: "w", price: 50 } });
      assert.equal((await desk.as("anna", `/approvals/${dear.id}`)).json.grants_allowed, false);
    },
    defect: {
      within: "freeMembers",
      find: "!isAmong(path, bound) && !isAround(path, index)",
      put: "!isAmong(path, bound)",
    },
  },
];

runScenarios("grants", scenarios);

/** The published contract for payments, with a call of unusual price. */
const published = readFileSync(join(root, "contracts", "payments.yaml"), "utf8");

const unusual = (amount: number, payee = "0xanna"): object => ({
  tool_name: "payment.send",
  tool_input: { amount, currency: "USD", payee_address: payee, offer_expires_epoch: 4_000_000_000 },
  session_id: "s1",
  platform_state: {
    monthly_spend_usd: 0,
    approved_payees: ["0xanna", "0xeve"],
    historical_price_usd: 10,
    now_epoch: Math.floor(Date.now() / 1000),
  },
});

runScenarios("contracts/payments.yaml", [
  {
    rule: "a person grants payments of unusual price to one payee, and a failed payment gives its amount back",
    options: { contract: published },
    run: async (desk) => {
      const { approval } = await desk.asks(unusual(40));
      assert.equal((await grants(desk, approval.id, { amounts: { "input.amount": 500 } })).status, 201);
      const rows: any[] = [];
      for (const amount of [40, 39, 38]) {
        const answer = await desk.asks(unusual(amount));
        assert.equal(answer.verdict, "ALLOW", answer.reason);
        rows.push(answer.receipt);
      }
      assert.equal(await verdictOf(desk, unusual(41)), "ESCALATE", "larger than the payment that anna saw");
      assert.equal(await verdictOf(desk, unusual(20, "0xeve")), "ESCALATE", "another payee");
      assert.equal(await verdictOf(desk, unusual(35)), "BLOCK", "the budget of 200 USD still holds");
      const { json } = await desk.operates("/admin/keys", { name: "bank", scopes: ["outcome"] });
      const body = JSON.stringify({ receipt: { seq: rows[0].seq, hash: rows[0].hash }, status: "failed" });
      const headers = { authorization: `Bearer ${json.key}`, "content-type": "application/json" };
      assert.equal((await ask(desk, "/outcomes", { method: "POST", headers, body })).status, 200);
      assert.equal(await verdictOf(desk, unusual(35)), "ALLOW");
    },
    defect: { within: "coveredAmounts", find: "call.pin(member) !== digest", put: "false" },
  },
]);

suite("a ledger with grants", () => {
  test("verify, verify --deep and replay accept it, also after a start", async (t) => {
    const folder = temporaryFolder(t);
    const desk = await startDesk(t, { folder, contract: granting });
    await made(desk);
    for (const amount of [1001, 1002]) assert.equal(await verdictOf(desk, paying(amount)), "ALLOW");
    await desk.stop();
    const again = await startDesk(t, { folder, contract: granting, persons: {} });
    assert.deepEqual(
      [await verdictOf(again, paying(1003)), await verdictOf(again, paying(1004))],
      ["ALLOW", "ESCALATE"],
    );
    await assertLedgerValid(again);
  });

  test("a second person's yes puts a grant in force, if neither key is young", async (t) => {
    // No time passes in the test, so the gate takes every key for a day old.
    const aged = {
      within: "makersOf",
      find: "at < change.at + dayMs",
      put: "false",
    };
    const desk = await startDesk(t, {
      contract: granting.replace("by: [finance], grants", "by: [finance], of: 2, grants"),
      defects: [aged],
    });
    const { id, status, receipt } = await made(desk);
    assert.deepEqual([status, await verdictOf(desk, paying(1100))], ["pending", "ESCALATE"]);
    const second = await desk.as("bob", `/grants/${id}/approve`, { hash: receipt.hash });
    assert.deepEqual([second.status, second.json.status, second.json.has], [200, "active", 2], second.text);
    const { verdict, reason } = await desk.asks(paying(1100));
    assert.deepEqual([verdict, reason.slice(0, 27)], ["ALLOW", "Svc: anna and bob granted c"]);
    await assertLedgerValid(desk);
  });

  test("R17: after a restore that lost rows no grant covers a call", async (t) => {
    const desk = await startDesk(t, { contract: granting });
    await made(desk);
    await losesRows(t, desk, async (again) => again.asks(paying(1001)));
    const resumed = await startDesk(t, { folder: desk.folder, contract: granting, persons: {}, peer: desk });
    await resumed.operates("/admin/stop/lift", { scope: "all" });
    assert.notEqual(await verdictOf(resumed, paying(1002)), "ALLOW");
    assert.deepEqual((await resumed.as("anna", "/grants")).json.grants, []);
  });

  const broken = [
    { within: "coveredAmounts", find: "isAbove(value, top)", put: "false" },
    { within: "coveredAmounts", find: "call.pin(member) !== digest", put: "false" },
    {
      within: "BatchApprovals.useGrant",
      find: "this.#grantUses.push({ amounts, grant: grant.row, row });",
      put: "this.#grantUses.push({ amounts: {}, grant: grant.row, row });",
    },
  ];
  for (const defect of broken)
    control(`verify --deep notices a gate with the defect ${defect.find}`, async (t) => {
      const desk = await startDesk(t, { contract: granting, defects: [defect] });
      await made(desk);
      await desk.asks(paying(1500, { tool_input: { to: "eve" } }));
      await desk.asks(paying(1500));
      await desk.asks(paying(1100));
      await desk.asks(paying(1100, { tool_input: { to: "eve" } }));
      await assert.rejects(() => assertLedgerValid(desk));
    });
});

/**
 * Goal: GET /report gives the numbers of `svc-gate report --json` for the gate's own ledger, over time too, and changes
 * nothing. Method: a gate over HTTP gets calls, decisions and outcomes; its report is compared with the command's and
 * with what happened. Positive controls: each rule fails on a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, test } from "node:test";
import { reportCommand } from "../../packages/records/src/report/command.ts";
import { limits } from "../../packages/core/src/wire/mod.ts";
import { approved, large, naming, runScenarios, small, startDesk, type Desk } from "../support/approvals.ts";
import { control } from "../support/controls/control.ts";
import { ask, key, startGate, type Answer } from "../support/gate.ts";
import type { Mutation } from "../support/mutation/mutate.ts";
import { scenario } from "../support/outcomes.ts";
import { controlPatienceMs, eventually, patienceMs } from "../support/patience.ts";

async function reportOf(desk: Pick<Desk, "address">, query = ""): Promise<any> {
  const { status, json, text } = await ask(desk, `/report${query}`);
  assert.equal(status, 200, text);
  return json;
}

async function printed({ folder }: Desk, options: object = {}): Promise<any> {
  const all = { from: "1", examples: "2", json: true, ...options };
  return JSON.parse((await reportCommand(join(folder, "data"), all)).text);
}

/** The sums over all slices. */
function totalsOf({ over_time: slices }: any): any {
  const sum = (name: (slice: any) => unknown): number =>
    slices.reduce((total: number, slice: any) => total + Number(name(slice) ?? 0), 0);
  const names = ["held", "released", "used"];
  return {
    verdicts: ["ALLOW", "BLOCK", "ESCALATE"].map((name) => sum(({ verdicts }) => verdicts[name])),
    approvals: ["opened", "approved", "denied", "expired"].map((name) => sum(({ approvals }) => approvals[name])),
    spent: names.map((name) => sum(({ counters }) => counters["pay.spent"]?.[name])),
    counters: [...new Set<string>(slices.flatMap(({ counters }: any) => Object.keys(counters)))].toSorted(),
  };
}

runScenarios("GET /report", [
  {
    rule: "the report of a running gate is what the command prints for its ledger",
    run: async (desk) => {
      const id = await approved(desk);
      for (const call of [naming(id), small, { ...small, tool_name: "pay.lost" }, large]) await desk.asks(call);
      for (let n = 0; n < 3; n += 1) await desk.asks({ ...large, tool_input: { amount: 9000 + n, to: "anna" } });
      const report = await reportOf(desk);
      assert.deepEqual(report, await printed(desk));
      assert.deepEqual([report.receipts, report.by_rule[0].examples.length], [8, 2]);
      const rows = await desk.rows();
      assert.deepEqual(await reportOf(desk, "?last=3"), await printed(desk, { last: "3" }));
      assert.equal((await reportOf(desk, "?last=3")).left_out, rows - 3);
      const { at } = (await ask(desk, `/receipts/${rows - 2}`)).json;
      for (const query of [`?since=${at}`, `?until=${at}`, `?since=${at}&last=1`]) {
        const options = Object.fromEntries(new URLSearchParams(query));
        assert.deepEqual(await reportOf(desk, query), await printed(desk, options), query);
      }
    },
    defect: { within: "examplesMax", module: "report/for-gate", value: "1" },
  },
  {
    rule: "a report adds no row",
    run: async (desk) => {
      await desk.asks(large);
      const before = await desk.rows();
      for (const query of ["", "?last=1", "?last=0"]) await ask(desk, `/report${query}`);
      assert.equal(await desk.rows(), before);
    },
    defect: {
      within: "report",
      module: "http/report",
      first:
        'const value = { by: "default", act: "report", body: {}, reason: "Svc: x" }; ' +
        "await gate.appendAdminEvent(async () => ({ ok: true, value }));",
    },
  },
  {
    rule: "each line of `by_session` is a session with its key, the largest first, and at most 50",
    run: async (desk) => {
      const odd = (session: string | null): object => {
        const { session_id: _session, ...call } = { ...small, tool_input: { amount: 1, to: "nobody" } };
        return session === null ? call : { ...call, session_id: session };
      };
      for (const session of [null, null, null, "b", "b"]) await desk.asks(odd(session));
      for (let n = 0; n < 60; n += 1) await desk.asks(odd(`s${n}`));
      await desk.asks(small);
      const { by_session: lines } = await reportOf(desk);
      const line = { key: "default", verdict: "BLOCK" };
      assert.deepEqual(lines.slice(0, 2), [
        { session: null, ...line, receipts: 3 },
        { session: "b", ...line, receipts: 2 },
      ]);
      assert.equal(lines.length, 50);
    },
    defect: { within: "sessionsMax", value: "60" },
  },
  scenario(
    "`over_time` says what approvals held, what was released and what was used, and loses nothing",
    async (till) => {
      const failed = await till.pays(400);
      await till.pays(0.1);
      await till.pays(0.2);
      await till.reports("books", failed, "failed");
      const used = await approved(till, { ...large, tool_input: { amount: 1100, to: "anna" } });
      await till.asks(naming(used, { ...large, tool_input: { amount: 1100, to: "anna" } }));
      const denied = await till.asks({
        ...large,
        tool_input: { amount: 1200, to: "anna" },
        platform_state: { wallet: "v" },
      });
      await till.decides("anna", denied.approval.id, "deny");
      const open = await till.asks({
        ...large,
        tool_input: { amount: 1300, to: "anna" },
        platform_state: { wallet: "u" },
      });
      assert.equal(open.verdict, "ESCALATE");
      const totals = totalsOf(await reportOf(till));
      assert.deepEqual(totals.verdicts, [3, 0, 4]);
      assert.deepEqual(totals.approvals, [3, 1, 1, 0]);
      assert.deepEqual(totals.spent, [1100 + 1200 + 1300, 400 + 1200, 400 + 0.1 + 0.2 + 1100].map(Number));
      assert.deepEqual(totals.counters, ["pay.gross", "pay.spent"]);
    },
    { within: "OverTime.#end", find: "!isUsed", put: "true" },
  ),
  {
    rule: "`approvals_all` has the figures of all rules, and each line says which share was approved",
    run: async (desk) => {
      await approved(desk);
      const other = await desk.asks({ ...large, tool_input: { amount: 1300, to: "anna" } });
      await desk.decides("anna", other.approval.id, "deny");
      await desk.asks({ tool_name: "pay.legal", tool_input: {}, session_id: "s" });
      const { approvals, approvals_all: all } = await reportOf(desk);
      assert.deepEqual([all.opened, all.approved, all.denied, all.approved_share], [3, 1, 1, 0.5]);
      assert.deepEqual(
        approvals.map(({ rule, opened, approved_share }: any) => [rule, opened, approved_share]),
        [
          ["pay.large", 2, 0.5],
          ["pay.$otherwise", 1, null],
        ],
      );
      assert.ok(all.median_ms <= all.p90_ms && all.fast === 2);
    },
    defect: {
      within: "DecidedApprovals.allJson",
      find: "all[count] += line[count];",
      put: "all[count] = line[count];",
    },
  },
  {
    rule: "a key needs the scope `receipts`",
    run: async (desk) => {
      const { key: own } = (await desk.operates("/admin/keys", { name: "page", scopes: ["rules"] })).json;
      assert.equal((await ask(desk, "/report", { headers: { authorization: `Bearer ${own}` } })).status, 403);
      assert.equal((await desk.as("anna", "/report")).status, 200);
    },
    defect: {
      within: "routes",
      find: '{ method: "GET", path: "/report", reads: "long", scope: "receipts", handle: report }',
      put: '{ method: "GET", path: "/report", reads: "long", scope: "rules", handle: report }',
    },
  },
]);

/** Each row of a report takes a second. */
const slowly: readonly Mutation[] = [
  { within: "sliceMs", module: "admission/turns", value: "-1" },
  { within: "Turns.#passOn", first: "await setTimeout(1000);" },
];

/** Asks for a report that takes a minute, and leaves while a second one waits for its place. Returns the second answer. */
async function leavesAndAsksAgain(desk: Desk, forMs: number): Promise<Answer | undefined> {
  for (let n = 0; n < 60; n += 1) await desk.asks(small);
  const { key: scraper } = (await desk.operates("/admin/keys", { name: "scraper", scopes: ["metrics"] })).json;
  const headers = { authorization: `Bearer ${key}` };
  const gone = new AbortController();
  const first = fetch(`${desk.address}/report`, { headers, signal: gone.signal }).catch(() => undefined);
  assert.equal((await desk.asks(small)).verdict, "ALLOW", "the first report has come, and checks go on");
  let second: Answer | undefined;
  const waiting = ask(desk, "/report?last=1").then((answer) => (second = answer));
  const isWaiting = async (): Promise<boolean> => {
    const { text } = await ask(desk, "/metrics", { headers: { authorization: `Bearer ${scraper}` } });
    return /^svc_gate_waiting_reads 1$/m.test(text);
  };
  await eventually("the second one waits", isWaiting);
  gone.abort();
  await first;
  return eventually("the second report", () => second, forMs).catch(() => {
    waiting.catch(() => undefined);
    return undefined;
  });
}

suite("the end and the query of GET /report", () => {
  test("one report of a key runs at a time, and it ends when its client leaves", async (t) => {
    const second = await leavesAndAsksAgain(await startDesk(t, { defects: slowly }), patienceMs);
    assert.deepEqual([second?.status, second?.json.receipts], [200, 1]);
  });

  control("positive control: on a gate that does not notice that the client left, the next report waits", async (t) => {
    const deaf = { within: "untilGone", first: "return new AbortController();" };
    const desk = await startDesk(t, { defects: [...slowly, deaf] });
    assert.equal(await leavesAndAsksAgain(desk, controlPatienceMs), undefined);
  });

  test("a wrong query is refused with a sentence that says what to write", async (t) => {
    const gate = await startGate(t);
    const wrong: readonly (readonly [query: string, sentence: RegExp])[] = [
      ["last=0", /"last" must be a whole number from 1 to 100000/],
      [`last=${limits.reportRowsMax + 1}`, /"last" must be/],
      ["since=noon", /"since" must be a moment/],
      ["until=", /"until" must be a moment/],
      ["since=2026-01-02&until=2026-01-01", /"since" must not be after "until"/],
      ["lst=1", /did you mean "last"/],
      ["last=1&last=2", /appears twice/],
    ];
    for (const [query, sentence] of wrong) {
      const { status, json } = await ask(gate, `/report?${query}`);
      assert.deepEqual([status, json.code, sentence.test(json.detail)], [400, "invalid-query", true], query);
    }
    assert.deepEqual((await ask(gate, "/report?since=2026-01-01&last=5")).json.over_time, [], "positive control");
  });
});

/**
 * Goal: a stream of events says what the rows say, to those who may know it. Method: gates over HTTP. Each rule is also run
 * against a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Replay } from "../../packages/gate/src/server/events/feed.ts";
import { large, naming, payments, runScenarios, startDesk, type Desk } from "../support/approvals.ts";
import { openStream, type Stream, type StreamedEvent } from "../support/events.ts";
import { ask, check as checkAt, key as agent, startGate } from "../support/gate.ts";
import { eventually } from "../support/patience.ts";

const small = { ...large, tool_input: { amount: 1, to: "anna" } };

/** Calls are decided within a second, so that a test sees their end. */
const hasty = payments.replace("of: 2, batch: false }", "of: 2, batch: false, decide_within: 1s }");
const legal = { ...large, tool_name: "pay.legal", session_id: "legal" };

const receiptsOf = (desk: Desk): string => desk.keys["anna"] ?? assert.fail();

/** Makes a key, and returns it. */
async function made(desk: Desk, body: object): Promise<string> {
  const { status, json, text } = await desk.operates("/admin/keys", body);
  assert.equal(status, 201, text);
  return json.key as string;
}

/** Makes a key of a new person that has only the scope `approve`. */
async function approver(desk: Desk, person: string, groups: readonly string[]): Promise<string> {
  assert.equal((await desk.operates("/admin/persons", { name: person })).status, 201);
  return made(desk, { name: `${person}-key`, scopes: ["approve"], person, groups });
}

/** Asks for a stream that the gate must refuse. */
async function refusalOf(
  { address }: Desk,
  key: string,
  path: string,
  lastId?: string,
): Promise<{ readonly status: number; readonly json: any }> {
  const headers = { authorization: `Bearer ${key}`, ...(lastId !== undefined && { "last-event-id": lastId }) };
  const response = await fetch(address + path, { headers });
  assert.notEqual(response.status, 200, "a stream, which never ends");
  return { status: response.status, json: await response.json() };
}

const types = (stream: Stream): readonly string[] => stream.events.map(({ type }) => type);

runScenarios("streams of events", [
  {
    rule: "C14: a parked call is told within a second, and a reminder comes when a fifth of its time is left",
    options: { contract: hasty },
    run: async (desk) => {
      const stream = await openStream(desk, receiptsOf(desk));
      let calls = 0;
      // A busy machine may be late for one call, and then another one follows.
      const isInTime = async (): Promise<boolean> => {
        const { approval } = await desk.asks({ ...legal, tool_input: { call: (calls += 1) } });
        const startedAt = performance.now();
        const ofCall = (type: string): StreamedEvent | undefined =>
          stream.events.find((event) => event.type === type && event.data.approval === approval.id);
        const opened = await eventually("the event", () => ofCall("approval.opened"), desk.patienceMs);
        const toldMs = performance.now() - startedAt;
        const next = (): StreamedEvent | undefined => ofCall("approval.expiring") ?? ofCall("approval.closed");
        const reminder = await eventually("the reminder", next, desk.patienceMs);
        if (reminder.type === "approval.closed") return false;
        const lateMs = Date.now() - (approval.decide_by - 200);
        assert.ok(lateMs > -20, `the reminder came ${-lateMs} ms early`);
        assert.equal(reminder.id, undefined, "a reminder must not move the place from which a client resumes");
        assert.equal(reminder.data.id, `${opened.id}-expiring`);
        return toldMs < 1000 && lateMs < 500;
      };
      await eventually("an event and a reminder in time", isInTime, desk.patienceMs);
      stream.close();
    },
    defect: { within: "remindsAt", find: "decideBy - Math.floor((decideBy - at) / 5)", put: "decideBy" },
  },
  {
    rule: "C22: every final state reaches a stream and a waiter, also the end of time without any check",
    options: { contract: hasty },
    run: async (desk) => {
      const stream = await openStream(desk, receiptsOf(desk));
      const call = (n: number): typeof large => ({
        ...large,
        tool_input: { amount: 1200 + n, to: "anna" },
        platform_state: { wallet: `w${n}` },
        session_id: `s${n}`,
      });
      const calls = [...[0, 1, 2, 3].map(call), legal];
      const parked = await Promise.all(calls.map((each) => desk.asks(each)));
      const ids = parked.map(({ approval }) => approval.id as string);
      const waits = ids.map((id) => desk.as("bob", `/approvals/${id}?wait=5`));
      await desk.decides("anna", ids[0] ?? "", "approve");
      assert.equal((await desk.asks(naming(ids[0] ?? "", call(0)))).verdict, "ALLOW");
      await desk.decides("anna", ids[1] ?? "", "deny");
      await ask(desk, `/approvals/${ids[2]}/cancel`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"session_id":"s2"}',
      });
      const erased = { rows: [[parked[3].receipt.seq, parked[3].receipt.seq]], parts: ["input"], reason: "asked for" };
      assert.equal((await desk.operates("/admin/erase", erased)).status, 200);
      const found = new Map<string, string>();
      for (let n = 0; n < 4; n += 1) {
        const { data } = await stream.next("approval.closed");
        found.set(data.approval, data.status);
      }
      assert.deepEqual(
        ids.map((id) => found.get(id)),
        ["used", undefined, "cancelled", "cancelled", "expired"],
      );
      const denied = stream.events.filter(({ data }) => data.approval === ids[1]).map(({ data }) => data.status);
      assert.deepEqual(denied.at(-1), "denied");
      const ends = await Promise.all(waits);
      for (const { status, json } of ends) assert.ok(status === 200 && json.status !== "pending");
      stream.close();
    },
    defect: { within: "EventFeed.#endDue", first: "return;" },
  },
  {
    rule: "an erasure ends an open approval with a row of its own, so that streams hear of it",
    run: async (desk) => {
      const stream = await openStream(desk, receiptsOf(desk));
      const parked = await desk.asks(large);
      const { seq } = parked.receipt;
      await stream.next("approval.opened");
      const erased = await desk.operates("/admin/erase", { rows: [[seq, seq]], parts: ["input"], reason: "asked for" });
      assert.equal(erased.status, 200, erased.text);
      const { data } = await stream.next("approval.closed");
      assert.deepEqual([data.approval, data.status, data.tool], [parked.approval.id, "cancelled", "pay.send"]);
      const { json } = await ask(desk, "/ledger/verify");
      assert.equal(json.ok, true, JSON.stringify(json));
      stream.close();
    },
    defect: { within: "Eraser.#eraseSlice", find: "open.length === 0", put: "true" },
  },
  {
    rule: "a stream resumes after the id that the client saw last, and misses and repeats nothing",
    run: async (desk) => {
      const stream = await openStream(desk, receiptsOf(desk), { after: "0" });
      const parked = await desk.asks(large);
      const first = await stream.next("approval.opened");
      stream.close();
      await desk.decides("anna", parked.approval.id, "approve");
      await desk.asks(naming(parked.approval.id));
      const lastId = first.id ?? assert.fail();
      const again = await openStream(desk, receiptsOf(desk), { lastId, after: "0" });
      await again.next("approval.closed");
      assert.deepEqual(types(again), ["approval.decided", "approval.closed"]);
      const whole = await openStream(desk, receiptsOf(desk), { after: "0" });
      await whole.next("approval.closed");
      const ids = whole.events.map(({ id }) => id);
      assert.equal(new Set(ids).size, ids.length);
      assert.deepEqual(ids.slice(-3), [first.id, ...again.events.map(({ id }) => id)]);
      again.close();
      whole.close();
    },
    defect: {
      within: "isAfter",
      module: "events/event",
      find: "event.row > position.row",
      put: "event.row >= position.row",
    },
  },
  {
    rule: "an id of another history is refused, and no event is sent",
    run: async (desk) => {
      const parked = await desk.asks(large);
      const { seq, hash } = parked.receipt;
      const ours = `${seq}-0-${hash.slice(0, 16)}`;
      const other = `${seq}-0-${"0".repeat(16)}`;
      const stream = await openStream(desk, receiptsOf(desk), { after: ours });
      stream.close();
      for (const id of [other, `${seq + 50}-0-${hash.slice(0, 16)}`]) {
        const byHeader = await refusalOf(desk, receiptsOf(desk), "/events", id);
        const byQuery = await refusalOf(desk, receiptsOf(desk), `/events?after=${id}`);
        for (const { status, json } of [byHeader, byQuery]) {
          assert.deepEqual([status, json.code], [400, "invalid-query"]);
          assert.match(json.detail, /another history/);
        }
      }
    },
    defect: { within: "EventLog.has", find: "leafHash(found.leaf).startsWith(digits)", put: "true" },
  },
  {
    rule: "R13: an approver without the scope receipts sees only what it may decide",
    run: async (desk) => {
      const lawyer = await approver(desk, "lea", ["legal"]);
      const stream = await openStream(desk, lawyer, { after: "0" });
      await desk.asks(large);
      const { approval } = await desk.asks(legal);
      // The events of earlier rows would have come before it.
      const opened = await stream.next("approval.opened");
      assert.equal(opened.data.approval, approval.id);
      assert.deepEqual(types(stream), ["approval.opened"], "neither keys nor calls of finance");
      stream.close();
    },
    defect: { within: "maySee", first: "return true;" },
  },
  {
    rule: "R13: a stream ends before the next event if its key was revoked or lost its rights",
    run: async (desk) => {
      const key = await made(desk, { name: "listener", scopes: ["receipts"] });
      const stream = await openStream(desk, key);
      await desk.asks(large);
      await stream.next("approval.opened");
      assert.equal((await desk.operates("/admin/keys/listener/revoke", {})).status, 200);
      await desk.asks({ ...large, session_id: "s2", platform_state: { wallet: "v" } });
      await stream.ends();
      assert.deepEqual(types(stream), ["approval.opened"]);
    },
    defect: { within: "keyNow", first: "return key;" },
  },
  {
    rule: "a key that may not read receipts or decide opens no stream",
    run: async (desk) => {
      const check = await made(desk, { name: "program", scopes: ["check"] });
      const { status, json } = await refusalOf(desk, check, "/events");
      assert.deepEqual([status, json.code], [403, "forbidden"]);
    },
    defect: { within: "refusalForKey", first: "return undefined;" },
  },
  {
    rule: "an event holds no value of the call, no reason and no comment",
    run: async (desk) => {
      const stream = await openStream(desk, receiptsOf(desk), { after: "0" });
      const call = { ...large, tool_input: { amount: 1200.5, to: "secret-payee", note: "secret-note" } };
      const parked = await desk.asks({
        ...call,
        session_id: "secret-session",
        platform_state: { wallet: "secret-wallet" },
      });
      await desk.decides("anna", parked.approval.id, "deny", { comment: "secret-comment" });
      await stream.next("approval.decided");
      const text = JSON.stringify(stream.events);
      assert.doesNotMatch(text, /secret|1200\.5|large payment/);
      for (const { data } of stream.events.slice(-2))
        assert.deepEqual(
          Object.keys(data).filter((name) => !["decide_by", "until"].includes(name)),
          ["id", "type", "at", "row", "hash", "approval", "tool", "rules", "status"],
        );
      stream.close();
    },
    defect: {
      within: "changeOf",
      module: "events/event",
      find: '({ status: "denied", until: act.until })',
      put: '({ status: "denied", until: act.until, comment: act.comment })',
    },
  },
]);

test("a stop and each approval that it ends or opens again are events of one row", async (t) => {
  const desk = await startDesk(t);
  const stream = await openStream(desk, receiptsOf(desk));
  const parked = await desk.asks(large);
  await desk.decides("anna", parked.approval.id, "approve");
  assert.equal((await desk.operates("/admin/stop", { scope: "all", why: "a test", approvals: "keep" })).status, 200);
  const stopped = await stream.next("stop.set");
  const again = await stream.next("approval.opened");
  assert.deepEqual([again.data.row, again.data.approval], [stopped.data.row, parked.approval.id]);
  assert.deepEqual([stopped.id?.split("-")[1], again.id?.split("-")[1]], ["0", "1"]);
  assert.equal((await desk.operates("/admin/stop", { scope: "all", why: "again" })).status, 200);
  const { data } = await stream.next("approval.closed");
  assert.deepEqual([data.approval, data.status], [parked.approval.id, "cancelled"]);
  assert.equal((await desk.operates("/admin/stop/lift", { scope: "all", why: "done" })).status, 200);
  await stream.next("stop.lifted");
  stream.close();
});

test("events of keys, contracts and acts come in the order of their rows, each with the row's number and hash", async (t) => {
  const desk = await startDesk(t);
  await desk.asks(small);
  await desk.asks(large);
  const stream = await openStream(desk, receiptsOf(desk), { after: "0" });
  await stream.next("approval.opened");
  assert.equal((await desk.operates("/admin/reload", { mode: "assist" })).status, 200);
  await stream.next("contract.changed");
  const rows = stream.events.map(({ data }) => data.row as number);
  assert.deepEqual(
    rows,
    rows.toSorted((a, b) => a - b),
  );
  assert.deepEqual([...new Set(types(stream))], ["keys.changed", "approval.opened", "contract.changed"]);
  for (const { id, data } of stream.events) {
    const { json } = await ask(desk, `/receipts/${data.row}`, { headers: { authorization: `Bearer ${agent}` } });
    assert.equal(data.hash, json.hash);
    assert.equal(id, `${data.row}-0-${json.hash.slice(0, 16)}`);
    assert.equal(data.at, json.at);
  }
  stream.close();
});

test("a stream ends when the gate stops, and its place is free again when the client leaves", async (t) => {
  const desk = await startDesk(t);
  const first = await openStream(desk, receiptsOf(desk));
  first.close();
  const stream = await openStream(desk, receiptsOf(desk));
  await desk.stop();
  await stream.ends();
});

suite("a stream that reads the past while calls come", () => {
  for (const [arriving, replays] of [
    [1, 1],
    [1100, 2], // more than the gate keeps in memory
  ] as const)
    test(`reads it ${replays === 1 ? "once" : "twice"} if ${arriving} come meanwhile, and misses nothing`, async (t) => {
      const open = { key: 9000, session: 2000, ledger: 9000 };
      const gate = await startGate(t, {
        contracts: { "pay.yaml": payments.replaceAll("> 2500", "> 25000000") },
        mandate: `mandate: pay\ncontracts: [contracts/pay.yaml]\napprovals: { open: ${JSON.stringify(open)} }\n`,
      });
      let calls = 0;
      const park = async (count: number): Promise<void> => {
        const parked = Array.from({ length: count }, () => {
          calls += 1;
          return checkAt(gate, { ...large, session_id: `s${calls}`, platform_state: { wallet: `w${calls}` } });
        });
        for (const { json, text } of await Promise.all(parked)) assert.equal(json.approval?.new, true, text);
      };
      await park(3);
      const feed = gate.gate.events;
      await feed.listen();
      let started = 0;
      const replay: Replay = async function* (found) {
        started += 1;
        for await (const each of found) {
          if (started > 2) return; // It would never end.
          if (calls === 3) for (let left = arriving; left > 0; left -= 100) await park(Math.min(100, left));
          await feed.look();
          yield each;
        }
      };
      const read = async (by?: Replay): Promise<readonly string[]> => {
        const ids: string[] = [];
        for await (const event of feed.follow({ row: 0, index: Infinity }, 50, new AbortController().signal, by)) {
          if (event === undefined) break;
          ids.push(event.id);
        }
        return ids;
      };
      const found = await read(replay);
      assert.equal(started, replays);
      assert.ok(found.length >= calls && calls === 3 + arriving, `${found.length} events, ${calls} calls`);
      assert.deepEqual(found, await read(), "positive control: all events, each once, after the calls");
      feed.leave();
    });
});

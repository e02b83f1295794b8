/**
 * Goal: an endpoint gets every event at least once and in order, and nobody can aim the gate at another server. Method:
 * gates over HTTP that send to a server of this process, which reads with the official package of Standard Webhooks; and
 * senders whose clock the test moves.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import pino from "pino";
import { Webhook } from "standardwebhooks";
import { listCommand, replayCommand } from "../../packages/gate/src/cli/notify.ts";
import { readEndpoints, type Endpoint } from "../../packages/gate/src/server/notify/endpoints.ts";
import { resolveHost } from "../../packages/gate/src/server/notify/address.ts";
import { formatWebhookMessage, signedHeaders } from "../../packages/gate/src/server/notify/message.ts";
import { post } from "../../packages/gate/src/server/notify/send.ts";
import { Sender } from "../../packages/gate/src/server/notify/sender.ts";
import { eventually, patienceMs } from "../support/patience.ts";
import { fileOf, isOf, local, older, receive, secret } from "../support/webhooks.ts";
import { large, naming, startDesk, type Desk } from "../support/approvals.ts";
import { ask, check, startGate, temporaryFolder, type Running } from "../support/gate.ts";

async function endpointOf(t: TestContext, endpoint: object): Promise<Endpoint> {
  const read = await readEndpoints(
    fileOf(temporaryFolder(t), [{ name: "ops", secrets: [secret], ...local, ...endpoint }]),
  );
  assert.ok(read.ok, read.ok ? "" : read.problem);
  return read.value[0] ?? assert.fail();
}

/** Starts a gate whose events go to the receiver. */
async function sending(
  t: TestContext,
  endpoints: readonly object[],
  folder?: string,
  persons?: Readonly<Record<string, readonly string[]>>,
): Promise<Desk> {
  const home = folder ?? temporaryFolder(t);
  const notify = fileOf(
    home,
    endpoints.map((each) => ({ name: "ops", secrets: [secret], ...local, ...each })),
  );
  return startDesk(t, { folder: home, env: { SVC_NOTIFY: notify }, ...(persons && { persons }) });
}

test("C14, C22: an endpoint gets signed events, which the official package verifies", async (t) => {
  const receiver = await receive(t);
  const desk = await sending(t, [{ url: receiver.url, secrets: [secret, older] }]);
  const call = { ...large, tool_input: { amount: 1200.5, to: "anna" } };
  const parked = await desk.asks(call);
  const opened = await receiver.until(isOf("approval.opened"));
  for (const each of [secret, older])
    assert.deepEqual(new Webhook(each).verify(opened.text, opened.headers), opened.body);
  const wrong = new Webhook(`whsec_${Buffer.alloc(32, 9).toString("base64")}`);
  assert.throws(() => wrong.verify(opened.text, opened.headers));
  assert.equal(opened.body.data.approval, parked.approval.id);
  assert.match(opened.id, /^evt_svc-gate-[0-9a-f]{32}_\d+-0-[0-9a-f]{16}$/);
  await desk.decides("anna", parked.approval.id, "approve");
  await desk.asks(naming(parked.approval.id, call));
  const closed = await receiver.until(isOf("approval.closed"));
  assert.equal(closed.body.data.status, "used");
  assert.doesNotMatch(JSON.stringify(receiver.received), /\banna\b|1200\.5|large payment/);
});

test("a restart loses no event, also if the receiver was down before it", async (t) => {
  const receiver = await receive(t);
  receiver.status = 503;
  const folder = temporaryFolder(t);
  const desk = await sending(t, [{ url: receiver.url, events: ["approval.opened"] }], folder);
  const parked = await desk.asks(large);
  await eventually("an attempt", () => receiver.refused.length > 0);
  await desk.stop();
  receiver.status = 200;
  const again = await sending(t, [{ url: receiver.url, events: ["approval.opened"] }], folder, {});
  const listed = await again.operates("/admin/notify/replay", { from: parked.receipt.seq });
  assert.equal(listed.status, 200, listed.text);
  const opened = await receiver.until(isOf("approval.opened"));
  assert.equal(opened.body.data.approval, parked.approval.id);
  const late = await again.operates("/admin/notify/replay", { from: 1, endpoint: "nobody" });
  assert.deepEqual([late.status, late.json.code], [404, "not-found"]);
});

/** A gate, and senders on its ledger whose time the test moves. */
interface Clocked {
  readonly gate: Running;
  now: number;
  readonly sender: () => Sender;
  /** Runs steps until nothing is to do now. */
  readonly drain: (sender: Sender) => Promise<void>;
}

async function clocked(t: TestContext, endpoint: Endpoint): Promise<Clocked> {
  const gate = await startGate(t);
  const { events } = gate.gate;
  await events.listen();
  t.after(() => events.leave());
  const origin = { log: gate.ledger.name, tenant: null };
  const common = { endpoint, origin, feed: events, deliveries: gate.ledger.deliveries, log: pino({ level: "silent" }) };
  const made: Clocked = {
    gate,
    now: Date.now(),
    sender: () => new Sender({ ...common, owner: "test", now: () => made.now }),
    drain: async (sender) => {
      await events.look();
      for (let steps = 0; steps < 10_000; steps += 1) if (!(await sender.step())) return;
      assert.fail("the sender does not come to rest");
    },
  };
  return made;
}

const minute = 60_000;

test("the receiver is down for an hour, and the gate restarts meanwhile: every event comes, in order for each approval", async (t) => {
  const receiver = await receive(t);
  const made = await clocked(t, await endpointOf(t, { url: receiver.url }));
  let sender = made.sender();
  await made.drain(sender);
  receiver.status = 503;
  const call = (n: number): object => ({ tool_name: "mail.send", tool_input: { n }, session_id: `s${n}` });
  const rows: number[] = [];
  for (let at = 0; at < 60; at += 1) {
    const { json } = await check(made.gate, call(at));
    rows.push(json.receipt.seq);
    const cancel = { method: "POST", headers: { "content-type": "application/json" }, body: `{"session_id":"s${at}"}` };
    if (at % 2 === 0) assert.equal((await ask(made.gate, `/approvals/${json.approval.id}/cancel`, cancel)).status, 200);
    made.now += minute;
    await made.drain(sender);
    if (at === 30) {
      await sender.end();
      sender = made.sender();
    }
  }
  assert.equal(receiver.received.length, 0);
  receiver.status = 200;
  for (let hours = 0; hours < 8; hours += 1) {
    made.now += 60 * minute;
    await made.drain(sender);
  }
  const opened = receiver.received.filter(isOf("approval.opened")).map(({ body }) => body.data.row);
  assert.deepEqual(new Set(opened), new Set(rows), "an event is missing");
  const closed = receiver.received.filter(isOf("approval.closed"));
  assert.equal(new Set(closed.map(({ id }) => id)).size, 30);
  for (const { body } of closed) {
    const { approval } = body.data;
    const types = receiver.received
      .filter((each) => each.body.data.approval === approval)
      .map((each) => each.body.type);
    assert.deepEqual([...new Set(types)], ["approval.opened", "approval.closed"], "an approval's events change places");
  }
  assert.equal(sender.state.waiting.length, 0);
});

test("an event that no attempt delivers within three days is a dead letter, and a replay sends it with a new time", async (t) => {
  const receiver = await receive(t);
  const made = await clocked(t, await endpointOf(t, { url: receiver.url, events: ["approval.opened"] }));
  const sender = made.sender();
  await made.drain(sender);
  receiver.status = 500;
  const { json } = await check(made.gate, { tool_name: "mail.send", tool_input: {}, session_id: "s" });
  const startedAt = made.now;
  let attempts = 0;
  for (; sender.state.died === 0; attempts += 1) {
    await made.drain(sender);
    made.now = Math.max(made.now + 1, sender.state.waiting[0]?.due ?? 0);
    assert.ok(attempts < 20);
  }
  assert.ok(made.now - startedAt > 3 * 24 * 60 * minute && made.now - startedAt < 4 * 24 * 60 * minute);
  assert.deepEqual(
    sender.state.dead.map(({ row, why }) => [row, why]),
    [[json.receipt.seq, "it answers 500"]],
  );
  receiver.status = 200;
  await sender.replay(json.receipt.seq);
  await made.drain(sender);
  const [message] = receiver.received;
  assert.equal(message?.headers["webhook-timestamp"], String(Math.floor(made.now / 1000)));
  assert.deepEqual([sender.state.dead.length, receiver.received.length], [0, 1]);
});

suite("a server is called only where the file says", () => {
  const sent = async (
    t: TestContext,
    endpoint: object,
    resolve?: Parameters<typeof post>[1]["resolve"],
    ms = patienceMs,
  ) => {
    const signal = new AbortController().signal;
    const posting = { headers: {}, body: "{}", signal, timeoutMs: ms, ...(resolve && { resolve }) };
    return post(await endpointOf(t, endpoint), posting);
  };

  test("addresses that are not public are refused, and a name is resolved once", async (t) => {
    const addresses = [
      "127.0.0.1",
      "10.0.0.1",
      "172.16.9.9",
      "192.168.1.1",
      "169.254.169.254",
      "100.64.0.1",
      "0.0.0.0",
      "224.0.0.1",
      "255.255.255.255",
      "198.18.0.1",
      "::1",
      "::",
      "fe80::1",
      "fc00::1",
      "ff02::1",
      "::ffff:127.0.0.1",
      "::ffff:10.0.0.1",
      "64:ff9b::a00:1",
      "2002:7f00:1::",
      "2001:db8::1",
    ];
    for (const address of addresses) {
      const resolve = async () => [{ address, family: address.includes(":") ? 6 : 4 }];
      const result = await sent(t, { url: "https://hooks.example/x", allow_private: false }, resolve);
      assert.ok(!result.ok && /not public/.test(result.problem), `${address}: ${JSON.stringify(result)}`);
    }
    for (const url of ["http://127.0.0.1:1/", "http://[::1]:1/", "http://2130706433:1/", "http://0x7f.1:1/"]) {
      const result = await sent(t, { url, allow_private: false });
      assert.ok(!result.ok && /not public/.test(result.problem), url);
    }
    const both = async () => [
      { address: "93.184.216.34", family: 4 },
      { address: "10.0.0.1", family: 4 },
    ];
    const mixed = await sent(t, { url: "https://hooks.example/x", allow_private: false }, both);
    assert.ok(!mixed.ok && /not public/.test(mixed.problem));
    const receiver = await receive(t);
    let times = 0;
    const once127 = async () => {
      times += 1;
      return [{ address: "127.0.0.1", family: 4 }];
    };
    const named = receiver.url.replace("127.0.0.1", "hooks.example");
    assert.deepEqual(await sent(t, { url: named }, once127), { ok: true, value: undefined });
    assert.equal(times, 1);
    assert.match(receiver.received[0]?.headers["host"] ?? "", /^hooks\.example:/);
  });

  test("addresses inside a cloud are refused, although they look public, and their neighbours are not", async () => {
    const isTaken = async (address: string): Promise<boolean> =>
      (await resolveHost(new URL(`https://${address.includes(":") ? `[${address}]` : address}/`), false)).ok;
    const inside = ["168.63.129.16", "161.26.0.10", "161.26.255.255", "166.8.0.1", "166.11.255.255"];
    inside.push("34.118.226.7", "34.126.0.1", "199.36.153.4", "199.36.153.11", "2001:4860:8040::1");
    inside.push("2600:2d00:0:4::1", "2600:2d00:2:1000::1", "2600:2d00:2:2000::1", "2600:2d00:0:3::1");
    const special = [
      "192.31.196.1",
      "192.52.193.1",
      "192.175.48.1",
      "2620:4f:8000::1",
      "100.100.100.200",
      "192.0.0.192",
    ];
    for (const address of [...inside, ...special, "fd00:ec2::254"]) assert.ok(!(await isTaken(address)), address);
    const beside = ["168.63.129.15", "168.63.129.17", "161.25.255.255", "161.27.0.0", "166.7.255.255", "166.12.0.0"];
    beside.push(
      "34.118.223.255",
      "34.118.240.0",
      "34.126.64.0",
      "199.36.153.3",
      "199.36.153.12",
      "2001:4860:4860::8888",
    );
    beside.push("2600:2d00:0:5::1", "2600:2d00:0:1::1", "2600:2d00:2:3000::1");
    for (const address of [...beside, "93.184.216.34", "2606:4700::1111"]) assert.ok(await isTaken(address), address);
  });

  test("a redirect is not followed, a slow server is left, and a large answer is not read", async (t) => {
    const other = await receive(t);
    const receiver = await receive(t, { location: other.url });
    receiver.status = 302;
    const redirected = await sent(t, { url: receiver.url });
    assert.deepEqual(redirected, { ok: false, problem: "it answers 302, a redirect" });
    assert.equal(other.received.length, 0);
    const slow = createServer(() => undefined).listen(0, "127.0.0.1");
    const endless = createServer((_request, response) => {
      let isOver = false;
      response.on("error", () => undefined).on("close", () => (isOver = true));
      const more = (): void => void (isOver || response.write("x".repeat(65_536), () => setImmediate(more)));
      more();
    }).listen(0, "127.0.0.1");
    await Promise.all([once(slow, "listening"), once(endless, "listening")]);
    t.after(() => [slow, endless].map((server) => (server.closeAllConnections(), server.close())));
    const at = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    // short wait: this server never answers
    assert.deepEqual(await sent(t, { url: at(slow) }, undefined, 200), {
      ok: false,
      problem: "it does not answer in time",
    });
    assert.deepEqual(await sent(t, { url: at(endless) }), { ok: true, value: undefined });
  });

  test("a proxy in the environment is not used", async (t) => {
    const receiver = await receive(t);
    const names = ["HTTP_PROXY", "http_proxy", "NODE_USE_ENV_PROXY"];
    const before = names.map((name) => process.env[name]);
    for (const name of names) process.env[name] = name.startsWith("NODE") ? "1" : "http://127.0.0.1:9";
    t.after(() =>
      names.forEach((name, at) =>
        before[at] === undefined ? delete process.env[name] : (process.env[name] = before[at]),
      ),
    );
    assert.ok((await sent(t, { url: receiver.url })).ok);
  });
});

test("the file of endpoints is refused if others can read it, and no message shows an address or a secret", async (t) => {
  const folder = temporaryFolder(t);
  const good = { name: "ops", url: "https://hidden.example/token", secrets: [secret] };
  for (const mode of [0o640, 0o604, 0o644]) {
    const read = await readEndpoints(fileOf(folder, [good], mode));
    assert.ok(!read.ok && /others can read/.test(read.problem));
  }
  const bad = [
    { ...good, url: "http://hidden.example/token" },
    { ...good, url: "https://user:hidden@hidden.example/" },
    { ...good, url: "hidden" },
    { ...good, url: "file:///hidden" },
    { ...good, secrets: ["whsec_hidden"] },
    { ...good, secrets: [secret, secret, secret] },
    { ...good, secrets: undefined },
    { ...good, name: "Ops" },
    { ...good, event: ["approval.opened"] },
    { ...good, events: ["approval.open"] },
    { ...good, tenants: "acme" },
    { ...good, format: "teams" },
    { ...good, allow_private: "yes" },
  ];
  for (const endpoint of bad) {
    const read = await readEndpoints(fileOf(folder, [endpoint]));
    assert.ok(!read.ok, JSON.stringify(endpoint));
    assert.doesNotMatch(read.problem, /hidden|whsec_[A-Za-z0-9]|token/);
  }
  assert.ok(!(await readEndpoints(fileOf(folder, [good, good]))).ok);
  assert.ok((await readEndpoints(fileOf(folder, [good]))).ok);
  assert.ok(!(await readEndpoints(join(folder, "nowhere.json"))).ok);
});

test("Slack gets text with its markup escaped and a link only if the gate has a public address, and no signature", async (t) => {
  const endpoint = await endpointOf(t, { url: "https://hooks.slack.example/x", format: "slack", secrets: undefined });
  const subject = {
    row: 7,
    hash: "a".repeat(64),
    at: 0,
    tool: "pay<!channel>&",
    rules: ["pay.large"],
    asking: undefined,
  };
  const data = {
    row: 7,
    hash: subject.hash,
    approval: "apr_7_aa",
    tool: subject.tool,
    rules: subject.rules,
    status: "pending",
  };
  const position = { row: 7, index: 0 };
  const event = { id: "7-0-aaaaaaaaaaaaaaaa", type: "approval.opened", at: 0, position, subject, data } as const;
  const plain = formatWebhookMessage(event, endpoint, { log: "l", tenant: null });
  const { text, ...others } = JSON.parse(plain.body);
  assert.equal(text, "A call waits for a person: pay&lt;!channel&gt;&amp;; rules pay.large; apr_7_aa");
  assert.deepEqual(others, {}, "nothing to press");
  const linked = formatWebhookMessage(event, endpoint, { log: "l", tenant: "acme", publicUrl: "https://gate.example" });
  assert.match(JSON.parse(linked.body).text, / <https:\/\/gate\.example\/t\/acme\/console\/approvals\/apr_7_aa>$/);
  assert.ok(!("webhook-signature" in signedHeaders(plain, endpoint, 0)));
});

test("an endpoint of tenants does not get the root's events", async (t) => {
  const receiver = await receive(t);
  const desk = await sending(t, [
    { name: "root", url: receiver.url },
    { name: "acme", url: receiver.url, tenants: ["acme"] },
  ]);
  await desk.asks(large);
  await receiver.until(isOf("approval.opened"));
  assert.equal((await desk.operates("/admin/notify/replay", { from: 1, endpoint: "acme" })).status, 404);
});

test("`svc-gate notify` shows how far an endpoint has got, repeats events, and shows no address", async (t) => {
  const receiver = await receive(t);
  const desk = await sending(t, [{ url: receiver.url }]);
  const parked = await desk.asks(large);
  await receiver.until(isOf("approval.opened"));
  const source = { dataDir: join(desk.folder, "data"), json: false };
  const shown = await listCommand(source);
  assert.match(shown.text, /^ops: through row \d+ of \d+; 0 waiting; 0 dead$/);
  const { seq } = parked.receipt;
  const replayed = await replayCommand({ ...source, from: String(seq) });
  assert.equal(replayed.text, `all events from row ${seq} on are sent again to ops; their ids stay the same`);
  await eventually("the event again", () => receiver.received.filter(isOf("approval.opened")).length >= 2);
  const ids = receiver.received.filter(isOf("approval.opened")).map(({ id }) => id);
  assert.equal(ids[0], ids[1]);
  await assert.rejects(replayCommand({ ...source, from: "x" }), /--from must be the number of a row/);
  await desk.stop();
  assert.match((await listCommand(source)).text, /^no endpoint gets the events of this ledger: .* SVC_NOTIFY$/);
});

test("a ledger with an endpoint is not idle while an approval is open or an event is undelivered", async (t) => {
  const receiver = await receive(t);
  const notify = fileOf(temporaryFolder(t), [{ name: "ops", url: receiver.url, secrets: [secret], ...local }]);
  const gate = await startGate(t, { flags: { notify } });
  const without = await startGate(t);
  await eventually("an idle ledger", () => gate.gate.isIdle);
  const park = { tool_name: "mail.send", tool_input: {}, session_id: "s" };
  const { json } = await check(gate, park);
  await check(without, park);
  await receiver.until(isOf("approval.opened"));
  await new Promise((resolve) => setTimeout(resolve, 300)); // It must not become idle meanwhile.
  assert.equal(gate.gate.isIdle, false, "an open approval");
  assert.equal(without.gate.isIdle, true, "control: without an endpoint nobody waits for it");
  receiver.status = 503;
  const cancel = { method: "POST", headers: { "content-type": "application/json" }, body: '{"session_id":"s"}' };
  assert.equal((await ask(gate, `/approvals/${json.approval.id}/cancel`, cancel)).status, 200);
  await new Promise((resolve) => setTimeout(resolve, 300)); // It must not become idle meanwhile.
  assert.equal(gate.gate.isIdle, false, "an undelivered event");
});

/**
 * Goal: connections without a key cannot keep out a client that has one. Method: raw sockets from several loopback
 * addresses fill gates whose limit is small; the counting alone is compared with a list that is searched. Positive
 * controls: a gate that forgets which connections showed a key, and a share that nobody can exceed.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import dns from "node:dns";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { connect as connectTls } from "node:tls";
import { Keyless, networkOf } from "../../packages/gate/src/server/http/keyless.ts";
import { control } from "../support/controls/control.ts";
import { exchange, key, requestText, startGate, temporaryFolder } from "../support/gate.ts";
import { patienceMs } from "../support/patience.ts";
import { fill, half, isOpen, keyed, Line, until } from "../support/lines.ts";

test(
  "incomplete requests that fill all connections are closed for new ones, oldest first, and time out",
  { tags: ["attack-13"] },
  async (t) => {
    const gate = await startGate(t, { flags: { connections: "16" } });
    const flood = await fill(t, { port: gate.port, count: 40 });
    await until(flood, 16);
    assert.deepEqual(flood.map(isOpen), [...Array(24).fill(false), ...Array(16).fill(true)]);
    const [ours, stranger] = await fill(t, { port: gate.port, count: 2, bytes: "" });
    assert.equal(await ours?.ask(), 200);
    assert.equal(await stranger?.ask("GET /health HTTP/1.1\r\nHost: gate\r\n\r\n"), 200);
    while (flood.filter(isOpen).length > 14) await new Promise((resolve) => setTimeout(resolve, 10));
    assert.equal(flood[24]?.text, "", "the oldest was closed for a new connection, before it timed out");
    await until(flood, 0);
    assert.match(flood.at(-1)?.text ?? "", /^HTTP\/1\.1 408 /);
    assert.ok(await flood.at(-1)?.destroyed(patienceMs), "although its client does not end its side");
  },
);

test("connections that have shown a good key stay open while others are closed", { tags: ["attack-13"] }, async (t) => {
  const gate = await startGate(t, { flags: { connections: "16" } });
  const ours = await fill(t, { port: gate.port, count: 10, bytes: "" });
  for (const line of ours) assert.equal(await line.ask(), 200);
  const flood = await fill(t, { port: gate.port, count: 40 });
  await until(flood, 6);
  for (const line of ours) assert.equal(await line.ask(), 200);
  const wrong = await fill(t, { port: gate.port, count: 10, bytes: keyed.replace(key, "wrong") });
  await until(wrong, 6);
  for (const line of ours) assert.equal(await line.ask(), 200);
});

control(
  "positive control: a gate that forgets which connections showed a key is noticed",
  { tags: ["attack-13"] },
  async (t) => {
    const gate = await startGate(t, { flags: { connections: "16" } });
    const forget: (this: Keyless, socket: Socket) => void = Reflect.get(Keyless.prototype, "delete");
    t.mock.method(Keyless.prototype, "delete", function closedOnly(this: Keyless, socket: Socket) {
      if (socket.destroyed) forget.call(this, socket);
    });
    const ours = await fill(t, { port: gate.port, count: 10, bytes: "" });
    for (const line of ours) assert.equal(await line.ask(), 200);
    await fill(t, { port: gate.port, count: 40 });
    await until(ours, 0);
    assert.equal(await ours[0]?.ask(), undefined);
  },
);

test("a key that uses all connections but the reserve loses an idle one to its own next one", async (t) => {
  const gate = await startGate(t, { flags: { connections: "3" } });
  const ours = await fill(t, { port: gate.port, count: 2, bytes: "" });
  for (const line of ours) assert.equal(await line.ask(), 200);
  assert.match(await exchange(gate.port, requestText("GET /health HTTP/1.1")), /^HTTP\/1\.1 200 /, "the reserve");
  const [next] = await fill(t, { port: gate.port, count: 1, bytes: "" });
  assert.equal(await next?.ask(), 200);
  await until(ours, 1);
  assert.deepEqual(ours.map(isOpen), [false, true], "the one that was idle for longest");
});

test(
  "a connection whose key is no longer good is closed like a connection without a key",
  { tags: ["attack-12.i-2"] },
  async (t) => {
    const gate = await startGate(t, { flags: { connections: "4" } });
    const ours = await fill(t, { port: gate.port, count: 3, bytes: "" });
    for (const line of ours) assert.equal(await line.ask(), 200);
    const [stranger] = await fill(t, { port: gate.port, count: 1, bytes: "" });
    assert.equal(await ours[1]?.ask(keyed.replace(key, "revoked")), 401);
    assert.equal(await ours[2]?.ask("GET /health HTTP/1.1\r\nHost: gate\r\n\r\n"), 200);
    assert.equal(await ours[2]?.ask(), 200, "it has shown a good key again");
    const flood = await fill(t, { port: gate.port, count: 4 });
    await until([...(stranger === undefined ? [] : [stranger]), ...flood], 2);
    assert.deepEqual(ours.map(isOpen), [true, false, true]);
  },
);

test(
  "an address above its share loses its own connections, and other addresses keep older ones",
  { tags: ["attack-13"] },
  async (t) => {
    const gate = await startGate(t, { flags: { connections: "64" } });
    const patient = await fill(t, { port: gate.port, count: 5, bytes: half, from: "127.0.0.2" });
    const flood = await fill(t, { port: gate.port, count: 150, from: "127.0.0.3" });
    await until(flood, 59);
    assert.ok(patient.every(isOpen), "they are the oldest of all");
    const body = '{"tool_name":"note.add","tool_input":{}}';
    const headers = [
      `Authorization: Bearer ${key}`,
      "Content-Type: application/json",
      `Content-Length: ${body.length}`,
    ];
    for (const line of patient) assert.equal(await line.ask(`b\r\n${headers.join("\r\n")}\r\n\r\n${body}`), 200);
  },
);

test(
  "over TLS, connections without a key are closed for new ones, and those with a key stay",
  { tags: ["attack-13"] },
  async (t) => {
    const pair = selfSigned(temporaryFolder(t));
    if (pair === undefined) return t.skip("openssl is not installed, so the test cannot make a certificate");
    const gate = await startGate(t, { flags: { connections: "16", "tls-cert": pair.cert, "tls-key": pair.key } });
    const secure = async (bytes: string): Promise<Line> => {
      const socket = connectTls({
        port: gate.port,
        host: "127.0.0.1",
        ca: readFileSync(pair.cert),
        servername: "localhost",
      });
      t.after(() => socket.destroy());
      const line = new Line(socket);
      await Promise.race([once(socket, "secureConnect"), once(socket, "close")]);
      if (bytes !== "") socket.write(bytes);
      return line;
    };
    const ours = [await secure(""), await secure("")];
    for (const line of ours) assert.equal(await line.ask(), 200);
    const bare = await fill(t, { port: gate.port, count: 40, bytes: "" });
    await until(bare, 14);
    for (const line of ours) assert.equal(await line.ask(), 200);
    const slow: Line[] = [];
    for (let n = 0; n < 20; n += 1) slow.push(await secure(half));
    await until(bare, 0);
    await until(slow, 14);
    assert.equal(await (await secure("")).ask(), 200);
    for (const line of ours) assert.equal(await line.ask(), 200);
    return undefined;
  },
);

function selfSigned(folder: string): { readonly cert: string; readonly key: string } | undefined {
  const pair = { cert: join(folder, "gate.pem"), key: join(folder, "gate.key") };
  const args = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout".split(" ");
  try {
    execFileSync("openssl", [...args, pair.key, "-out", pair.cert], { stdio: "ignore" });
    return pair;
  } catch {
    return undefined;
  }
}

/** The members of a socket that the counting needs. */
interface Counted {
  readonly remoteAddress: string;
  destroyed: boolean;
  readonly destroy: () => void;
}

function counted(remoteAddress: string): Counted {
  const socket: Counted = { remoteAddress, destroyed: false, destroy: () => void (socket.destroyed = true) };
  return socket;
}

/** Opens, authenticates and closes connections at random; returns how often the wrong one was closed. */
function wrongChoices(share: number, supposed: number): number {
  const keyless = new Keyless(share);
  const known: Counted[] = [];
  let [state, wrong] = [13, 0];
  const below = (n: number): number => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >>> 8) % n;
  };
  for (let step = 0; step < 20_000; step += 1) {
    const socket = counted(`10.0.0.${below(3) * below(4)}`);
    known.push(socket);
    keyless.add(socket as unknown as Socket);
    if (below(3) === 0) keyless.delete(known.splice(below(known.length), 1)[0] as unknown as Socket);
    if (known.length <= 40) continue;
    const perAddress = Map.groupBy(known, ({ remoteAddress }) => remoteAddress);
    const greedy = [...perAddress.values()].filter(({ length }) => length > supposed);
    const right = greedy.length === 0 ? [known[0]] : greedy.map(([oldest]) => oldest);
    const from = keyless.closeOldest();
    const at = known.findIndex(({ destroyed }) => destroyed);
    const [closed] = known.splice(at, 1);
    if (closed?.remoteAddress !== from || !right.includes(closed)) wrong += 1;
  }
  return wrong;
}

test(
  "the oldest connection of an address above its share is closed, otherwise the oldest of all",
  { tags: ["attack-13"] },
  () => {
    assert.equal(wrongChoices(16, 16), 0);
    assert.ok(wrongChoices(Number.POSITIVE_INFINITY, 16) > 100, "positive control: nobody has a share");
  },
);

test(
  "connections that closed by themselves are skipped, and nothing is closed if no other is left",
  { tags: ["attack-13"] },
  () => {
    const keyless = new Keyless(2);
    const sockets = ["a", "a", "b"].map(counted);
    for (const socket of sockets) keyless.add(socket as unknown as Socket);
    sockets[0]?.destroy();
    sockets[1]?.destroy();
    assert.equal(keyless.closeOldest(), "b");
    assert.equal(keyless.closeOldest(), undefined);
  },
);

test("the gate binds localhost to one address only", async (t) => {
  const lookup = t.mock.method(dns, "lookup", (host: string, options: object, done: (...found: unknown[]) => void) => {
    const names = host === "localhost" ? ["127.0.0.1", "127.0.0.2"] : [host];
    const found = names.map((address) => ({ address, family: 4 }));
    if ("all" in options && options.all === true) done(null, found);
    else done(null, found[0]?.address, 4);
  });
  const gate = await startGate(t, { flags: { host: "localhost", connections: "3" } });
  lookup.mock.restore();
  assert.match(await exchange(gate.port, requestText("GET /health HTTP/1.1")), /^HTTP\/1\.1 200 /);
  const other = connect(gate.port, "127.0.0.2");
  await assert.rejects(once(other, "connect"), /ECONNREFUSED/);
});

test("all addresses of one IPv6 /64 network have one share together", { tags: ["attack-13"] }, () => {
  const cases = [
    ["127.0.0.1", "127.0.0.1"],
    ["::ffff:10.0.0.7", "10.0.0.7"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["2001:db8::ffff:1", "2001:db8:0:0::/64"],
    ["2001:db8:0:1::1", "2001:db8:0:1::/64"],
    ["", ""],
  ] as const;
  for (const [address, network] of cases) assert.equal(networkOf(address), network);
});

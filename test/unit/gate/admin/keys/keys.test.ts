/**
 * Goal: the rows of the ledger alone define the keys, at any time and in every gate that shares the ledger. Keys have
 * the format of spec/vectors/keys.json, and a new key gets only what was requested and what its maker has. Method: a
 * key ring over a real ledger, on the test's clock; tables of requests; a second ring for another gate.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { Clock, systemTime } from "../../../../../packages/gate/src/server/policy/clock.ts";
import { noContracts } from "../../../../../packages/gate/src/server/policy/contracts.ts";
import { openGate, type Gate } from "../../../../../packages/gate/src/server/service/gate.ts";
import {
  changeKey,
  KeyRing,
  listKeys,
  looksLikeKey,
  hasKeyForm,
  type ChangedKey,
  type ValidKey,
} from "../../../../../packages/gate/src/server/keys/keys.ts";
import type { KeyJson } from "../../../../../packages/core/src/wire/mod.ts";
import { operatorKey } from "../../../../../packages/gate/src/server/keys/known-keys.ts";
import { makeKey } from "../../../../../packages/gate/src/server/keys/token.ts";
import {
  inspectLedger,
  openLedger,
  type RecordedChange,
  type Ledger,
} from "../../../../../packages/gate/src/ledger/mod.ts";
import { root } from "../../../../support/gate-process.ts";
import { engine, temporaryFolder } from "../../../../support/ledger-fixture.ts";
import { sentencesOf } from "../../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

interface Vectors {
  readonly pattern: string;
  readonly keys: readonly { key: string; crc32: number; checksum: string; sha256: string }[];
  readonly not_keys: readonly { text: string; has_form: boolean }[];
}

suite("the format of a key", () => {
  const vectors: Vectors = JSON.parse(readFileSync(join(root, "spec", "vectors", "keys.json"), "utf8"));
  const pattern = new RegExp(`^${vectors.pattern}$`);

  test("the key check agrees with spec/vectors/keys.json", () => {
    for (const { key, checksum, sha256 } of vectors.keys) {
      assert.ok(looksLikeKey(key) && pattern.test(key) && key.endsWith(checksum), key);
      assert.equal(hash("sha256", key, "hex"), sha256);
    }
    for (const { text, has_form } of vectors.not_keys) {
      assert.deepEqual([looksLikeKey(text), hasKeyForm(text)], [false, has_form], text);
    }
  });

  test("the Python code in docs/guides/keys.md accepts the same keys as the gate", (t) => {
    const code = /```python\n([^]*?)```/.exec(readFileSync(join(root, "docs", "guides", "keys.md"), "utf8"))?.[1] ?? "";
    const texts = [...vectors.keys.map(({ key }) => key), ...vectors.not_keys.map(({ text }) => text)];
    const script = `${code}\nimport json, sys\nprint(json.dumps([is_key(text) for text in json.load(sys.stdin)]))`;
    const { stdout, error } = spawnSync("python3", ["-c", script], { input: JSON.stringify(texts), encoding: "utf8" });
    if (error !== undefined) return t.skip("python3 is not installed here");
    return assert.deepEqual(JSON.parse(stdout), texts.map(looksLikeKey));
  });

  test("generated keys are unique and valid, and a mistyped character makes a key invalid", () => {
    const made = Array.from({ length: 200 }, makeKey);
    assert.equal(new Set(made).size, made.length);
    const used = new Set(made.flatMap((key) => Array.from(key.slice(5, 48))));
    assert.equal(used.size, 62, "every digit of base62 appears in some key");
    for (const key of made) {
      assert.ok(looksLikeKey(key) && pattern.test(key), key);
      for (let at = 5; at < key.length; at += 1) {
        const other = key[at] === "x" ? "y" : "x";
        assert.ok(!looksLikeKey(key.slice(0, at) + other + key.slice(at + 1)));
      }
    }
  });
});

interface Fixture {
  readonly ring: KeyRing;
  readonly ledger: Ledger;
  readonly gate: Gate;
  /** Milliseconds, set by the test. */
  readonly time: { now: number };
  /** A ring of another gate on the same ledger. */
  readonly other: () => Promise<KeyRing>;
  readonly close: () => Promise<void>;
}

const first = "the-first-key-of-this-test";
const start = Date.parse("2026-03-01T00:00:00Z");
const day = 86_400_000;

type Admin = Parameters<typeof changeKey>[1];
type Changed = ReturnType<typeof changeKey>;

const createKey = (ring: KeyRing, admin: Admin, body: unknown): Changed =>
  changeKey(ring, admin, { act: "create", body });
const rotateKey = (ring: KeyRing, admin: Admin, name: string, body: unknown): Changed =>
  changeKey(ring, admin, { act: "rotate", name, body });
const revokeKey = (ring: KeyRing, admin: Admin, name: string, body: unknown): Changed =>
  changeKey(ring, admin, { act: "revoke", name, body });

async function open(t: TestContext, folder = temporaryFolder(t)): Promise<Fixture> {
  const ledger = await openLedger({ folder, engine });
  const opened = await openGate({
    ledger,
    policySet: noContracts(),
    mode: "observe",
    clock: new Clock(systemTime),
    onDefect: () => undefined,
  });
  assert.ok(opened.ok);
  const { gate } = opened.value;
  const time = { now: start };
  const firstKey = hash("sha256", first, "hex");
  const isTenant = (id: string): boolean => id === "acme" || id === "globex";
  const other = (): Promise<KeyRing> => KeyRing.open({ gate, ledger, firstKey, isTenant, now: () => time.now });
  const ring = await other();
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => (closed ??= ring.close().then(() => ledger.close()));
  t.after(close);
  return { ring, ledger, gate, time, other, close };
}

const atRoot = { by: operatorKey, tenant: null };

function bytes(body: object | string): Buffer {
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
}

async function make(ring: KeyRing, body: object, asking: Admin = atRoot): Promise<ChangedKey & { key: string }> {
  const made = await createKey(ring, asking, bytes(body));
  assert.ok(made.ok, JSON.stringify(made));
  assert.ok(made.value.key !== undefined);
  return { ...made.value, key: made.value.key };
}

async function rotate(ring: KeyRing, name: string, body: object = {}): Promise<ChangedKey & { key: string }> {
  const made = await rotateKey(ring, atRoot, name, bytes(body));
  assert.ok(made.ok && made.value.key !== undefined, JSON.stringify(made));
  return { ...made.value, key: made.value.key };
}

function find(ring: KeyRing, key: string): ValidKey | undefined {
  return ring.known.find(`Bearer ${key}`);
}

async function shown(ring: KeyRing, name: string): Promise<KeyJson> {
  const found = (await listKeys(ring, atRoot)).find((key) => key.name === name);
  assert.ok(found !== undefined);
  return found;
}

test("the ring finds a new key with its scopes, tools and rate, and no wrong key", async (t) => {
  const { ring, ledger } = await open(t);
  const made = await make(ring, {
    name: "ci",
    owner: "Payments",
    scopes: ["rules", "check"],
    tools: ["mail.*", "note.add"],
    rate: { per_second: 50 },
  });
  const { key, receipt, ...rest } = made;
  assert.deepEqual(rest, {
    name: "ci",
    tenant: null,
    owner: "Payments",
    scopes: ["check", "rules"],
    kind: null,
    tools: ["mail.*", "note.add"],
    rate: { per_second: 50, burst: 50 },
    person: null,
    groups: [],
    created: rest.created,
    expires: null,
    previous_until: null,
    state: "active",
    last_used: null,
  });
  assert.equal(receipt.seq, ledger.head.seq);
  const found = find(ring, key);
  assert.deepEqual([found?.name, found?.id, found?.tenant, found?.owner], ["ci", "ci", null, "Payments"]);
  assert.deepEqual([...(found?.scopes ?? [])], ["check", "rules"]);
  assert.deepEqual(found?.rate, { perSecond: 50, burst: 50 });
  assert.deepEqual(
    ["mail.send", "note.add", "note.ad", "mail"].map((name) => found?.allowsTool(name)),
    [true, true, false, false],
  );
  assert.equal(find(ring, key), found, "one object for as long as nothing changes");
  const mistyped = key.slice(0, -1) + (key.endsWith("a") ? "b" : "a");
  for (const wrong of [
    undefined,
    "",
    key,
    "Bearer ",
    `Basic ${key}`,
    `Bearer ${mistyped}`,
    `Bearer ${hash("sha256", key, "hex")}`,
  ])
    assert.equal(ring.known.find(wrong), undefined, String(wrong));
  assert.equal(find(ring, first)?.name, "default");
});

test("the gate refuses a key from the millisecond at which it expires", async (t) => {
  const { ring, time } = await open(t);
  const { key, expires } = await make(ring, { name: "short", expires: "30d" });
  assert.equal(expires, "2026-03-31T00:00:00.000Z");
  const states: string[] = [];
  for (const now of [start, start + 24 * day, start + 30 * day - 1, start + 30 * day]) {
    time.now = now;
    states.push(`${(await shown(ring, "short")).state} ${find(ring, key) !== undefined}`);
  }
  assert.deepEqual(states, ["active true", "expiring true", "expiring true", "expired false"]);
  const refused = await rotateKey(ring, atRoot, "short", bytes({}));
  says("rotation-of-expired-key", refused.ok ? "" : refused.problem.detail);
  const rotated = await rotate(ring, "short", { expires: "2027-01-01T00:00:00+01:00" });
  assert.equal(rotated.expires, "2026-12-31T23:00:00.000Z");
  assert.deepEqual(
    [find(ring, key), find(ring, rotated.key)?.name],
    [undefined, "short"],
    "the old one does not come back",
  );
});

test("after a rotation the old key works until the overlap ends or another rotation follows", async (t) => {
  const { ring, time } = await open(t);
  const { key: one } = await make(ring, { name: "ci" });
  const { key: two, previous_until, state } = await rotate(ring, "ci", { overlap: "2h" });
  assert.deepEqual([previous_until, state], ["2026-03-01T02:00:00.000Z", "rotating"]);
  const good = (...keys: readonly string[]): readonly boolean[] => keys.map((key) => find(ring, key) !== undefined);
  time.now = start + 2 * 3_600_000 - 1;
  assert.deepEqual(good(one, two), [true, true]);
  time.now += 1;
  assert.deepEqual(good(one, two), [false, true]);
  assert.equal((await shown(ring, "ci")).state, "active");
  const { key: three } = await rotate(ring, "ci");
  const { key: four } = await rotate(ring, "ci");
  assert.deepEqual(good(one, two, three, four), [false, false, true, true]);
  const { key: five } = await rotate(ring, "ci", { overlap: "0s" });
  assert.deepEqual(good(one, two, three, four, five), [false, false, false, false, true]);
});

test("an operator can rotate and revoke the first key, and no row contains its guessable digest", async (t) => {
  const { ring, ledger, time } = await open(t);
  const { key } = await rotate(ring, "default", { overlap: "1h" });
  assert.deepEqual([find(ring, first)?.name, find(ring, key)?.name], ["default", "default"]);
  time.now += 3_600_000;
  assert.deepEqual([find(ring, first), find(ring, key)?.name], [undefined, "default"]);
  assert.ok(ring.known.isFirstKeyReplaced);
  assert.ok((await revokeKey(ring, atRoot, "default", bytes({}))).ok);
  assert.deepEqual([find(ring, first), find(ring, key)], [undefined, undefined]);
  assert.ok(ring.known.isEmpty);
  const rows = JSON.stringify(await ledger.rows.changes(0));
  assert.ok(!rows.includes(hash("sha256", first, "hex")));
  assert.ok(rows.includes(hash("sha256", key, "hex")), "positive control: a made key's digest is there");
  assert.equal(ledger.head.seq, 2);
});

test("a revoked key stops working immediately, and nobody can reuse its name", async (t) => {
  const { ring } = await open(t);
  const { key } = await make(ring, { name: "ci" });
  const { key: next } = await rotate(ring, "ci");
  assert.ok((await revokeKey(ring, atRoot, "ci", bytes({}))).ok);
  assert.deepEqual(
    [find(ring, key), find(ring, next), (await shown(ring, "ci")).state],
    [undefined, undefined, "revoked"],
  );
  const again = [
    await createKey(ring, atRoot, bytes({ name: "ci" })),
    await rotateKey(ring, atRoot, "ci", bytes({})),
    await revokeKey(ring, atRoot, "ci", bytes({})),
  ];
  assert.deepEqual(
    again.map((each) => (each.ok ? "" : each.problem.code)),
    ["conflict", "conflict", "conflict"],
  );
});

test("a gate adopts another gate's changes to keys at a refresh and before each change of its own", async (t) => {
  const { ring, other, ledger } = await open(t);
  const elsewhere = await other();
  const { key } = await make(ring, { name: "ci" });
  assert.equal(find(elsewhere, key), undefined, "positive control: nothing has told it yet");
  const taken = await createKey(elsewhere, atRoot, bytes({ name: "ci" }));
  assert.equal(taken.ok ? "" : taken.problem.code, "conflict");
  assert.equal(ledger.head.seq, 1);
  assert.equal(find(elsewhere, key)?.name, "ci");
  assert.ok((await revokeKey(ring, atRoot, "ci", bytes({}))).ok);
  assert.equal(find(elsewhere, key)?.name, "ci", "positive control");
  await elsewhere.refresh();
  assert.equal(find(elsewhere, key), undefined);
});

test("a gate forgets key changes that were lost with a server and follows the rows that replaced them", async (t) => {
  const { ring, ledger } = await open(t);
  const [ci, ops] = [await make(ring, { name: "ci" }), await make(ring, { name: "ops" })];
  assert.ok((await revokeKey(ring, atRoot, "ci", bytes({}))).ok);
  const [made, other, revoked] = await ledger.rows.changes(0);
  assert.ok(made !== undefined && other !== undefined && revoked !== undefined);
  let rows = [made, other];
  const changes = (after: number): Promise<readonly RecordedChange[]> =>
    Promise.resolve(rows.filter(({ seq }) => seq > after));
  const gate = { appendAdminEvent: () => assert.fail() };
  const standby = { isShared: false, keyNotes: ledger.keyNotes, rows: { ...ledger.rows, changes } };
  const firstKey = hash("sha256", first, "hex");
  const elsewhere = await KeyRing.open({ gate, ledger: standby, firstKey, isTenant: () => false });
  t.after(() => elsewhere.close());
  const operator = elsewhere.known.makeOperatorKey();
  rows = [made];
  await elsewhere.refresh();
  assert.ok(find(elsewhere, ops.key), "a history that is shorter, as a standby's may be, says nothing");
  rows = [made, { ...revoked, seq: 2 }];
  await elsewhere.refresh();
  assert.deepEqual([find(elsewhere, ops.key), find(elsewhere, ci.key)], [undefined, undefined]);
  assert.deepEqual([find(elsewhere, first)?.name, find(elsewhere, operator)?.name], ["default", "operator"]);
  rows = [made, { ...other, seq: 9 }];
  await elsewhere.refresh();
  assert.ok(find(elsewhere, ci.key) && find(elsewhere, ops.key), "positive control");
  rows = [made, { ...revoked, seq: 4 }];
  await elsewhere.refresh();
  assert.deepEqual([find(elsewhere, ci.key), find(elsewhere, ops.key)], [undefined, undefined], "it stands before it");
});

test("keys survive a restart unchanged, and the ledger's chain is intact", async (t) => {
  const folder = temporaryFolder(t);
  const before = await open(t, folder);
  const { key } = await make(before.ring, {
    name: "ci",
    tools: ["a*"],
    rate: { per_second: 2, burst: 9 },
    expires: "90d",
  });
  const gone = await make(before.ring, { name: "gone", tenant: "acme" });
  assert.ok((await revokeKey(before.ring, { ...atRoot, tenant: "acme" }, "gone", bytes({}))).ok);
  assert.equal(find(before.ring, key)?.name, "ci");
  const listed = await listKeys(before.ring, atRoot);
  await before.close();
  const { ring } = await open(t, folder);
  assert.deepEqual(await listKeys(ring, atRoot), listed);
  assert.deepEqual([find(ring, key)?.name, find(ring, gone.key)], ["ci", undefined]);
  const { rows, broken } = await inspectLedger({ folder });
  assert.deepEqual([rows, broken], [3, undefined]);
});

test("the ring stores a thousand uses of a key in one write, and writes nothing without uses", async (t) => {
  const { ring, ledger, time } = await open(t);
  const { key } = await make(ring, { name: "ci" });
  const written = t.mock.method(ledger.keyNotes, "keepUses");
  for (let use = 0; use < 1000; use += 1) {
    time.now += 1;
    assert.ok(find(ring, key) !== undefined);
  }
  assert.equal(written.mock.callCount(), 0);
  assert.equal((await shown(ring, "ci")).last_used, "2026-03-01T00:00:01.000Z");
  await ring.keepUses();
  await ring.keepUses();
  assert.deepEqual(
    written.mock.calls.map(({ arguments: [uses] }) => [...(uses ?? [])]),
    [[["ci", start + 1000]]],
  );
  await ring.close();
  assert.equal(written.mock.callCount(), 1);
  find(ring, first);
  await ring.close();
  assert.deepEqual(
    await ledger.keyNotes.uses(),
    new Map([
      ["ci", start + 1000],
      ["default", start + 1000],
    ]),
  );
});

test("a serving gate writes the uses of keys at most once a minute", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const { ring, ledger } = await open(t);
  const written = t.mock.method(ledger.keyNotes, "keepUses");
  find(ring, first);
  t.mock.timers.tick(59_999);
  assert.equal(written.mock.callCount(), 0);
  t.mock.timers.tick(1);
  assert.equal(written.mock.callCount(), 1);
  t.mock.timers.tick(600_000);
  assert.equal(written.mock.callCount(), 1);
});

const badBodies: readonly (readonly [object | string, string])[] = [
  ["{", "broken-json"],
  ['{"name":"a","name":"b"}', "name-twice"],
  [{}, "name-missing"],
  [{ name: 1 }, "name-a-number"],
  [{ name: "" }, "name-empty"],
  [{ name: "CI" }, "name-in-capitals"],
  [{ name: "a/b" }, "name-with-slash"],
  [{ name: "a".repeat(65) }, "name-too-long"],
  [{ name: "operator" }, "name-operator"],
  [{ name: "start" }, "name-start"],
  [{ name: "a", scope: ["check"] }, "unknown-member"],
  [{ name: "a", owner: "" }, "owner-empty"],
  [{ name: "a", owner: "x\u202e" }, "owner-not-visible"],
  [{ name: "a", scopes: [] }, "scopes-empty"],
  [{ name: "a", scopes: "check" }, "scopes-a-text"],
  [{ name: "a", scopes: ["chek"] }, "scope-mistyped"],
  [{ name: "a", scopes: ["everything"] }, "scope-unknown"],
  [{ name: "a", expires: "soon" }, "expires-in-words"],
  [{ name: "a", expires: "2026-02-30T00:00:00Z" }, "expires-on-no-day"],
  [{ name: "a", expires: "2026-02-28T00:00:00Z" }, "expires-in-the-past"],
  [{ name: "a", expires: "0d" }, "expires-now"],
  [{ name: "a", tenant: "nobody" }, "no-such-tenant"],
  [{ name: "a", tools: [] }, "tools-empty"],
  [{ name: "a", tools: [""] }, "tool-pattern-empty"],
  [{ name: "a", rate: 5 }, "rate-a-number"],
  [{ name: "a", rate: { per_second: 0 } }, "rate-zero"],
  [{ name: "a", rate: { per_second: 0.5 } }, "rate-not-whole"],
  [{ name: "a", rate: { per_minute: 5 } }, "rate-unknown-member"],
];

test("the gate explains each bad request about keys and records nothing", async (t) => {
  const { ring, ledger } = await open(t);
  for (const [body, name] of badBodies) {
    const refused = await createKey(ring, atRoot, bytes(body));
    says(name, refused.ok ? "made" : refused.problem.detail);
    assert.ok(!refused.ok && refused.problem.code.startsWith("invalid-"));
  }
  await make(ring, { name: "a" });
  for (const body of [{ overlap: "31d" }, { overlap: 5 }, { overlap: "1w" }, { expires: "never" }, { over: "1h" }]) {
    const refused = await rotateKey(ring, atRoot, "a", bytes(body));
    assert.equal(refused.ok ? "" : refused.problem.code, "invalid-request");
  }
  for (const [act, name] of [
    [rotateKey, "b"],
    [revokeKey, "b"],
    [revokeKey, "acme/x"],
    [revokeKey, "__proto__"],
  ] as const) {
    const refused = await act(ring, atRoot, name, bytes({}));
    assert.equal(refused.ok ? "" : refused.problem.code, "not-found");
  }
  assert.equal(ledger.head.seq, 1);
});

test("only root administrators can hand out more rights than their own key has", async (t) => {
  const { ring } = await open(t);
  const admin = async (name: string, body: object): Promise<Admin> => {
    const { key } = await make(ring, { name, tenant: "acme", ...body });
    const by = find(ring, key);
    assert.ok(by !== undefined);
    return { by, tenant: "acme" };
  };
  const plain = await admin("plain", { scopes: ["admin", "rules"] });
  const mailer = await admin("mailer", { scopes: ["admin", "rules"], tools: ["mail.*"] });
  const rows: readonly (readonly [typeof plain, object, string])[] = [
    [plain, { name: "a1", scopes: ["rules"] }, "made"],
    [plain, { name: "a2", scopes: ["rules", "admin"], tools: ["mail.send"] }, "made"],
    [plain, { name: "a3", scopes: ["receipts"] }, "forbidden"],
    [plain, { name: "a4", tenant: "acme", scopes: ["rules"] }, "made"],
    [plain, { name: "a5", tenant: "globex", scopes: ["rules"] }, "forbidden"],
    [plain, { name: "a6", tenant: null, scopes: ["rules"] }, "forbidden"],
    [mailer, { name: "m1", scopes: ["rules"] }, "forbidden"],
    [mailer, { name: "m2", scopes: ["rules"], tools: ["mail.send", "mail.d*"] }, "made"],
    [mailer, { name: "m3", scopes: ["rules"], tools: ["mail.send", "mai*"] }, "forbidden"],
    [mailer, { name: "m4", scopes: ["rules"], tools: ["*"] }, "forbidden"],
  ];
  for (const [asking, body, outcome] of rows) {
    const made = await createKey(ring, asking, bytes(body));
    assert.equal(made.ok ? "made" : made.problem.code, outcome, JSON.stringify(body));
  }
  await make(ring, { name: "reader", tenant: "acme", scopes: ["receipts"] });
  const stolen = await rotateKey(ring, plain, "reader", bytes({}));
  assert.equal(stolen.ok ? "" : stolen.problem.code, "forbidden", "a rotation would hand over the scope");
  assert.ok((await rotateKey(ring, { ...atRoot, tenant: "acme" }, "reader", bytes({}))).ok, "positive control");
  assert.ok((await revokeKey(ring, plain, "reader", bytes({}))).ok, "a revocation does not hand out a key");
});

test("tenants can use the same key names, and each tenant sees only its own keys", async (t) => {
  const { ring } = await open(t);
  const keys = await Promise.all([null, "acme", "globex"].map((tenant) => make(ring, { name: "ci", tenant })));
  assert.deepEqual(
    keys.map(({ key }) => find(ring, key)?.id),
    ["ci", "acme/ci", "globex/ci"],
  );
  const acme = { by: operatorKey, tenant: "acme" };
  assert.deepEqual(
    (await listKeys(ring, acme)).map(({ name, tenant }) => `${tenant}/${name}`),
    ["acme/ci"],
  );
  assert.equal((await listKeys(ring, atRoot)).length, 4);
  assert.ok((await revokeKey(ring, acme, "ci", bytes({}))).ok);
  assert.deepEqual(
    keys.map(({ key }) => find(ring, key)?.id),
    ["ci", undefined, "globex/ci"],
  );
  const none = await revokeKey(ring, acme, "default", bytes({}));
  assert.equal(none.ok ? "" : none.problem.code, "not-found");
});

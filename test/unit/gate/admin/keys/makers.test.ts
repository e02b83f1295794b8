/**
 * Goal: nobody is two voices, and nobody decides a call of their own, by means of keys that they made or changed (finding
 * P4). Method: a ring over a real ledger whose time the test moves: a table of chains of makers; and random histories
 * beside a naive model that reads the whole history for each question. Positive control: models that look one step back, or at
 * the last change alone, differ.
 */
import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import { voicesOf } from "../../../../../packages/core/src/approvals/mod.ts";
import { addPerson, changeKey, KeyRing, type ValidKey } from "../../../../../packages/gate/src/server/keys/keys.ts";
import { operatorKey } from "../../../../../packages/gate/src/server/keys/known-keys.ts";
import { Clock } from "../../../../../packages/gate/src/server/policy/clock.ts";
import { noContracts } from "../../../../../packages/gate/src/server/policy/contracts.ts";
import { openGate } from "../../../../../packages/gate/src/server/service/gate.ts";
import { openLedger } from "../../../../../packages/gate/src/ledger/mod.ts";
import { control } from "../../../../support/controls/control.ts";
import { engine, temporaryFolder } from "../../../../support/ledger-fixture.ts";
import { printSeed, seedOf } from "../../../../support/random-test.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const people = ["anna", "ben", "lee", "joe"];

type Act = "create" | "revoke" | "rotate" | "update";

interface Bench {
  readonly time: { now: number };
  /** Makes or changes a key by another one; the operator's if none is named. */
  readonly change: (act: Act, name: string, body: object, by?: string) => Promise<void>;
  /** The voices of a vote by a key, now; undefined if it may not vote. */
  readonly votes: (name: string) => readonly string[] | undefined;
  readonly asks: (name: string, at?: number) => readonly string[];
}

async function open(t: TestContext): Promise<Bench> {
  const time = { now: Date.UTC(2026, 0, 1) };
  const ledger = await openLedger({ folder: temporaryFolder(t), engine });
  const clock = new Clock({ wall: () => time.now, monotonic: () => time.now });
  const onDefect = (): undefined => undefined;
  const opened = await openGate({ ledger, policySet: noContracts(), mode: "observe", clock, onDefect });
  assert.ok(opened.ok);
  const { gate } = opened.value;
  const ring = await KeyRing.open({ gate, ledger, firstKey: undefined, isTenant: () => false, now: () => time.now });
  t.after(() => ring.close().then(() => ledger.close()));
  for (const person of people)
    assert.ok(
      (await addPerson(ring, { by: operatorKey, tenant: null }, Buffer.from(JSON.stringify({ name: person })))).ok,
    );
  const keys = new Map<string, ValidKey>([["operator", operatorKey]]);
  return {
    time,
    change: async (act, name, body, by = "operator") => {
      const request = { act, name, body: Buffer.from(JSON.stringify(act === "create" ? { name, ...body } : body)) };
      const changed = await changeKey(ring, { by: keys.get(by) ?? assert.fail(by), tenant: null }, request);
      if (!changed.ok) assert.fail(changed.problem.detail);
      const { key } = changed.value as { readonly key?: string };
      const found = key === undefined ? undefined : ring.known.find(`Bearer ${key}`);
      if (found !== undefined) keys.set(name, found);
    },
    votes: (name) => {
      const voter = ring.known.voter({ name, tenant: null }, time.now);
      return voter && [...new Set(voicesOf(voter))].toSorted();
    },
    asks: (name, at = time.now) => {
      const { makers, person } = ring.known.asker({ name, tenant: null }, at);
      return [...new Set(person === undefined ? makers : [person, ...makers])].toSorted();
    },
  };
}

const admin = (person?: string): object => ({ scopes: ["admin", "approve"], person: person ?? "joe" });
const approver = (person: string): object => ({ scopes: ["approve"], person });
const agent = (person?: string): object => ({ scopes: ["check"], ...(person !== undefined && { person }) });

suite("who is another person", () => {
  test("[P4] a young key has the voices of its maker, of the maker's maker, and so on while each was young", async (t) => {
    const { change, time, votes } = await open(t);
    await change("create", "bens", admin("ben"));
    time.now += 2 * dayMs;
    await change("create", "lees-admin", admin("lee"), "bens");
    await change("create", "joes-admin", admin("joe"), "lees-admin");
    await change("create", "annas", approver("anna"), "joes-admin");
    assert.deepEqual(votes("annas"), ["anna", "ben", "joe", "lee"]);
    time.now += 23 * hourMs;
    await change("create", "annas-2", approver("anna"), "joes-admin");
    time.now += 2 * hourMs;
    assert.deepEqual(votes("annas"), ["anna"], "a day later the key is its person's alone");
    assert.deepEqual(votes("annas-2"), ["anna", "ben", "joe", "lee"], "its maker was young when it acted");
    await change("create", "annas-3", approver("anna"), "joes-admin");
    assert.deepEqual(votes("annas-3"), ["anna", "joe"], "its maker was a day old");
  });

  test("[P4] another change of a young key does not hide its maker", async (t) => {
    const { change, time, votes } = await open(t);
    await change("create", "bens", admin("ben"));
    await change("create", "joes", admin("joe"));
    time.now += 2 * dayMs;
    await change("create", "lees", approver("lee"), "bens");
    time.now += hourMs;
    for (const act of ["update", "rotate"] as const)
      await change(act, "lees", act === "update" ? { groups: ["x"] } : {}, "joes");
    assert.deepEqual(votes("lees"), ["ben", "joe", "lee"]);
    time.now += 23 * hourMs;
    assert.deepEqual(votes("lees"), ["joe", "lee"]);
    time.now += hourMs;
    assert.deepEqual(votes("lees"), ["lee"]);
  });

  test("[P4] a change of the maker's key, also its end, does not change as whose voice it acted", async (t) => {
    const { change, time, votes } = await open(t);
    await change("create", "bens", admin("ben"));
    time.now += 2 * dayMs;
    await change("create", "lees", approver("lee"), "bens");
    await change("update", "bens", { person: "joe" });
    assert.deepEqual(votes("lees"), ["ben", "lee"]);
    await change("revoke", "bens", {});
    assert.deepEqual(votes("lees"), ["ben", "lee"]);
  });

  test("[P4] an asking key counts for the person that it had when it asked, and for its makers then", async (t) => {
    const { asks, change, time } = await open(t);
    await change("create", "bens", admin("ben"));
    time.now += 2 * dayMs;
    await change("create", "agent", agent(), "bens");
    await change("create", "annas-agent", agent("anna"), "bens");
    assert.deepEqual([asks("agent"), asks("annas-agent")], [["ben"], ["anna", "ben"]]);
    time.now += dayMs;
    assert.deepEqual([asks("agent"), asks("annas-agent")], [[], ["anna"]]);
    const askedAt = time.now;
    time.now += hourMs;
    await change("update", "annas-agent", { person: "lee" }, "bens");
    assert.deepEqual(asks("annas-agent", askedAt), ["anna"], "the call from before");
    assert.deepEqual(asks("annas-agent"), ["ben", "lee"]);
  });

  test("[P4] control: the operator counts as the maker of a vote, and never as the one who asked", async (t) => {
    const { asks, change, votes } = await open(t);
    await change("create", "agent", agent());
    await change("create", "annas", approver("anna"));
    assert.deepEqual([asks("agent"), votes("annas")], [[], ["anna", "key operator"]]);
  });
});

interface Made {
  readonly at: number;
  readonly name: string;
  readonly by: string;
  readonly person: string | undefined;
}

type Naive = (history: readonly Made[], name: string, at: number, until: number) => readonly string[];

/** The naive model: the voices of a key at a moment, from all changes up to there. */
const naive: Naive = (history, name, at, until) => {
  const past = history.slice(0, until);
  const own = past.findLast((change) => change.name === name)?.person ?? `key ${name}`;
  const found = new Set([own]);
  for (const [index, change] of past.entries())
    if (change.name === name && at < change.at + dayMs)
      for (const voice of naive(history, change.by, change.at, index)) found.add(voice);
  return [...found].toSorted();
};

/** Runs random changes by random keys; returns the first key for which the ring and the model differ. */
async function differs(t: TestContext, seed: number, steps: number, model: Naive): Promise<string | undefined> {
  let state = seed;
  const below = (size: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7f_ff_ff_ff;
    return (state >>> 8) % size;
  };
  const { asks, change, time, votes } = await open(t);
  const history: Made[] = [];
  const names = ["operator"];
  for (let step = 0; step < steps; step += 1) {
    time.now += below(4) === 0 ? below(30) * hourMs : 1;
    const by = names[below(names.length)] ?? "operator";
    const person = people[below(people.length)] ?? "anna";
    const isNew = names.length < 4 || below(3) > 0;
    const name = isNew ? `k${step}` : (names[1 + below(names.length - 1)] ?? "");
    if (isNew) names.push(name);
    const body = isNew ? admin(person) : { person };
    await change(isNew ? "create" : "update", name, body, by);
    history.push({ at: time.now, name, by, person });
    // An approver's key of the same maker, so that the ring answers for a vote.
    await change("create", `v${step}`, approver(person), name);
    history.push({ at: time.now, name: `v${step}`, by: name, person });
    const expected = model(history, `v${step}`, time.now, history.length);
    if (JSON.stringify(votes(`v${step}`)) !== JSON.stringify(expected)) return `v${step}: ${expected.join()}`;
    const askers = model(history, name, time.now, history.length).filter((voice) => people.includes(voice));
    if (JSON.stringify(asks(name)) !== JSON.stringify(askers)) return `${name}: ${askers.join()}`;
  }
  return undefined;
}

suite("the makers of keys and a naive model", () => {
  const seed = seedOf("MAKERS_SEED");
  test(`[P4] both find the same voices in 200 changes, from seed ${seed}`, async (t) => {
    printSeed(t, { cases: 200, seed, variable: "MAKERS_SEED" });
    assert.equal(await differs(t, seed, 100, naive), undefined);
  });

  control("positive control: a model that looks one step back, or at the last change alone, differs", async (t) => {
    const oneStep: Naive = (history, name, at, until) => {
      const own = history.findLast((change) => change.name === name);
      const maker = history.findLast((change) => change.name === own?.by)?.person ?? `key ${own?.by}`;
      return [...new Set([own?.person ?? `key ${name}`, ...(at < (own?.at ?? 0) + dayMs ? [maker] : [])])]
        .toSorted()
        .slice(0, until);
    };
    assert.notEqual(await differs(t, 1, 60, oneStep), undefined);
  });
});

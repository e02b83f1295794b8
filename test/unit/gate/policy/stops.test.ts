/**
 * Goal: a stop neither counts nor revives what has ended by its time, and the root's stops reach a tenant also after the
 * root's ledger was restored. Method: a gate whose time the test moves; and the acts of a root and of a tenant as lists.
 * Positive control: a stop that does not end the expired approvals first, and rows that are compared by their numbers alone.
 */
import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import {
  noStops,
  withStopAct,
  type EndedByStop,
  type RecordedStopAct,
  type StopAct,
  type Stops,
} from "../../../../packages/core/src/approvals/mod.ts";
import { compileContracts } from "../../../../packages/readers/src/contract.ts";
import { Clock } from "../../../../packages/gate/src/server/policy/clock.ts";
import { missingActs, stopEvent } from "../../../../packages/gate/src/server/policy/stops.ts";
import { openGate, type Gate } from "../../../../packages/gate/src/server/service/gate.ts";
import { openLedger, type AppendTransaction } from "../../../../packages/gate/src/ledger/mod.ts";
import { setStop } from "../../../../packages/gate/src/server/service/set-stop.ts";
import { good, parseCheckRequest } from "../../../../packages/core/src/wire/mod.ts";
import { large, payments } from "../../../support/approvals.ts";
import { control } from "../../../support/controls/control.ts";
import { engine, temporaryFolder } from "../../../support/ledger-fixture.ts";

const hourMs = 3_600_000;
const policySet = compileContracts([{ name: "pay.yaml", text: payments }]);
assert.ok(policySet.ok);
const names = policySet.value;

interface Bench {
  readonly gate: Gate;
  readonly time: { now: number };
}

async function open(t: TestContext): Promise<Bench> {
  const time = { now: Date.UTC(2026, 0, 1) };
  const ledger = await openLedger({ folder: temporaryFolder(t), engine });
  const clock = new Clock({ wall: () => time.now, monotonic: () => time.now });
  const opened = await openGate({ ledger, policySet: names, mode: "enforce", clock, onDefect: () => undefined });
  assert.ok(opened.ok);
  t.after(() => opened.value.gate.drain().then(() => ledger.close()));
  return { gate: opened.value.gate, time };
}

/** Parks a call, lets its time pass, stops every call, and returns what the stop ended and the approval's status. */
async function stopsLate({ gate, time }: Bench, endsDue = true): Promise<readonly [EndedByStop | undefined, string]> {
  const parsed = parseCheckRequest(JSON.stringify(large));
  assert.ok(parsed.ok);
  const answered = await gate.check(parsed.value, { keyName: "agent", bytes: 1, digest: "0".repeat(64) });
  assert.ok(answered.ok);
  const { approval } = JSON.parse(answered.value);
  time.now += 2 * hourMs;
  const wanted = { scope: "all", why: "late", approvals: "end" } as const;
  const stopper = { by: "anna", person: "anna" };
  let ended: EndedByStop | undefined;
  const done = endsDue
    ? await setStop(gate, wanted, stopper)
    : await gate.appendAdminEvent(async (transaction, at) => {
        const made = await stopEvent({ transaction, at }, { ...wanted, ...stopper }, names, new Map());
        assert.ok(made.ok);
        ({ ended } = made.value);
        return good(made.value.event);
      });
  assert.ok(done.ok);
  if ("ended" in done.value) ({ ended } = done.value);
  return [ended, (await gate.approvals.find(approval.id))?.status ?? "none"];
}

suite("a stop after the time of an approval", () => {
  test("it ends no approval whose time is over: that one is expired", async (t) => {
    const none = { approvals: 0, votes: 0, grants: 0 };
    assert.deepEqual(await stopsLate(await open(t)), [none, "expired"]);
  });

  control("positive control: a stop that does not end the expired approvals first is noticed", async (t) => {
    const [ended, status] = await stopsLate(await open(t), false);
    assert.deepEqual([ended?.approvals, status], [1, "cancelled"]);
  });
});

type Scope = StopAct["scope"];

function acted(seq: number, act: "lift" | "set", scope: Scope, more: object = {}): RecordedStopAct {
  const body = { person: "anna", root: null, scope, why: "drill", ...more };
  if (act === "lift") return { seq, at: 1000 * seq, act: { act: "stop.lift", ...body } };
  return { seq, at: 1000 * seq, act: { act: "stop.set", approvals: "end", ends: [], reopens: [], ...body } };
}

const stopsOf = (acts: readonly RecordedStopAct[]): Stops => acts.reduce(withStopAct, noStops);

/** What a tenant has after it followed these acts of a root. */
function followed(acts: readonly RecordedStopAct[], at = true): Stops {
  return stopsOf(
    acts.map((each, index) => ({
      ...each,
      seq: index + 1,
      act: { ...each.act, root: each.seq, ...(at && { root_at: each.at }) },
    })),
  );
}

function missing(own: Stops, root: Stops): readonly string[] {
  const transaction = { store: { hasApprovals: true }, stops: own } as unknown as AppendTransaction;
  return missingActs(transaction, root).map(({ act, seq }) => `${act.act} ${JSON.stringify(act.scope)} ${seq}`);
}

const [a, b]: readonly Scope[] = [{ tools: ["a"] }, { tools: ["b"] }];

suite("a tenant that follows the root", () => {
  const acts = [acted(3, "set", a ?? "all"), acted(5, "lift", a ?? "all"), acted(7, "set", b ?? "all")];

  test("it misses the acts after the last one that it followed", () => {
    const root = stopsOf([...acts, acted(9, "lift", b ?? "all")]);
    assert.deepEqual(missing(followed(acts), root), ['stop.lift {"tools":["b"]} 9']);
    assert.deepEqual(missing(followed(root.acts), root), []);
    assert.deepEqual(missing(followed(root.acts, false), root), [], "rows from before the time was recorded");
  });

  test("[P6] after a restore that lost rows of the root, it follows the acts that have the same numbers again", () => {
    const restored = stopsOf([...acts.slice(0, 1), { ...acted(5, "set", "all"), at: 9_999 }]);
    const expected = ['stop.lift {"tools":["b"]} 5', 'stop.set "all" 5'];
    assert.deepEqual(missing(followed(acts), restored), expected, "the stop of b was lost, so nobody could lift it");
    const same = stopsOf([...acts.slice(0, 2), { ...acted(7, "set", b ?? "all"), at: 9_999 }, acted(8, "set", "all")]);
    assert.deepEqual(missing(followed(acts), same), ['stop.set {"tools":["b"]} 7', 'stop.set "all" 8']);
  });

  control("positive control: rows that are compared by their numbers alone hide the acts of a restored root", () => {
    const restored = stopsOf([...acts.slice(0, 1), { ...acted(5, "set", "all"), at: 9_999 }]);
    const through = Math.max(...followed(acts).acts.map(({ act }) => act.root ?? 0));
    assert.deepEqual(
      restored.acts.filter(({ seq }) => seq > through),
      [],
    );
  });
});

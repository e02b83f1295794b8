/**
 * Goal: a clock that jumps neither resets a window nor freezes one. Method: a clock with two sources that the test
 * sets, first alone, then inside a gate that answers over HTTP with a ledger on disk.
 */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { suite, test } from "node:test";
import pino from "pino";
import { compileContracts } from "../../../../packages/readers/src/contract.ts";
import { Clock, type TimeSource } from "../../../../packages/gate/src/server/policy/clock.ts";
import { openGate } from "../../../../packages/gate/src/server/service/gate.ts";
import { makeServer } from "../../../../packages/gate/src/server/http/server.ts";
import { KeyRing } from "../../../../packages/gate/src/server/keys/keys.ts";
import { Rates } from "../../../../packages/gate/src/server/keys/rate.ts";
import { Service } from "../../../../packages/gate/src/server/service/service.ts";
import { Metrics } from "../../../../packages/gate/src/server/telemetry/metrics.ts";
import { openLedger } from "../../../../packages/gate/src/ledger/mod.ts";
import { apiKey } from "../../../support/gate-process.ts";
import { good } from "../../../../packages/core/src/wire/mod.ts";
import { engine, temporaryFolder } from "../../../support/ledger-fixture.ts";

const start = 1_790_000_000_000;

/** Two clocks that a test sets. */
class SetTime implements TimeSource {
  wallMs = start;
  monotonicMs = 5000;
  readonly wall = (): number => this.wallMs;
  readonly monotonic = (): number => this.monotonicMs;

  pass(ms: number): void {
    this.wallMs += ms;
    this.monotonicMs += ms;
  }
}

suite("the clock", () => {
  const cases: readonly {
    readonly title: string;
    readonly wall: number;
    readonly monotonic: number;
    readonly last?: number;
    readonly reads: number | RegExp;
  }[] = [
    { title: "the clock follows both sources", wall: 86_400_000, monotonic: 86_400_000, reads: start + 86_400_000 },
    { title: "the clock drops a fraction of a millisecond", wall: 0.9, monotonic: 0.9, reads: start },
    { title: "the clock accepts a jump of one minute forward", wall: 60_000, monotonic: 0, reads: start + 60_000 },
    {
      title: "the clock refuses a jump of over a minute forward",
      wall: 60_001,
      monotonic: 0,
      reads: /moved by 60 s/,
    },
    { title: "the clock accepts a jump of one minute back", wall: -60_000, monotonic: 0, reads: start - 60_000 },
    { title: "the clock refuses a jump of over a minute back", wall: -60_001, monotonic: 0, reads: /moved by -60 s/ },
    { title: "the clock refuses a jump of a year", wall: 31_536_000_000, monotonic: 10, reads: /moved by 31536000 s/ },
    {
      title: "the clock refuses the time after the machine has slept",
      wall: 3_600_000,
      monotonic: 1000,
      reads: /moved by 3599 s/,
    },
    {
      title: "the clock gives the last receipt's time if that is less than a minute ahead",
      wall: 0,
      monotonic: 0,
      last: start + 59_999,
      reads: start + 59_999,
    },
    {
      title: "the clock gives the last receipt's time if that is one minute ahead",
      wall: 0,
      monotonic: 0,
      last: start + 60_000,
      reads: start + 60_000,
    },
    {
      title: "the clock refuses a last receipt that is more than a minute ahead",
      wall: 0,
      monotonic: 0,
      last: start + 61_000,
      reads: /61 s behind the last receipt/,
    },
  ];
  for (const { title, wall, monotonic, last = 0, reads } of cases) {
    test(title, () => {
      const time = new SetTime();
      const clock = new Clock(time);
      time.wallMs += wall;
      time.monotonicMs += monotonic;
      const read = clock.read(last);
      if (typeof reads === "number") assert.deepEqual(read, { ok: true, value: reads });
      else assert.match(read.ok ? `${read.value}` : read.problem, reads);
    });
  }

  test("readings never go back if the clock gets the last reading", () => {
    const time = new SetTime();
    const clock = new Clock(time);
    let last = 0;
    for (const step of [5, -3, 0, -40_000, 10, 39_000, 1]) {
      time.wallMs += step;
      const read = clock.read(last);
      assert.ok(read.ok && read.value >= last);
      last = read.value;
    }
    assert.equal(last, start + 5);
  });
});

test(
  "checks are answered 503 while the clock is unreliable, and no row records the jump",
  { tags: ["receipt.one-row"] },
  async (t) => {
    const time = new SetTime();
    const ledger = await openLedger({ folder: temporaryFolder(t), engine });
    const compiled = compileContracts([]);
    assert.ok(compiled.ok);
    const policySet = compiled.value;
    const opened = await openGate({
      policySet,
      ledger,
      clock: new Clock(time),
      mode: "enforce",
      onDefect: () => undefined,
    });
    assert.ok(opened.ok);
    const { gate } = opened.value;
    const firstKey = hash("sha256", apiKey, "hex");
    const keys = await KeyRing.open({ gate, ledger, firstKey, isTenant: () => false });
    const log = pino({ level: "silent" });
    const source = { tenant: null, mandate: undefined, mode: undefined, acceptClock: false, acceptChange: false };
    const service = new Service({
      connections: 10,
      log,
      keys,
      root: gate,
      rootSource: { ...source, ledger: { folder: "", engine } },
      tenants: undefined,
      readSources: async () => good([]),
      tests: undefined,
      metrics: new Metrics(),
      traces: undefined,
      rates: new Rates({ fallback: () => undefined }),
    });
    const server = makeServer({ service, basePath: "", log, tls: undefined });
    const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
    const check = async (): Promise<string> => {
      const { statusCode, body } = await server.inject({
        method: "POST",
        url: "/check",
        headers,
        payload: '{"tool_name":"a","tool_input":{}}',
      });
      return `${statusCode} ${String(JSON.parse(body).code ?? JSON.parse(body).verdict)}`;
    };
    const healthy = async (): Promise<number> => (await server.inject({ method: "GET", url: "/health" })).statusCode;

    assert.deepEqual([await check(), await healthy()], ["200 BLOCK", 200]);
    time.wallMs += 3_600_000;
    assert.deepEqual([await check(), await healthy()], ["503 clock-unreliable", 503]);
    time.wallMs -= 7_200_000;
    assert.deepEqual([await check(), await healthy()], ["503 clock-unreliable", 503]);
    time.wallMs += 3_600_000;
    time.pass(20);
    assert.deepEqual([await check(), await healthy()], ["200 BLOCK", 200]);
    const { rows, broken } = await ledger.verify();
    assert.deepEqual({ rows, broken }, { rows: 2, broken: undefined });
    await server.close();
    await ledger.close();
  },
);

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { compileContracts } from "../../packages/readers/src/contract.ts";
import { Clock } from "../../packages/gate/src/server/policy/clock.ts";
import { openGate } from "../../packages/gate/src/server/service/gate.ts";
import { openLedger } from "../../packages/gate/src/ledger/mod.ts";
import { parseCheckRequest } from "../../packages/core/src/wire/mod.ts";
import { temporaryFolder } from "./gate.ts";

/** A gate in this process whose time only the test moves. */
export interface ClockedGate {
  /** The data folder. */
  readonly folder: string;
  /** Moves the time on by some milliseconds. */
  readonly pass: (ms: number) => void;
  /** Checks a call; returns the answer, or the code of the refusal. */
  readonly asks: (call: object) => Promise<any>;
  readonly close: () => Promise<void>;
}

export async function startClockedGate(t: TestContext, contract: string): Promise<ClockedGate> {
  let now = Date.UTC(2026, 0, 1);
  const policySet = compileContracts([{ name: "test.yaml", text: contract }]);
  assert.ok(policySet.ok);
  const folder = join(temporaryFolder(t), "data");
  const ledger = await openLedger({ folder, engine: "svc-gate/test" });
  const clock = new Clock({ wall: () => now, monotonic: () => now });
  const onDefect = (): never => assert.fail("a defect in the engine");
  const opened = await openGate({ policySet: policySet.value, ledger, clock, mode: "enforce", onDefect });
  assert.ok(opened.ok);
  const { gate } = opened.value;
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => (closed ??= gate.drain().then(() => ledger.close()));
  t.after(close);
  return {
    folder,
    pass: (ms) => void (now += ms),
    close,
    asks: async (call) => {
      const body = JSON.stringify(call);
      const request = parseCheckRequest(body);
      assert.ok(request.ok);
      const digest = createHash("sha256").update(body).digest("hex");
      const answer = await gate.check(request.value, { keyName: "agent", bytes: body.length, digest });
      return answer.ok ? JSON.parse(answer.value) : answer.problem.code;
    },
  };
}

/**
 * Goal: the benchmark of approvals measures what it says. Method: its statistics on invented figures, its connection
 * against a server that answers in pieces, and its calls against a gate.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { suite, test, type TestContext } from "node:test";
import { neverEscalating } from "../../../bench/approvals/cpu.ts";
import { callText, largeCalls, parkedIn, withDesk } from "../../../bench/approvals/desk.ts";
import { Line } from "../../../bench/approvals/line.ts";
import { stepFigures, stepMeasures, type StepPairs } from "../../../bench/approvals/steps.ts";
import { medianInterval } from "../../../bench/report.ts";
import { compileContracts } from "../../../packages/readers/src/contract.ts";
import { temporaryFolder } from "../../support/gate.ts";

suite("the interval of a median", () => {
  test("the interval of a hundred values is from the 41st to the 61st", () => {
    const values = Array.from({ length: 100 }, (_, at) => 100 - at);
    assert.deepEqual(medianInterval(values), { low: 41, median: 50.5, high: 61 });
  });

  test("the interval contains the median of the distribution in about 95 of 100 samples", () => {
    let seed = 20_261_124;
    const random = (): number => {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
      return seed / 2 ** 32;
    };
    const samples = Array.from({ length: 2000 }, () =>
      medianInterval(Array.from({ length: 50 }, () => -Math.log(1 - random()))),
    );
    const share = samples.filter(({ low, high }) => low <= Math.LN2 && Math.LN2 <= high).length / 2000;
    assert.ok(share > 0.93 && share < 0.99, `it contains it in ${share} of the samples`);
  });
});

suite("the bars of a check that meets an approval", () => {
  const pairs = (more: number): StepPairs => {
    const all = Array.from({ length: 30 }, (_, at) => ({ plain: 1 + at / 100, step: 1 + at / 100 + more }));
    return { opened: all, attached: all, used: all };
  };

  test("a step that takes 0.5 ms more than its plain check is within the bar, and one of 0.7 ms is not", () => {
    for (const [more, holds] of [
      [0.5, true],
      [0.7, false],
    ] as const) {
      const measures = stepMeasures(stepFigures(pairs(more)), 0.2);
      for (const name of ["opened", "attached", "used"])
        assert.equal(measures[`${name}_more_than_plain_ms`]?.holds, holds, `${name} with ${more} ms more`);
    }
  });

  test("a plain check that is itself slow does not hide behind its own bar: the time over one flush has another", () => {
    const { used_more_than_plain_ms: more, used_p50_ms: all } = stepMeasures(stepFigures(pairs(0.1)), 0.2);
    assert.deepEqual([more?.holds, all?.holds], [true, false]);
  });
});

suite("the connection", () => {
  test("an answer is complete with its last byte, and the next request follows it on the same connection", async (t) => {
    const line = await Line.open(await answering(t, ["HTTP/1.1 200 OK\r\ncontent-len", "gth: 2\r\n\r\n{", "}"]));
    for (const _ of [1, 2]) {
      const { status, body } = await line.ask("/", "key", "{}");
      assert.deepEqual([status, body], [200, "{}"]);
    }
    line.close();
  });

  test("a request fails if the connection ends before its answer", async (t) => {
    const line = await Line.open(await answering(t, ["HTTP/1.1 200 OK\r\n"], true));
    await assert.rejects(line.ask("/", "key"), /closed before an answer/);
  });
});

suite("the measured calls", () => {
  test("a call is parked, attached, approved and used, and a wrong verdict ends the benchmark", async (t) => {
    await withDesk(temporaryFolder(t), async (desk) => {
      const [call = "", other = ""] = largeCalls("w", 2);
      const [parked] = await desk.park([call]);
      assert.ok(parked !== undefined);
      assert.equal(parkedIn(await desk.check(desk.line, call, "ESCALATE")).id, parked.id);
      await desk.approve(parked);
      await desk.check(desk.line, callText({ wallet: "w", amount: 1, session: "w-0" }), "ALLOW");
      await assert.rejects(desk.check(desk.line, other, "ALLOW"), /not ALLOW, but/);
      const naming = JSON.stringify({ ...(JSON.parse(call) as object), approval: { id: parked.id } });
      await desk.check(desk.line, naming, "ALLOW");
      await assert.rejects(desk.check(desk.line, naming, "ALLOW"), /BLOCK/, "it is used once");
      await desk.stop();
    });
  });

  test("the contract of the measured processor time never escalates, and refuses instead", () => {
    const text = neverEscalating();
    assert.doesNotMatch(text, /ESCALATE/);
    assert.equal(text.match(/verdict: BLOCK/g)?.length, 7);
    assert.ok(compileContracts([{ name: "payments.yaml", text }]).ok);
  });
});

/** Returns the address of a server that answers each request with these pieces. */
async function answering(t: TestContext, pieces: readonly string[], ends = false): Promise<string> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", () => {
      void (async () => {
        for (const piece of pieces) {
          socket.write(piece);
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        if (ends) socket.destroy();
      })();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

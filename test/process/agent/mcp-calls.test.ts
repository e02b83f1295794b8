/**
 * Goal: no message is lost or doubled under load. Method: many calls at once, each with an amount of its own; the client
 * must get each answer once, the server must run each allowed call once, and the gate must have a receipt of each.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { ask, startGate } from "../../support/gate.ts";
import { startProxy, textOf } from "../../support/mcp/proxy.ts";
import { connect, sdkServer, startListener, throughProxy } from "../../support/mcp/sdk.ts";

const calls = Number(process.env["MCP_CALLS"] ?? 4000);
/** The SDK's server takes ten times as long for a call. */
const httpCalls = Math.ceil(calls / 10);
const atOnce = 64;

/** Runs a job for each number, some of them at once. */
async function forEach(count: number, job: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) await job(index);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

suite("many calls through svc-gate mcp", () => {
  test("over stdio each of many calls is answered once and runs once", async (t) => {
    const proxy = await startProxy(t, { patienceMs: 60_000 });
    const amount = (index: number): number => (index % 10 === 0 ? 500 + index : index / 1_000_000);
    await forEach(calls, async (index) => {
      const answer = await proxy.call("pay", { amount: amount(index) });
      if (index % 10 === 0) assert.equal(answer.result.isError, true);
      else assert.equal(textOf(answer), `paid ${amount(index)}`);
    });
    const ids = proxy.got.map(({ id }) => id).filter((id) => id !== undefined);
    assert.equal(ids.length, calls + 1, "each answer once, and that of the handshake");
    assert.equal(new Set(ids).size, ids.length);
    const ran = proxy.ran().map(({ input }) => input.amount);
    const expected = Array.from({ length: calls }, (_, index) => index)
      .filter((index) => index % 10 !== 0)
      .map(amount);
    assert.deepEqual(
      ran.toSorted((one, other) => one - other),
      expected,
    );
    const checks = (await ask(proxy.desk, "/ledger/verify")).json.rows;
    assert.ok(checks >= calls, `${checks} rows`);
  });

  test("over HTTP each of many calls is answered once, and each has a receipt", async (t) => {
    const input = "{ type: object, additionalProperties: true }";
    const contract = `contract: sums\ntools:\n  sums.add: { input: ${input}, otherwise: ALLOW }\n`;
    const gate = await startGate(t, { contracts: { "sums.yaml": contract } });
    const reach = await startListener(t, [sdkServer, "http"]);
    const { client } = await connect(t, "v2 auto", await throughProxy(t, { reach, gate: gate.address, name: "sums" }));
    await forEach(httpCalls, async (index) => {
      const { structuredContent } = await client.callTool({ name: "add", arguments: { a: index, b: 1 } });
      assert.equal(structuredContent.sum, index + 1);
    });
    const [last] = (await ask(gate, "/receipts?limit=1")).json.receipts;
    assert.ok(last.seq >= httpCalls, `${last.seq} rows`);
  });
});

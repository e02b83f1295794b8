/** Cases of a client or a server that tries to get past the proxy over stdio. Each can also run on a broken proxy. */
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { callLine, goesOn, isRefused, outcomeIs, paid, type Run } from "./cases.ts";
import { startProxy, textOf } from "./proxy.ts";
import { eventually } from "../patience.ts";

const blocked = callLine('{"name":"pay","arguments":{"amount":900}}');

export const attacks: Readonly<Record<string, Run>> = {
  "X1: a call inside another message's lines does not reach the server": async (t, options) => {
    const proxy = await startProxy(t, options);
    // Readers of lines differ: Python's and Node's also end one at a carriage return.
    proxy.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":\r${blocked}\r}`);
    proxy.send(`{"jsonrpc":"2.0","id":"p","method":"ping","params":{"_meta":\r${blocked}\r}}`);
    await goesOn(proxy);
    assert.deepEqual(paid(proxy), [6]);
  },
  "X2: a server that no longer lists its tools has none": async (t, options) => {
    const proxy = await startProxy(t, { ...options, accepted: ["silent"], words: ["silent"] });
    await goesOn(proxy);
    await proxy.call("change");
    await proxy.next(({ method }) => method === "notifications/tools/list_changed");
    isRefused(await proxy.call("pay", { amount: 5 }), /does not list the tool "pay" now/);
    assert.deepEqual(paid(proxy), [6]);
  },
  "X3: a tool that changes while a person decides does not run": async (t, options) => {
    const proxy = await startProxy(t, { ...options, flags: ["--wait", "20"] });
    const answer = proxy.call("pay", { amount: 75 }, { _meta: { progressToken: 7 } });
    await proxy.next(({ method }) => method === "notifications/progress");
    await proxy.call("change");
    const { json } = await proxy.desk.as("anna", "/approvals?state=pending");
    await proxy.desk.decides("anna", json.approvals[0].id, "approve");
    isRefused(await answer, /has changed since it was accepted/);
    assert.deepEqual(paid(proxy), []);
  },
  "X4: a list in other letters does not reach the client": async (t, options) => {
    const proxy = await startProxy(t, { ...options, accepted: ["spelled"], words: ["spelled"] });
    await proxy.call("change");
    const listed = await proxy.ask("tools/list");
    assert.equal(listed.error?.code, -32603, JSON.stringify(listed));
  },
  "X5: a task is refused if nobody allowed tasks": async (t, options) => {
    const proxy = await startProxy(t, options);
    const refused = await proxy.call("task", { amount: 5 }, { task: { ttl: 1000 } });
    assert.match(refused.error?.message ?? "", /--allow tasks/);
    assert.deepEqual(proxy.ran(), []);
  },
  "X6: arguments that the gate does not see as they are do not reach the server": async (t, options) => {
    const proxy = await startProxy(t, options);
    for (const params of ['{"name":"pay","arguments":null}', '{"name":"pay","requestState":1e999}']) {
      proxy.send(callLine(params));
      const answer = await proxy.next(({ id }) => id === "x");
      assert.equal(answer.error?.code, -32602, textOf(answer));
    }
    assert.deepEqual(proxy.ran(), []);
  },
  "X7: a server that does not read its answers cannot fill the memory": async (t, options) => {
    const proxy = await startProxy(t, options);
    void proxy.call("hold");
    // short wait: this must not happen, and a slow machine only notices less
    for (let attempt = 0; attempt < 40; attempt += 1) {
      assert.ok(!proxy.witness().some(({ flooded }) => flooded), "20,000 questions and no answer taken");
      await pause(50);
    }
  },
  "X8: a server that ends leaves no process and no question open": async (t, options) => {
    const proxy = await startProxy(t, { ...options, accepted: ["daemon"], words: ["daemon"] });
    const start = performance.now();
    const [answer, code] = await Promise.all([proxy.call("broken"), proxy.ended]);
    assert.equal(answer.error?.message, "Svc: the MCP server has ended.");
    assert.equal(code, 0);
    assert.ok(performance.now() - start < 30_000, "it must not wait for the program that lives for a minute");
  },
  "X9: a question that a person has not allowed has no answer": async (t, options) => {
    const proxy = await startProxy(t, { ...options, allow: ["sampling"], flags: ["--wait", "20"] });
    void proxy.call("sample", { amount: 75 });
    const pending = async (): Promise<readonly any[]> =>
      (await proxy.desk.as("anna", "/approvals?state=pending")).json.approvals;
    await eventually("a call that waits", async () => (await pending()).length > 0, proxy.patienceMs);
    assert.equal((await pending()).length, 1);
    proxy.send({ jsonrpc: "2.0", id: "server-1", result: { model: "m" } });
    await goesOn(proxy);
    assert.ok(!proxy.witness().some(({ answered }) => answered !== undefined));
  },
  "X10: a server that says that it did nothing does not undo the count": async (t, options) => {
    const proxy = await startProxy(t, { ...options, accepted: ["changed"], words: ["changed"] });
    assert.equal((await proxy.call("extra")).error?.code, -32602);
    assert.equal(proxy.ran().length, 1);
    await outcomeIs(proxy, "unknown");
  },
};

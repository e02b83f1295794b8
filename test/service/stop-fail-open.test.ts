/**
 * Goal: what SECURITY.md, the guides and the clients say of `fail_open`: a stop blocks such a client, and the end of its
 * key does not. Method: the JavaScript client, with and without `failOpen`, asks a gate while its key is stopped, and
 * after the key is revoked; the vectors require the same outcomes of the Python client.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SvcGate } from "../../clients/javascript/svc-gate.mjs";
import { startDesk, small } from "../support/approvals.ts";

test("[P14] a stop of a key blocks a client that fails open, and a revocation of the key lets it run", async (t) => {
  const desk = await startDesk(t, { persons: {} });
  const { json } = await desk.operates("/admin/keys", { name: "agent", scopes: ["check"] });
  const { tool_name: tool, tool_input: input, platform_state: facts } = small as Readonly<Record<string, any>>;
  const verdicts = async (): Promise<Readonly<Record<string, string>>> => {
    const of = async (failOpen: boolean): Promise<string> => {
      const gate = new SvcGate(desk.address, { apiKey: json.key, failOpen });
      const { verdict, unreached } = await gate.check(tool, input, facts);
      return unreached ? `${verdict} without a verdict` : verdict;
    };
    return { open: await of(true), closed: await of(false) };
  };
  assert.deepEqual(await verdicts(), { open: "ALLOW", closed: "ALLOW" });
  assert.equal((await desk.operates("/admin/stop", { scope: { key: "agent" }, why: "lost" })).status, 200);
  assert.deepEqual(await verdicts(), { open: "BLOCK", closed: "BLOCK" });
  assert.equal((await desk.operates("/admin/keys/agent/revoke", {})).status, 200);
  assert.deepEqual(await verdicts(), { open: "ALLOW without a verdict", closed: "BLOCK without a verdict" });
});

/**
 * Goal: a check ends at its time-out, even on a Node whose `fetch` leaves the reader of an aborted body waiting, as the first
 * ones with `fetch` do. Method: a `fetch` instead of Node's that ignores the signal. Positive control: a client that trusts
 * `fetch` waits on.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { control } from "../../support/controls/control.ts";
import { root, temporaryFolder } from "../../support/gate.ts";
import { controlPatienceMs } from "../../support/patience.ts";

const source = join(root, "clients", "javascript", "svc-gate.mjs");
const head = { status: 200, headers: { "content-type": "application/json" } };
const endless = (): Promise<Response> => Promise.resolve(new Response(new ReadableStream(), head));

/** What a check says whose `fetch` never ends, at the head or in the body. */
async function checked(t: TestContext, file: string, fetch: typeof globalThis.fetch): Promise<string> {
  t.mock.method(globalThis, "fetch", fetch);
  const { SvcGate } = await import(pathToFileURL(file).href);
  // short wait: the answer must not come, and the test is about the time-out
  const gate = new SvcGate("http://127.0.0.1:4", { apiKey: "a-key-of-the-test", timeoutMs: 100, retries: 0 });
  const verdict = await gate.check("pay", { amount: 1 }, {});
  assert.equal(verdict.verdict, "BLOCK");
  return verdict.reason;
}

suite("an answer that ends in no way", () => {
  for (const [where, fetch] of [
    ["body", endless],
    ["head", () => new Promise<Response>(() => undefined)],
  ] as const)
    test(`a check ends at its time-out if the ${where} of the answer does not`, async (t) => {
      assert.match(
        await checked(t, source, fetch),
        /did not answer within 100 ms; without a verdict the action is blocked/,
      );
    });

  control("positive control: a client that trusts `fetch` is noticed", async (t) => {
    const text = readFileSync(source, "utf8");
    const find = "Promise.race([bodyOf(response, limit), cut])";
    assert.ok(text.includes(find));
    const mutant = join(temporaryFolder(t), "svc-gate.mjs");
    writeFileSync(mutant, text.replace(find, "bodyOf(response, limit)"));
    const waits = pause(controlPatienceMs, "it waits", { ref: true });
    assert.equal(await Promise.race([checked(t, mutant, endless), waits]), "it waits");
  });
});

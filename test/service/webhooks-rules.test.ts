/**
 * Goal: each rule of webhooks is true, and each protection against a hostile server or a careless file works. Method: gates
 * over HTTP that send to a server of this process. Positive control: the same scenario fails with a planted defect.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { Webhook } from "standardwebhooks";
import { large, payments, startDesk, type Desk } from "../support/approvals.ts";
import { control } from "../support/controls/control.ts";
import { ask, temporaryFolder } from "../support/gate.ts";
import type { Mutation } from "../support/mutation/mutate.ts";
import { controlPatienceMs, eventually } from "../support/patience.ts";
import { fileOf, isOf, local, older, receive, secret, type Received, type Receiver } from "../support/webhooks.ts";

interface SentRule {
  readonly rule: string;
  readonly endpoint: object;
  readonly contract?: string;
  readonly run: (desk: Desk, receiver: Receiver, t: TestContext) => Promise<void>;
  /** A shorter limit of the gate, also without the defect. */
  readonly shorter?: Mutation;
  readonly defect: Mutation;
}

/** Waits for the end of a connection. Returns whether it took the whole answer. */
async function endOf(response: ServerResponse, forMs: number): Promise<boolean> {
  await once(response, "close", { signal: AbortSignal.timeout(forMs) });
  return response.writableFinished;
}

/** How often the gate has tried to send the events that wait. */
async function triesOf(desk: Desk): Promise<number> {
  const operator = JSON.parse(readFileSync(join(desk.folder, "data", "operator.json"), "utf8")).key as string;
  const { json } = await ask(desk, "/admin/notify", { headers: { authorization: `Bearer ${operator}` } });
  return Math.max(0, ...json.endpoints[0].waiting.map(({ tries }: { readonly tries: number }) => tries));
}

const hasty = payments.replace("of: 2, batch: false }", "of: 2, batch: false, decide_within: 1s }");
const legal = { ...large, tool_name: "pay.legal" };

const rules: readonly SentRule[] = [
  {
    rule: "C14: an endpoint hears of a parked call within a second, and is reminded when a fifth of the time is left",
    endpoint: {},
    contract: hasty,
    run: async (desk, receiver) => {
      let calls = 0;
      // A busy machine may be late for one call, and then another one follows.
      const isInTime = async (): Promise<boolean> => {
        const { approval } = await desk.asks({ ...legal, tool_input: { call: (calls += 1) } });
        const startedAt = performance.now();
        const ofCall = ({ body }: Received): boolean => body.data.approval === approval.id;
        await receiver.until((message) => ofCall(message) && isOf("approval.opened")(message));
        const toldMs = performance.now() - startedAt;
        const next = await receiver.until((message) => ofCall(message) && !isOf("approval.opened")(message));
        if (next.body.type === "approval.closed") return false;
        assert.ok(Date.now() >= approval.decide_by - 200);
        assert.match(next.id, /-expiring$/);
        return toldMs < 1000;
      };
      await eventually("a message and a reminder in time", isInTime, receiver.patienceMs);
    },
    defect: { within: "EventFeed.reminders", first: "return [];" },
  },
  {
    rule: "C22: an endpoint hears of an approval whose time is over, without any check",
    endpoint: { events: ["approval.closed"] },
    contract: hasty,
    run: async (desk, receiver) => {
      await desk.asks(legal);
      assert.equal((await receiver.until(isOf("approval.closed"))).body.data.status, "expired");
    },
    defect: { within: "EventFeed.#endDue", first: "return;" },
  },
  {
    rule: "the gate sends nothing to a private address that the file does not allow",
    endpoint: { allow_private: false },
    run: async (desk, receiver) => {
      await desk.asks(large);
      await eventually("an attempt", async () => receiver.received.length > 0 || (await triesOf(desk)) > 0);
      assert.equal(receiver.received.length, 0);
    },
    defect: { within: "resolveHost", find: "addresses.every(({ address }) => isPublicText(address))", put: "true" },
  },
  {
    rule: "an event is not sent before an earlier event about the same approval was taken",
    endpoint: {},
    run: async (desk, receiver) => {
      receiver.status = 503;
      const parked = await desk.asks(large);
      await eventually("the first attempt", () => receiver.refused.some(isOf("approval.opened")));
      receiver.status = 200;
      await desk.decides("anna", parked.approval.id, "deny");
      await desk.asks({ ...large, session_id: "s2", tool_input: { amount: 1300, to: "anna" } });
      await receiver.until(({ body }) => body.data.approval !== parked.approval.id && body.type === "approval.opened");
      const { received } = receiver;
      const decided = received.findIndex(isOf("approval.decided"));
      const opened = received.slice(0, Math.max(decided, 0)).filter(isOf("approval.opened"));
      // The first attempt got 503, so it is not among those that were received.
      const isTaken = opened.some(({ body }) => body.data.approval === parked.approval.id);
      assert.ok(decided === -1 || isTaken, "it came before the event that opened it was taken");
    },
    defect: { within: "foremost", find: "each.about === null || !behind.has(each.about)", put: "true" },
  },
  {
    rule: "during a rotation, a message is signed with both secrets",
    endpoint: { secrets: [secret, older] },
    run: async (desk, receiver) => {
      await desk.asks(large);
      const { text, headers } = await receiver.until(isOf("approval.opened"));
      for (const each of [secret, older]) new Webhook(each).verify(text, headers);
    },
    defect: { within: "signedHeaders", find: "secrets.map($make)", put: "secrets.slice(0, 1).map($make)" },
  },
  {
    rule: "the gate never sends an event to the server that a redirect names",
    endpoint: { events: ["approval.opened"] },
    run: async (desk, receiver, t) => {
      const other = await receive(t);
      receiver.answer = (response) => response.writeHead(307, { location: other.url }).end();
      await desk.asks(large);
      await desk.asks({ ...large, tool_input: { amount: 1300, to: "anna" } });
      // The second attempt starts after the end of the first.
      await receiver.until(({ id }) => id !== receiver.received[0]?.id);
      assert.equal(other.received.length, 0);
    },
    defect: {
      within: "statusOf",
      module: "notify/send",
      find: "await readSome(response);",
      put: "const to = response.headers.location; if (to) return good((await fetch(to, { method: 'POST', headers, body })).status);",
    },
  },
  {
    rule: "the gate leaves a server that does not answer in time",
    endpoint: {},
    shorter: { within: "timeoutMsMax", value: "300" },
    run: async (desk, receiver) => {
      const arrived = Promise.withResolvers<ServerResponse>();
      receiver.answer = arrived.resolve;
      await desk.asks(large);
      assert.equal(await endOf(await arrived.promise, receiver.patienceMs), false);
    },
    defect: {
      within: "post",
      module: "notify/send",
      find: "AbortSignal.timeout($ms)",
      put: "new AbortController().signal",
    },
  },
  {
    rule: "the gate leaves a server whose answer is too large",
    endpoint: {},
    run: async (desk, receiver) => {
      const arrived = Promise.withResolvers<ServerResponse>();
      receiver.answer = arrived.resolve;
      await desk.asks(large);
      const response = await arrived.promise;
      // The answer is larger than all buffers between the two programs.
      response.end(Buffer.alloc(64 * 1024 * 1024));
      assert.equal(await endOf(response, receiver.patienceMs), false, "the gate read all of it");
    },
    defect: { within: "readSome", find: "bytes > answerBytesMax", put: "false" },
  },
];

suite("rules of webhooks, each with a planted defect", { concurrency: 2 }, () => {
  for (const { rule, endpoint, contract, run, shorter, defect } of rules) {
    const start = async (
      t: TestContext,
      defects: readonly Mutation[] = [],
    ): Promise<readonly [Desk, Receiver, TestContext]> => {
      const receiver = await receive(t);
      if (defects.length > 0) receiver.patienceMs = controlPatienceMs;
      const folder = temporaryFolder(t);
      const notify = fileOf(folder, [{ name: "ops", url: receiver.url, secrets: [secret], ...local, ...endpoint }]);
      const options = {
        folder,
        env: { SVC_NOTIFY: notify },
        ...(contract && { contract }),
        defects: [...(shorter ? [shorter] : []), ...defects],
      };
      return [await startDesk(t, options), receiver, t];
    };
    test(rule, async (t) => run(...(await start(t))));
    control(`positive control: a defect is noticed by "${rule}"`, async (t) => {
      const started = await start(t, [defect]);
      await assert.rejects(run(...started));
    });
  }
});

suite("the file of endpoints has secrets", () => {
  const refuses = async (t: TestContext, defects: readonly Mutation[] = []): Promise<void> => {
    const folder = temporaryFolder(t);
    const notify = fileOf(folder, [{ name: "ops", url: "https://hooks.example/x", secrets: [secret] }], 0o644);
    const start = startDesk(t, { folder, env: { SVC_NOTIFY: notify }, persons: {}, defects });
    await assert.rejects(start, /others can read the file .* run `chmod 600/);
  };
  test("a start is refused if others can read the file of endpoints", (t) => refuses(t));
  control("positive control: a gate that reads the file of everybody is noticed", (t) =>
    assert.rejects(
      refuses(t, [{ within: "readPrivate", find: "(mode & 0o077) !== 0", put: "false" }]),
      /Missing expected rejection/,
    ),
  );
});

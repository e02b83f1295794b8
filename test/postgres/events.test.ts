/**
 * Goal: gates that share a ledger stream each other's events, and one of them sends to an endpoint. Method: two gates as
 * processes on the run's PostgreSQL. Positive controls: planted defects.
 */
import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, suite, test, type TestContext } from "node:test";
import { large, startDesk, type Desk } from "../support/approvals.ts";
import { control } from "../support/controls/control.ts";
import { openStream } from "../support/events.ts";
import { temporaryFolder } from "../support/gate.ts";
import type { Mutation } from "../support/mutation/mutate.ts";
import { sharedPostgres, type Databases, type TestDatabase } from "../support/databases.ts";
import { eventually } from "../support/patience.ts";
import { receive, type Received, type Receiver } from "../support/webhooks.ts";

const server = await sharedPostgres({ after });

if (typeof server === "string")
  test("PostgreSQL is available to the tests of events", { skip: server }, () => undefined);
else events(server);

/** Starts two gates on one database, with one endpoint. */
async function twoDesks(
  t: TestContext,
  { gateUrl }: TestDatabase,
  defects?: readonly Mutation[],
): Promise<readonly [Desk, Desk, Receiver]> {
  const receiver = await receive(t);
  const folder = temporaryFolder(t);
  const notify = join(folder, "notify.json");
  const secrets = [`whsec_${Buffer.alloc(32, 7).toString("base64")}`];
  const endpoint = { name: "ops", url: receiver.url, secrets, allow_private: true, allow_http: true };
  writeFileSync(notify, JSON.stringify({ endpoints: [endpoint] }));
  chmodSync(notify, 0o600);
  const env = {
    SVC_DATABASE_URL: gateUrl,
    SVC_SIGNING_KEY: join(folder, "signing.key"),
    SVC_NOTIFY: notify,
  };
  const options = { env, ...(defects !== undefined && { defects }) };
  const one = await startDesk(t, options);
  return [one, await startDesk(t, { ...options, peer: one }), receiver];
}

function events(there: Databases): void {
  suite("two gates on one ledger", { concurrency: 2 }, () => {
    const heard = async ([one, other]: readonly [Desk, Desk, Receiver]): Promise<void> => {
      const stream = await openStream(other, other.keys["anna"] ?? "");
      let amount = 1200;
      // A busy machine may be late for one call, and then another one follows.
      const isInTime = async (): Promise<boolean> => {
        const call = {
          ...large,
          tool_input: { amount: (amount += 1), to: "anna" },
          platform_state: { wallet: `w${amount}` },
        };
        const parked = await one.asks(call);
        const startedAt = performance.now();
        const { data } = await stream.next("approval.opened");
        assert.equal(data.approval, parked.approval.id);
        return performance.now() - startedAt < 1000; // short wait: the next call may be in time
      };
      await eventually("an event within a second", isInTime, other.patienceMs);
      stream.close();
    };

    test("a stream hears of an event of the other gate within a second", async (t) => {
      await heard(await twoDesks(t, await there.create()));
    });

    control(
      "positive control: without a look at the database, a stream does not hear of the other gate's events",
      async (t) => {
        const defect: Mutation = { within: "EventFeed.#head", find: "!ledger.isShared", put: "true" };
        const desks = await twoDesks(t, await there.create(), [defect]);
        await assert.rejects(heard(desks));
      },
    );

    const once = async ([one, other, receiver]: readonly [Desk, Desk, Receiver]): Promise<void> => {
      await one.asks(large);
      await other.asks({ ...large, session_id: "s2", tool_input: { amount: 1300, to: "anna" } });
      const isOpened = ({ body }: Received): boolean => body.type === "approval.opened";
      await eventually("both events", () => receiver.received.filter(isOpened).length >= 2);
      await new Promise((resolve) => setTimeout(resolve, 1000)); // No event must come again.
      const opened = receiver.received.filter(isOpened);
      assert.deepEqual([opened.length, new Set(opened.map(({ id }) => id)).size], [2, 2]);
    };

    test("one of the gates sends each event once, and a replay at the other gate takes over", async (t) => {
      const desks = await twoDesks(t, await there.create());
      await once(desks);
      const [one, other, receiver] = desks;
      for (const desk of [one, other]) {
        const before = receiver.received.length;
        assert.equal((await desk.operates("/admin/notify/replay", { from: 7 })).status, 200);
        await receiver.until(() => receiver.received.length >= before + 2);
      }
    });

    control("positive control: without the right to send, both gates send each event", async (t) => {
      const defects: readonly Mutation[] = [
        { within: "Sender.#renewLease", find: "note === undefined", put: "false" },
        { within: "Sender.#store", find: "!isOurs", put: "false" },
      ];
      const desks = await twoDesks(t, await there.create(), defects);
      await assert.rejects(once(desks));
    });
  });
}

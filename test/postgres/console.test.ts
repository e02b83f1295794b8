/**
 * Goal: gates that share a ledger share sessions of the console, and each ends what the other has ended. Method: two
 * gates as processes on the run's PostgreSQL, with one secret. Positive controls: planted defects.
 */
import assert from "node:assert/strict";
import { after, suite, test, type TestContext } from "node:test";
import { large, type Desk } from "../support/approvals.ts";
import { pageOf, signIn, type ConsolePage } from "../support/console.ts";
import { control } from "../support/controls/control.ts";
import { openStream } from "../support/events.ts";
import type { Mutation } from "../support/mutation/mutate.ts";
import { sharedPostgres, type Databases } from "../support/databases.ts";
import { twoDesks } from "../support/two-desks.ts";
import { eventually } from "../support/patience.ts";

type Desks = readonly [Desk, Desk];

interface Case {
  readonly rule: string;
  readonly run: (desks: Desks) => Promise<void>;
  readonly defect: Mutation | readonly Mutation[];
}

/** The same session on another gate. Behind one public address, the cookie has one name. */
function movedTo(desk: Desk, page: ConsolePage): ConsolePage {
  const cookie = page.cookie.replace(/^svc-\d+/, `svc-${new URL(desk.address).port}`);
  return pageOf(desk, { ...page, cookie });
}

/** Each gate reads the changes of the others once a second. */
async function assertEnds(page: ConsolePage, { patienceMs }: Desk): Promise<void> {
  await eventually("the end of the session", async () => (await page("/session")).status === 401, patienceMs);
}

const anna = ({ keys }: Desk): string => keys["anna"] ?? "";
const noEnds = { within: "KnownKeys.isSessionEnded", first: "return false;" } as const;
const noRefresh = { within: "refreshMs", value: "1e9" } as const;

const cases: readonly Case[] = [
  {
    rule: "a session that one gate has opened can decide on the other",
    run: async ([one, other]) => {
      const page = movedTo(other, await signIn(one, anna(one)));
      const { approval } = await one.asks(large);
      const { json } = await page(`/api/approvals/${approval.id}`);
      const decided = await page(`/api/approvals/${approval.id}/approve`, { body: { hash: json.hash } });
      assert.equal(decided.status, 200, decided.text);
    },
    defect: { within: "openConsole", find: "Promise.resolve(Buffer.from(text))", put: "secretIn(file)" },
  },
  {
    rule: "a sign-out on one gate ends the session on the other within seconds",
    run: async ([one, other]) => {
      const [page, kept] = [await signIn(one, anna(one)), await signIn(other, anna(one))];
      assert.equal((await movedTo(other, page)("/session")).status, 200);
      assert.equal((await page("/session/end", { body: {} })).status, 200);
      await assertEnds(movedTo(other, page), other);
      assert.equal((await kept("/session")).status, 200);
    },
    defect: noEnds,
  },
  {
    rule: "the end of all sessions of a key ends them on each gate, and a new sign-in on any gate stays open",
    run: async ([one, other]) => {
      const [page, there] = [await signIn(one, anna(one)), await signIn(other, anna(one))];
      assert.equal((await page("/session/end", { body: { all: true } })).status, 200);
      const again = await signIn(other, anna(one));
      await assertEnds(there, other);
      for (const desk of [one, other]) assert.equal((await movedTo(desk, again)("/session")).status, 200);
    },
    defect: { within: "ConsoleDoor.#open", find: "keys.known.lastRow", put: "0" },
  },
  {
    rule: "a key that one gate has revoked ends its sessions and streams on the other",
    run: async ([one, other]) => {
      const page = await signIn(other, anna(one));
      const own = { cookie: page.cookie, "x-svc-session": page.secret, "x-svc-console": "1" };
      const stream = await openStream(other, "", { path: "/console/api/events", own });
      await one.operates("/admin/keys/anna-laptop/revoke", {});
      await assertEnds(page, other);
      await one.asks(large);
      await stream.ends();
      assert.deepEqual(
        stream.events.filter(({ type }) => type === "approval.opened"),
        [],
      );
    },
    defect: noRefresh,
  },
  {
    rule: "a key that one gate has revoked opens no session on the other, not even within a second",
    run: async ([one, other]) => {
      await one.operates("/admin/keys/anna-laptop/revoke", {});
      await assert.rejects(signIn(other, anna(one)), /401/);
    },
    defect: [noRefresh, { within: "ConsoleDoor.signIn", find: "await keys.catchUp();", put: ";" }],
  },
];

function replicas(there: Databases): void {
  suite("the console of two gates on one ledger", { concurrency: 2 }, () => {
    const desks = async (t: TestContext, defects: readonly Mutation[]): Promise<Desks> => {
      const env = { SVC_CONSOLE_SECRET: "0123456789abcdef".repeat(4) };
      return twoDesks(t, await there.create(), { env, ...(defects.length > 0 && { defects }) });
    };
    for (const { rule, run, defect } of cases) {
      test(rule, async (t) => run(await desks(t, [])));
      control(`positive control: a defect is noticed by "${rule}"`, async (t) => {
        const started = await desks(t, [defect].flat());
        await assert.rejects(async () => run(started));
      });
    }
  });
}

const server = await sharedPostgres({ after });

if (typeof server === "string")
  test("PostgreSQL is available to the tests of the console", { skip: server }, () => undefined);
else replicas(server);

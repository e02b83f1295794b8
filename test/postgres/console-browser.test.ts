/**
 * Goal: the consoles of several gates on one ledger are one console: a session of one opens the other, and what happens
 * at one is on the pages of the other in about a second. Method: two gates as processes on the run's PostgreSQL,
 * and real browsers at each. The times are printed; the bounds are for a machine that runs other tests too. The control
 * of pages that hear no events is in test/process/console/together.test.ts.
 */
import assert from "node:assert/strict";
import { after, suite, test, type TestContext } from "node:test";
import type { Desk } from "../support/approvals.ts";
import { openBrowser, settled } from "../support/browser.ts";
import { consoleContract, keyOf, parks } from "../support/console-kit.ts";
import { sharedPostgres, type Databases } from "../support/databases.ts";
import { twoDesks } from "../support/two-desks.ts";

const rounds = 5;
const server = await sharedPostgres({ after });

if (typeof server === "string")
  test("PostgreSQL is available to the tests of the console", { skip: server }, () => undefined);
else consoles(server);

async function desks(t: TestContext, there: Databases): Promise<readonly [Desk, Desk]> {
  const env = { SVC_CONSOLE_SECRET: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" };
  return twoDesks(t, await there.create(), {
    contract: consoleContract,
    scopes: ["approve", "receipts", "rules"],
    env,
  });
}

function consoles(there: Databases): void {
  suite("PostgreSQL: the consoles of two gates", () => {
    test("[issue 18] a new approval and its decision at one gate are on the page of the other", async (t) => {
      const [one, other] = await desks(t, there);
      const bob = await openBrowser(t, other);
      await bob.signIn(keyOf(one, "bob"));
      await bob.page.getByText("live", { exact: true }).waitFor();
      const times: number[] = [];
      let id = "";
      for (let round = 1; round <= rounds; round += 1) {
        const startedAt = performance.now();
        id = await parks(one, { amount: 1600 + round }, { session_id: `s${round}` });
        await bob.page.getByRole("button", { name: `Show ${round} new` }).waitFor();
        times.push(Math.round(performance.now() - startedAt));
      }
      t.diagnostic(`a new approval was on the other gate's page after ${times.join(", ")} ms`);
      await bob.opens(`/approvals/${id}`);
      await bob.page.getByText("live", { exact: true }).waitFor();
      const startedAt = performance.now();
      assert.equal((await one.decides("anna", id, "deny")).status, 200);
      await bob.page.getByText("The call was denied").waitFor();
      t.diagnostic(`the decision was there after ${Math.round(performance.now() - startedAt)} ms`);
    });

    test("a session that one gate opened is good at the other, and ends at both", async (t) => {
      const [one, other] = await desks(t, there);
      const anna = await openBrowser(t, one);
      anna.expects(/request to another origin/, /status of 401/, /\/api\/events/);
      await anna.signIn(keyOf(one, "anna"));
      const secret = await anna.page.evaluate<string>("localStorage['svc-gate /console']");
      // A load balancer gives both gates one origin; here the page's secret moves to the other port.
      await anna.page.goto(`${other.address}/console`);
      const port = (address: string): string => new URL(address).port;
      const cookies = await anna.context.cookies();
      await anna.context.addCookies(
        cookies.map((cookie) => ({ ...cookie, name: cookie.name.replace(port(one.address), port(other.address)) })),
      );
      await anna.page.evaluate(`localStorage["svc-gate /console"] = "${secret}"`);
      await anna.page.goto(`${other.address}/console/access`);
      await settled(anna.page);
      await one.operates("/admin/keys/anna-laptop/revoke", {});
      const startedAt = performance.now();
      await anna.page.getByText("Your session has ended").waitFor({ timeout: 60_000 });
      t.diagnostic(`the session of a revoked key was over after ${Math.round(performance.now() - startedAt)} ms`);
    });
  });
}

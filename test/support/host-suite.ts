/** Tests of agent hosts with the conformance kit, for files that run some of the hosts each. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import type { Driver } from "../../adapters/conformance/case.ts";
import { runHost } from "../../adapters/conformance/kit.ts";
import { linesAbout, pages, surprises } from "../../adapters/conformance/page.ts";
import { root } from "./gate.ts";

/** Runs each host through all its cases, and compares the results with the pages of docs/hosts. */
export function testHosts(drivers: readonly Driver[]): void {
  suite("agent hosts", () => {
    for (const driver of drivers) {
      test(`${driver.name} runs nothing that the gate did not allow, but for the cases that its page lists`, async (t) => {
        const missing = driver.missing();
        if (missing !== undefined) return t.skip(missing);
        const runs = await runHost(t, driver, { atOnce: 2 });
        const found = { driver, version: driver.version(), runs };
        assert.deepEqual(surprises(found), []);
        const unable = runs.find(({ excuse }) => excuse?.startsWith("this machine"))?.excuse;
        if (unable !== undefined) return t.diagnostic(`the page is not compared: ${unable}`);
        for (const [name, pageOf] of Object.entries(pages)) {
          const page = readFileSync(join(root, "docs", "hosts", name), "utf8");
          assert.deepEqual(
            linesAbout(page, driver.name),
            linesAbout(pageOf([found]), driver.name),
            "run npm run hosts",
          );
        }
        return undefined;
      });
    }
  });
}

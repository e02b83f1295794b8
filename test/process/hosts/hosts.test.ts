/**
 * Goal: the gate holds in the released agent hosts, and docs/hosts/README.md says exactly in which cases. Method: the
 * conformance kit runs each host of the lock file against a scripted model and a real gate. Positive control: the broken
 * adapters of mutants.test.ts.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { drivers } from "../../../adapters/conformance/drivers/all.ts";
import { runHost } from "../../../adapters/conformance/kit.ts";
import { open } from "../../../adapters/conformance/open.ts";
import { linesAbout, pageOf, surprises } from "../../../adapters/conformance/page.ts";
import { root } from "../../support/gate.ts";

const page = readFileSync(join(root, "docs", "hosts", "README.md"), "utf8");

suite("agent hosts", { concurrency: 2 }, () => {
  for (const driver of drivers) {
    test(`${driver.name} runs nothing that the gate did not allow, but for the cases that its page lists`, async (t) => {
      const missing = driver.missing();
      if (missing !== undefined) return t.skip(missing);
      const runs = await runHost(t, driver, { atOnce: driver.hasPermissions ? 2 : 4 });
      const found = { driver, version: driver.version(), runs };
      assert.deepEqual(surprises(found), []);
      const unable = runs.find(({ excuse }) => excuse?.startsWith("this machine"))?.excuse;
      if (unable !== undefined) return t.diagnostic(`the page is not compared: ${unable}`);
      assert.deepEqual(linesAbout(page, driver.name), linesAbout(pageOf([found]), driver.name), "run npm run hosts");
      return undefined;
    });
  }

  test("a parked call runs before the SDK has registered its hooks, which is why the adapter does not park", (t) => {
    const missing = drivers.find(({ name }) => name.endsWith("TypeScript"))?.missing();
    if (missing !== undefined) return t.skip(missing);
    const example = join(root, "adapters", "conformance", "repros", "deferred-before-hooks.mjs");
    const { stdout } = spawnSync(process.execPath, [example], { encoding: "utf8", timeout: 120_000 });
    assert.equal(stdout, "after the resume the hook was asked 0 times; the tool ran\n", "offer defer if it is fixed");
    return undefined;
  });

  test("each list of open cases belongs to a host of the kit", () => {
    const names = drivers.map(({ name }) => name);
    assert.deepEqual(
      Object.keys(open).filter((name) => !names.includes(name)),
      [],
    );
  });
});

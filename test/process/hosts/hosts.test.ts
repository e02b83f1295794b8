/**
 * Goal: the gate works in the released agent hosts, and docs/hosts/results.md says exactly in which cases. Method: the
 * conformance kit runs each host of the lock file against a scripted model and a real gate. Positive control: the broken
 * adapters of mutants.test.ts. Here: the hosts that are libraries, and the list of all.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { suite, test } from "node:test";
import { drivers, libraries } from "../../../adapters/conformance/drivers/all.ts";
import { open } from "../../../adapters/conformance/open.ts";
import { root } from "../../support/gate.ts";
import { testHosts } from "../../support/host-suite.ts";

testHosts(libraries);

suite("the kit of agent hosts", () => {
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

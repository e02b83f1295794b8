/** Goal: the cases of the proxy notice what a broken proxy does. Method: each runs on a proxy with one planted defect. */
import assert from "node:assert/strict";
import { suite } from "node:test";
import { control } from "../../support/controls/control.ts";
import { attacks } from "../../support/mcp/attack-cases.ts";
import { cases } from "../../support/mcp/cases.ts";
import { mutants } from "../../support/mcp/mutants.ts";
import { controlPatienceMs } from "../../support/patience.ts";

suite("the cases of svc-gate mcp on broken proxies", { concurrency: 2 }, () => {
  for (const { fault, mutations, noticed } of mutants) {
    control(`a proxy that ${fault} is noticed`, async (t) => {
      for (const title of noticed) {
        const found = Object.entries({ ...cases, ...attacks }).filter(([each]) => each.startsWith(title));
        assert.equal(found.length, 1, title);
        for (const [each, run] of found)
          await assert.rejects(
            run(t, { mutations, patienceMs: controlPatienceMs }),
            assert.AssertionError,
            `${each} passed`,
          );
      }
    });
  }
});

/**
 * Goal: spec/openapi.json is well formed, and the gate answers every request that it allows as it says. Method: an
 * independent validator reads it. schemathesis makes valid and invalid calls from it and compares a live gate's
 * answers: a few for each route here, any number with `npm run schemathesis`. Positive controls: an invalid document
 * and a document with a wrong promise are reported.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { control } from "../support/controls/control.ts";
import { root, temporaryFolder } from "../support/gate.ts";

const document = join(root, "spec", "openapi.json");

/** Undefined, with the test skipped, if schemathesis is not installed. */
function run(t: TestContext, openapi: string, ...flags: readonly string[]): string | undefined {
  const args = ["tools/schemathesis.ts", "--max-examples", "20", "--generation-deterministic", ...flags];
  const env = { ...process.env, OPENAPI: openapi };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, env, encoding: "utf8" });
  if (status !== 3) return `${stdout}${stderr}\nexit code ${status}`;
  t.skip("schemathesis is not installed");
  return undefined;
}

test("an independent validator accepts spec/openapi.json", async () => {
  const text = readFileSync(document, "utf8");
  const validity = async (openapi: string): Promise<unknown> => (await new Validator().validate(openapi)).valid;
  assert.equal(await validity(text), true);
  assert.equal(await validity(text.replaceAll('"description"', '"descripton"')), false);
});

suite("spec/openapi.json under schemathesis", () => {
  test("schemathesis finds no deviation in a live gate", (t) => {
    const printed = run(t, document);
    if (printed !== undefined) assert.match(printed, /(\d+) generated, \1 passed[\s\S]*\nexit code 0$/);
  });

  control("positive control: a document that differs from the gate is noticed", (t) => {
    const doctored = join(temporaryFolder(t), "openapi.json");
    writeFileSync(doctored, readFileSync(document, "utf8").replaceAll('"BLOCK"', '"DENY"'));
    const printed = run(t, doctored, "--phases", "examples", "--include-path", "/check");
    if (printed !== undefined) assert.match(printed, /Response violates schema[\s\S]*\nexit code 1$/);
  });
});

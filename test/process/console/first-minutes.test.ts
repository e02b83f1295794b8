/**
 * Goal: a new gate leads its first person from the terminal to the first receipt. Method: a gate as `npm start` starts
 * it, in observe mode and without an approver's key, and a real browser that takes the code from the terminal.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { eventually } from "../../support/patience.ts";
import { openBrowser } from "../../support/browser.ts";
import { ask, spawnGate, temporaryFolder, writeContracts } from "../../support/gate.ts";

suite("the first minutes with the console", () => {
  test("the terminal's code opens it, a form sends the first check, and its step is done", async (t) => {
    const folder = temporaryFolder(t);
    const mandate = writeContracts(folder, {});
    const env = { SVC_MODE: "observe", SVC_MANDATE: mandate, SVC_DATA_DIR: join(folder, "data") };
    const gate = await spawnGate(t, [], { cwd: folder, env });
    const key = readFileSync(join(folder, "data", "first-key"), "utf8").trim();
    const { page, ...person } = await openBrowser(t, gate);
    person.expects(/status of 40[13]/);
    await page.goto(`${gate.address}/console`);
    await page.getByLabel("Your key").fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByLabel(/The code/).fill("WRONGONE");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText(/code is wrong/).waitFor();
    const code = await eventually("a code is shown", () => /sign in to the console: (\w{8})/.exec(gate.stdout())?.[1]);
    await page.getByLabel(/The code/).fill(code);
    await page.getByRole("button", { name: "Sign in" }).click();

    await page.getByRole("heading", { name: "The first minutes" }).waitFor();
    const step = page.getByRole("listitem").filter({ hasText: "Send a check" });
    assert.equal(await step.getByText("(done)").count(), 0);
    await step.getByRole("button", { name: "Send the check" }).click();
    await step.getByText("(done)").waitFor();
    await step.getByText("ALLOW").waitFor();
    await step.getByRole("link", { name: /Receipt \d+/ }).click();
    await page.getByRole("heading", { name: /Receipt \d+/ }).waitFor();
    await page.getByText("payment.send").first().waitFor();
    const { json } = await ask(gate, "/receipts", { headers: { authorization: `Bearer ${key}` } });
    assert.deepEqual(
      json.receipts.map((receipt: { readonly session_id: string }) => receipt.session_id),
      ["example"],
    );
    await page.goto(`${gate.address}/console`);
    await page.getByText("keys create anna-laptop").waitFor();
  });
});

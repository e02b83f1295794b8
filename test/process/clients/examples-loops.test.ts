/**
 * Goal: the example loops run as they are, in both languages, and print the same. Method: each runs against its own
 * gate in each mode. The output, with hashes replaced, is compared with test/golden/agent-loop.MODE.golden.
 * `UPDATE_GOLDEN=1 node --test test/process/clients/examples-loops.test.ts` rewrites those files.
 */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { promisify } from "node:util";
import { key, root, startGate, temporaryFolder } from "../../support/gate.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const python = ["python3", "python"].find((name) => spawnSync(name, ["--version"]).status === 0);
const loops = [
  { file: "agent_loop.py", command: python, missing: "there is no Python on this machine" },
  { file: "agent-loop.mjs", command: process.execPath, missing: "" },
] as const;
const contracts = { "payments.yaml": readFileSync(join(root, "contracts", "payments.yaml"), "utf8") };
const cleanEnvironment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("SVC_")));

/** Runs a loop to its end; a failure shows the loop's output. */
async function run(command: string, file: string, args: readonly string[], env: object): Promise<string> {
  const options = { env: { ...cleanEnvironment, PYTHONDONTWRITEBYTECODE: "1", ...env }, timeout: 60_000 };
  const { stdout, stderr } = await promisify(execFile)(command, [join(root, "examples", file), ...args], options);
  assert.equal(stderr, "");
  return stdout.replaceAll("\r\n", "\n");
}

/** The result of a program that failed. */
type Failed = Readonly<Record<"code" | "stderr" | "stdout", string>>;

/** Starts a healthy gate that allows this many calls and then breaks each connection. @returns its address */
async function gateThatGoes(t: TestContext, checks: number): Promise<string> {
  let left = checks;
  const gate = createServer((request, response) => {
    const isCheck = request.url === "/check";
    if (isCheck && (left -= 1) < 0) return request.socket.destroy();
    const answer = isCheck
      ? { verdict: "ALLOW", reason: "Svc: fine", mode: "enforce" }
      : { status: "ok", mode: "enforce" };
    return request.resume().once("end", () => response.end(JSON.stringify(answer)));
  });
  gate.listen(0, "127.0.0.1");
  await once(gate, "listening");
  t.after(() => gate.close());
  return `http://127.0.0.1:${(gate.address() as AddressInfo).port}`;
}

suite("the example loops", () => {
  for (const { file, command, missing } of loops) {
    for (const mode of ["observe", "enforce"]) {
      test(
        `${file} prints the golden text against a gate in ${mode} mode`,
        { tags: ["client.caller-logic", "service.call-site"] },
        async (t) => {
          if (command === undefined) return t.skip(missing);
          const gate = await startGate(t, { contracts, flags: { mode } });
          const printed = await run(command, file, [gate.address], { SVC_API_KEY: key });
          const shown = printed.replaceAll(/(?<=^ {2}receipt \d+, )[0-9a-f]{12}$/gm, "HASH");
          const golden = join(root, "test", "process", "clients", "golden", `agent-loop.${mode}.golden`);
          if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(golden, shown);
          assert.equal(shown, readFileSync(golden, "utf8"));
        },
      );
    }

    test(`${file} reads the first key from the data folder`, async (t) => {
      if (command === undefined) return t.skip(missing);
      const gate = await startGate(t, { contracts });
      const folder = temporaryFolder(t);
      writeFileSync(join(folder, "first-key"), `${key}\n`);
      assert.match(await run(command, file, [gate.address], { SVC_DATA_DIR: folder }), /^mode: enforce\n/);
    });

    test(
      `${file} says what to do about a missing or wrong key and sends no check`,
      { tags: ["first-use-11"] },
      async (t) => {
        if (command === undefined) return t.skip(missing);
        const gate = await startGate(t, { contracts });
        const folder = temporaryFolder(t);
        const failing = { SVC_DATA_DIR: folder };
        const fails = (env: object, name: string): Promise<void> =>
          assert.rejects(run(command, file, [gate.address], env), (error: { readonly stderr: string }) => {
            const lines = error.stderr.trimEnd().split(/\r?\n/);
            for (const [at, line] of lines.entries()) says(`${name}: ${at + 1} of ${lines.length}`, line);
            assert.doesNotMatch(error.stderr, /Is a gate running/);
            return true;
          });
        await fails(failing, "no key");
        writeFileSync(join(folder, "first-key"), "of-an-earlier-gate\n");
        await fails(failing, "a wrong key");
        await fails({ ...failing, SVC_API_KEY: "of-another-gate" }, "a wrong key");
        assert.equal(gate.ledger.head.seq, 0);
        await run(command, file, [gate.address], { ...failing, SVC_API_KEY: key });
        assert.ok(gate.ledger.head.seq > 0, "positive control");
      },
    );

    test(
      `${file} stops when the gate gives no verdict and tells the model nothing about it`,
      { tags: ["first-use-15"] },
      async (t) => {
        if (command === undefined) return t.skip(missing);
        for (const checks of [0, 1]) {
          const address = await gateThatGoes(t, checks);
          const failed: Failed = await run(command, file, [address], { SVC_API_KEY: key }).then(
            (printed) => assert.fail(printed),
            (error: unknown) => error as Failed,
          );
          assert.equal(Number(failed.code), 1);
          const [stopped, cause] = failed.stderr.split("Svc: ");
          says("the run was stopped", stopped?.trimEnd() ?? "");
          says("why the run was stopped", cause?.trimEnd() ?? "");
          const toModel = failed.stdout.split(/\r?\n/).filter((line) => line.startsWith("  to the model: "));
          assert.equal(toModel.length, checks, failed.stdout);
          assert.ok(
            toModel.every((line) => line.includes("paid 10 USD")),
            "positive control: a verdict goes on",
          );
          assert.doesNotMatch(failed.stdout, /127\.0\.0\.1|the gate at|could not|connection/);
        }
      },
    );

    test(`${file} says what to do if no gate is running`, async (t) => {
      if (command === undefined) return t.skip(missing);
      const gate = await startGate(t, { contracts });
      await gate.stop();
      await assert.rejects(run(command, file, [gate.address], { SVC_API_KEY: key }), /npm start/);
    });
  }
});

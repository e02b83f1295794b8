/**
 * Goal: independent witnesses cosign a running gate's heads, and stop it if its history is not the one that they saw.
 * Method: the witnesses' programs run next to a gate whose policy names them. Then an older copy of the gate's folder
 * is put back, as after an unrecorded restore.
 */
import assert from "node:assert/strict";
import { cpSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { control } from "../controls/control.ts";
import { openCheckpoint } from "../../../packages/core/src/record/tree/checkpoint.ts";
import {
  parseVerifierKey,
  publicBytes,
  verifierKey,
  type VerifierKey,
} from "../../../packages/core/src/record/tree/note.ts";
import { makeSigningKey, writeSigningKeys } from "../../../packages/gate/src/ledger/signing/signing-key.ts";
import { ask, startGate, temporaryFolder, type Running } from "../gate.ts";
import { askMany } from "./asking.ts";
import { findProgram, programs, runProgram } from "./programs.ts";
import { witnesses, type RunningWitness, type StartWitness } from "./witnesses.ts";

const origin = "svc-gate/witnessed";

interface Witnessed {
  readonly folder: string;
  readonly log: VerifierKey;
  readonly witness: RunningWitness;
  readonly policy: string;
  readonly start: () => Promise<Running>;
}

/** Makes a witness that knows a log, and a gate for that log, not yet started, that needs the witness. */
async function witnessed(t: TestContext, startWitness: StartWitness): Promise<Witnessed | undefined> {
  const folder = temporaryFolder(t);
  const current = makeSigningKey();
  const log = verifierKey(origin, publicBytes(current));
  const witness = await startWitness(t, { origin, vkey: log.text });
  if (witness === undefined) return undefined;
  const [keyFile, policy] = [join(folder, "key.pem"), join(folder, "witnesses.policy")];
  await writeSigningKeys(keyFile, { current, before: undefined });
  writeFileSync(policy, `log ${log.text}\nwitness W ${witness.vkey} ${witness.url}\nquorum W\n`);
  const flags = { "signing-key": keyFile, "ledger-name": origin, "witness-policy": policy, "anchor-every": "1" };
  return { folder, log, witness, policy, start: () => startGate(t, { folder, flags }) };
}

/**
 * Returns the head that a quorum has cosigned, once it covers all these rows. The test's own time limit is the bound.
 */
async function cosignedHead(gate: Running, rows: number): Promise<string> {
  for (;;) {
    const { status, text } = await ask(gate, "/checkpoint?cosigned=1");
    if (status === 200 && Number(text.split("\n")[1]) >= rows) return text;
    await wait(50);
  }
}

for (const [name, startWitness] of Object.entries(witnesses))
  suite(`a gate and ${name}`, () => {
    test("the gate's heads are cosigned, before and after a restart", async (t) => {
      const all = await witnessed(t, startWitness);
      if (all === undefined) return;
      const { folder, log, witness, policy, start } = all;
      const outsider = findProgram(programs.outsider);
      const key = parseVerifierKey(witness.vkey);
      assert.ok(key.ok);
      let rows = 0;
      for (const more of [3, 300, 1]) {
        const gate = await start();
        await askMany(gate, more);
        rows += more;
        const head = await cosignedHead(gate, rows);
        const opened = openCheckpoint(head, [log], [key.value]);
        assert.ok(opened.ok, head);
        assert.deepEqual(
          [opened.value.size, opened.value.signed.map((by) => by.key.name)],
          [rows, [origin, key.value.name]],
        );
        const file = join(folder, "head");
        writeFileSync(file, head);
        if (outsider !== undefined) {
          const { stdout } = await runProgram(outsider, ["policy", policy, file]);
          assert.deepEqual(JSON.parse(stdout), { witnesses: 1, satisfied: true });
        }
        const { json } = await ask(gate, "/ledger/verify");
        assert.equal(json.ok, true, JSON.stringify(json));
        await gate.stop();
      }
    });

    control("positive control: a gate that is set back to an older copy is not served", async (t) => {
      const all = await witnessed(t, startWitness);
      if (all === undefined) return;
      const { folder, start } = all;
      const [data, kept] = [join(folder, "data"), join(folder, "kept")];
      const first = await start();
      await askMany(first, 5);
      await cosignedHead(first, 5);
      await first.stop();
      cpSync(data, kept, { recursive: true });
      const second = await start();
      await askMany(second, 4);
      await cosignedHead(second, 9);
      await second.stop();
      rmSync(data, { recursive: true });
      cpSync(kept, data, { recursive: true });
      await assert.rejects(start(), /rows? 9/);
    });
  });

/**
 * Goal: independent witnesses cosign our heads, and refuse a second history under the same key. Method: the programs
 * themselves run on this machine and receive heads and consistency proofs; we and Go's libraries verify their
 * signatures.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { control } from "../controls/control.ts";
import { openCheckpoint } from "../../../packages/core/src/record/tree/checkpoint.ts";
import { parseVerifierKey, type VerifierKey } from "../../../packages/core/src/record/tree/note.ts";
import { temporaryFolder } from "../gate.ts";
import { findProgram, programs, runProgram } from "./programs.ts";
import { makeLog, type Log } from "./site.ts";
import { witnesses, type RunningWitness } from "./witnesses.ts";

const origin = "svc-gate/third";

interface WitnessAnswer {
  readonly status: number;
  readonly text: string;
}

/** C2SP tlog-witness: a head, and a proof that it extends one of an earlier size. */
async function addCheckpoint({ url }: RunningWitness, log: Log, from: number, size: number): Promise<WitnessAnswer> {
  const proof = (await log.consistency(from, size)).map((hashed) => `${hashed.toString("base64")}\n`);
  const body = `old ${from}\n${proof.join("")}\n${await log.checkpoint(size)}`;
  const response = await fetch(`${url}/add-checkpoint`, { method: "POST", body });
  return { status: response.status, text: await response.text() };
}

function keyOf(vkey: string): VerifierKey {
  const key = parseVerifierKey(vkey);
  assert.ok(key.ok, vkey);
  return key.value;
}

/** Returns the signers of a head, by our own verification. */
function signersOf(written: string, log: Log, witness: RunningWitness): readonly string[] {
  const opened = openCheckpoint(written, [keyOf(log.vkey)], [keyOf(witness.vkey)]);
  assert.ok(opened.ok, written);
  return opened.value.signed.map(({ key }) => key.name);
}

for (const [name, start] of Object.entries(witnesses))
  suite(name, () => {
    test("the witness cosigns each head that extends the last, and our code accepts its signatures", async (t) => {
      const log = makeLog({ origin, size: 600 });
      const witness = await start(t, { origin, vkey: log.vkey });
      if (witness === undefined) return;
      let from = 0;
      for (const size of [1, 2, 255, 256, 257, 600, 600]) {
        const { status, text } = await addCheckpoint(witness, log, from, size);
        assert.equal(status, 200, `${size}: ${text}`);
        const cosigned = (await log.checkpoint(size)) + text;
        assert.deepEqual(signersOf(cosigned, log, witness), [origin, keyOf(witness.vkey).name]);
        from = size;
      }
    });

    test("by Go's libraries, the cosignature alone satisfies a policy that requires it", async (t) => {
      const log = makeLog({ origin, size: 9 });
      const witness = await start(t, { origin, vkey: log.vkey });
      const outsider = findProgram(programs.outsider);
      if (witness === undefined) return;
      if (outsider === undefined) return t.skip("not here: outsider");
      const { text } = await addCheckpoint(witness, log, 0, 9);
      const folder = temporaryFolder(t);
      const [policy, head] = [join(folder, "policy"), join(folder, "checkpoint")];
      writeFileSync(policy, `log ${log.vkey}\nwitness W ${witness.vkey} ${witness.url}\nquorum W\n`);
      const looked: unknown[] = [];
      for (const written of [await log.checkpoint(), (await log.checkpoint()) + text]) {
        writeFileSync(head, written);
        const { stdout, stderr } = await runProgram(outsider, ["policy", policy, head]);
        assert.equal(stderr, "");
        looked.push(JSON.parse(stdout));
      }
      assert.deepEqual(looked, [
        { witnesses: 1, satisfied: false },
        { witnesses: 1, satisfied: true },
      ]);
    });

    control(
      "positive control: the witness refuses a second history, an older head, another key and another log",
      async (t) => {
        const log = makeLog({ origin, size: 300 });
        const witness = await start(t, { origin, vkey: log.vkey });
        if (witness === undefined) return;
        const fork = makeLog({ origin, size: 300, fork: 199, signer: log.signer });
        const stranger = makeLog({ origin, size: 300 });
        const other = makeLog({ origin: "svc-gate/other", size: 300 });
        assert.equal((await addCheckpoint(witness, log, 0, 200)).status, 200);
        const refused = [
          await addCheckpoint(witness, fork, 200, 300),
          await addCheckpoint(witness, fork, 200, 200),
          await addCheckpoint(witness, fork, 0, 300),
          await addCheckpoint(witness, log, 0, 100),
        ];
        assert.deepEqual(
          refused.map(({ status }) => status),
          [422, 422, 409, 409],
        );
        assert.deepEqual([refused[2]?.text, refused[3]?.text], ["200\n", "200\n"], "the size that it knows");
        // C2SP wants 403 and 404; OmniWitness answers the first with 500, litewitness the second with 403.
        const strange = [await addCheckpoint(witness, stranger, 200, 300), await addCheckpoint(witness, other, 0, 300)];
        assert.ok(
          strange.every(({ status, text }) => status >= 400 && !text.includes("\u2014")),
          JSON.stringify(strange),
        );
        assert.equal((await addCheckpoint(witness, log, 200, 300)).status, 200, "the honest history goes on");
      },
    );
  });

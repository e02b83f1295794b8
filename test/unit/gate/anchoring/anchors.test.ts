/**
 * Goal: the gate publishes heads to its anchors, and finds out before it serves if they know more than the ledger.
 * Method: a growing tree replaces the ledger. A witness written from the text of C2SP, and one that misbehaves in every
 * known way, replace the outside services. The tests wait for events, never for a time.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { openCheckpoint } from "../../../../packages/core/src/record/tree/checkpoint.ts";
import { makeSigningKey } from "../../../../packages/gate/src/ledger/signing/signing-key.ts";
import {
  anchorsOf,
  FakeLog,
  grow,
  TestWitness,
  until,
  vouchedBy,
  witnessOf,
  type Said,
} from "../../../support/anchor-kit.ts";
import { temporaryFolder } from "../../../support/ledger-fixture.ts";
import { sentencesOf } from "../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const origin = "example.org/one";

/** Returns a file's text as soon as it starts with the given text. */
async function wholeFile(file: string, start: string): Promise<string> {
  await until(() => readFileSync(file, "utf8").startsWith(start));
  return readFileSync(file, "utf8");
}

suite("witnesses", () => {
  test("witnesses cosign each new head, and two of three are enough for a quorum of two", async (t) => {
    const log = new FakeLog(origin).grow(3);
    const witnesses = [await witnessOf(t, "a", log), await witnessOf(t, "b", log), await witnessOf(t, "c", log)];
    const [a, , c] = witnesses as [TestWitness, TestWitness, TestWitness];
    c.instead = () => ({ status: 500 });
    const folder = temporaryFolder(t);
    const opened = anchorsOf(t, { log, witnesses, quorum: 2, folder });
    await opened.anchors.start(true);
    assert.equal(opened.anchors.cosigned?.size, 3);
    for (const rows of [1, 4, 250, 300]) {
      grow(opened, log, rows);
      await until(() => opened.anchors.cosigned?.size === log.size);
    }
    const kept = await wholeFile(join(folder, "checkpoint.cosigned"), `${origin}\n558\n`);
    const opening = openCheckpoint(
      kept,
      log.verifiers,
      witnesses.map(({ key }) => key),
    );
    assert.ok(opening.ok);
    const cosigned = opening.value;
    assert.equal(cosigned.size, 558);
    assert.deepEqual(cosigned.signed.map(({ key }) => key.name).toSorted(), [origin, "a", "b"].toSorted());
    assert.equal(vouchedBy(opened, "quorum of witnesses"), 558);
    assert.equal(vouchedBy(opened, "witness w3"), undefined);
    assert.ok(a.requests.includes("/add-checkpoint old 3 -> 200"), "the proof is from what it cosigned last");
    c.instead = undefined;
    await until(() => vouchedBy(opened, "witness w3") === 558);
    assert.equal(opened.lines.filter((line) => line.includes("witness w3")).length, 2, "once lost, once back");
    assert.equal(await opened.anchors.findDivergence(), undefined);
  });

  test("the gate compares the head that witnesses cosigned with its tree", async (t) => {
    const key = makeSigningKey();
    const [log, other] = [new FakeLog(origin, key).grow(9), new FakeLog(origin, key).grow(2).grow(9, "other")];
    const witness = await witnessOf(t, "a", log);
    const { anchors } = anchorsOf(t, { log, witnesses: [witness], folder: temporaryFolder(t) });
    await anchors.start(true);
    assert.equal(await anchors.findDivergence(), undefined);
    t.mock.method(log, "hashes", other.hashes.bind(other));
    const { seq, problem } = (await anchors.findDivergence()) ?? {};
    assert.equal(seq, 9);
    says("another tree than the witnesses have seen", problem ?? "");
  });

  test("one witness of three does not make a quorum of two, and no head counts as cosigned", async (t) => {
    const log = new FakeLog(origin).grow(3);
    const witnesses = [await witnessOf(t, "a", log), await witnessOf(t, "b", log), await witnessOf(t, "c", log)];
    for (const witness of witnesses.slice(1)) witness.instead = () => ({ status: 503 });
    const opened = anchorsOf(t, { log, witnesses, quorum: 2, folder: temporaryFolder(t) });
    await opened.anchors.start(true);
    assert.equal(vouchedBy(opened, "witness w1"), 3);
    assert.equal(opened.anchors.cosigned, undefined);
  });

  test("after a restart the gate continues from the size that the witness reports", async (t) => {
    const log = new FakeLog(origin).grow(300);
    const witness = await witnessOf(t, "a", log);
    const folder = temporaryFolder(t);
    const before = anchorsOf(t, { log, witnesses: [witness], folder });
    await before.anchors.start(true);
    await before.anchors.close();
    log.grow(5);
    const after = anchorsOf(t, { log, witnesses: [witness], folder });
    await after.anchors.start(true);
    assert.equal(after.anchors.cosigned?.size, 305);
    assert.deepEqual(witness.requests.slice(1), ["/add-checkpoint old 0 -> 409", "/add-checkpoint old 300 -> 200"]);
  });

  test("if a witness lacks the log's key or has another one, the gate logs the right key", async (t) => {
    const log = new FakeLog(origin).grow(3);
    const [stranger, mistaken] = [await witnessOf(t, "a", log), await witnessOf(t, "b", new FakeLog(origin))];
    stranger.trusted.clear();
    const opened = anchorsOf(t, { log, witnesses: [stranger, mistaken], folder: temporaryFolder(t) });
    await opened.anchors.start(true);
    const vkey = log.verifiers[0]?.text ?? "";
    const lines = opened.lines.toSorted();
    assert.equal(lines.length, 2);
    says("a witness that does not know the log", lines[0] ?? "", { VKEY: vkey });
    says("a witness with another key of the log", lines[1] ?? "", { VKEY: vkey });
  });

  test("the gate catches up if another gate has already sent a larger head to the witness", async (t) => {
    const log = new FakeLog(origin).grow(3);
    const witness = await witnessOf(t, "a", log);
    const other = anchorsOf(t, { log, witnesses: [witness], folder: temporaryFolder(t) });
    const opened = anchorsOf(t, { log, witnesses: [witness], folder: temporaryFolder(t) });
    await opened.anchors.start(true);
    // This publisher's request is behind when it arrives: the other has already sent rows that this one has not read.
    witness.onRequest = (body) => {
      if (!body.includes(`\n${origin}\n4\n`)) return;
      witness.onRequest = undefined;
      witness.seen.clear();
      witness.answer("/add-checkpoint", `old 0\n\n${log.grow(6).head()}`);
    };
    grow(opened, log, 1);
    await until(() => opened.anchors.cosigned?.size === 10);
    assert.deepEqual(opened.lines, []);
    await other.anchors.close();
  });
});

/** Every known way in which a witness or sink can be slow, broken or hostile. */
const hostile: readonly (readonly [string, (witness: TestWitness) => (path: string, body: string) => Said])[] = [
  ["garbage", () => () => ({ status: 200, body: "hello\u0000\n" })],
  ["an empty body", () => () => ({ status: 200 })],
  ["over 128 KiB", () => () => ({ status: 200, body: "— a AAAAAAAA\n".repeat(100_000) })],
  ["a redirect", () => () => ({ status: 307, headers: { location: "/elsewhere" } })],
  ["an error", () => () => ({ status: 500, body: "\u001b[31mred" })],
  ["a cosignature of another text", (witness) => () => ({ status: 200, body: witness.cosign(`${origin}\n9\nAAAA\n`) })],
  [
    "a cosignature without a time",
    (witness) => (_path, body) => ({
      status: 200,
      body: witness.cosign(body.slice(body.indexOf("\n\n") + 2).split("\n\n")[0] + "\n", 0),
    }),
  ],
  [
    "a longer text with a good cosignature",
    (witness) => (_path, body) => {
      const note = body.slice(body.indexOf("\n\n") + 2);
      return { status: 200, body: `\n${witness.cosign(note)}` };
    },
  ],
  [
    "a cosignature of another key",
    () => (_path, body) => ({
      status: 200,
      body: new TestWitness("a").cosign(`${body.slice(body.indexOf("\n\n") + 2).split("\n\n")[0]}\n`),
    }),
  ],
  ["a size that is not a number", () => () => ({ status: 409, type: "text/x.tlog.size", body: "-1\n" })],
  ["a size without its type", () => () => ({ status: 409, body: "2\n" })],
  [
    "the size that the gate sent",
    () => (_path, body) => ({ status: 409, type: "text/x.tlog.size", body: `${body.slice(4).split("\n")[0]}\n` }),
  ],
  [
    "another size each time",
    () => (_path, body) => ({
      status: 409,
      type: "text/x.tlog.size",
      body: `${(Number(body.slice(4).split("\n")[0]) + 1) % 3}\n`,
    }),
  ],
];

suite("a broken or hostile witness costs one line in the log and nothing else", () => {
  for (const [title, instead] of hostile) {
    test(`the gate logs one line about a witness that answers with ${title}`, async (t) => {
      const log = new FakeLog(origin).grow(3);
      const [good, bad] = [await witnessOf(t, "good", log), await witnessOf(t, "a", log)];
      bad.instead = instead(bad);
      const opened = anchorsOf(t, { log, witnesses: [bad, good], quorum: 1, folder: temporaryFolder(t) });
      await opened.anchors.start(true);
      assert.equal(opened.lines.length, 1, opened.lines.join("\n"));
      const line = opened.lines[0] ?? "";
      says(title, line, { KEY_ID: /\(([0-9a-f]{8})\)/.exec(line)?.[1] ?? "" });
      assert.equal(vouchedBy(opened, "witness w1"), undefined);
      assert.equal(opened.anchors.cosigned?.size, 3, "the other one counts");
    });
  }

  test("the gate leaves a failed witness alone for a while, whatever other witnesses do", async (t) => {
    const log = new FakeLog(origin).grow(1);
    const [good, bad] = [await witnessOf(t, "good", log), await witnessOf(t, "a", log)];
    bad.instead = () => ({ status: 500 });
    const given = { log, witnesses: [bad, good], quorum: 1, folder: temporaryFolder(t), retryMs: 600_000 };
    const opened = anchorsOf(t, given);
    await opened.anchors.start(true);
    for (const size of [2, 3, 4, 5]) {
      grow(opened, log, 1);
      await until(() => opened.anchors.cosigned?.size === size);
    }
    assert.equal(bad.requests.length, 1);
  });

  test("a witness that never answers delays neither other witnesses nor the end of the gate", async (t) => {
    const log = new FakeLog(origin).grow(3);
    const [good, silent] = [await witnessOf(t, "good", log), await witnessOf(t, "a", log)];
    const opened = anchorsOf(t, { log, witnesses: [silent, good], quorum: 1, folder: temporaryFolder(t), endMs: 100 });
    await opened.anchors.start(true);
    let requests = 0;
    silent.instead = () => {
      requests += 1;
      return undefined;
    };
    grow(opened, log, 4);
    await until(() => opened.anchors.cosigned?.size === 7 && requests > 0);
    await opened.anchors.close();
    assert.equal(vouchedBy(opened, "witness w1"), 3, "it was still being waited for");
  });
});

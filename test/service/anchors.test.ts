/**
 * Goal: anchors do not change a gate's answers, the gate shows who vouches for which row, and it does not start behind
 * them. Method: real gates with a witness and sinks of this test. A witness is stopped in the middle of its answer; the
 * order of events shows that nobody waits for it. The control for a refused start is a gate without anchors.
 * UPDATE_GOLDEN=1 rewrites the sentences.
 */
import assert from "node:assert/strict";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { openCheckpoint } from "../../packages/core/src/record/tree/checkpoint.ts";
import { policyText, TestWitness, until } from "../support/anchor-kit.ts";
import { command } from "../support/command.ts";
import { ask, check, desk, finish, startGate, temporaryFolder, type Running } from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const contracts = { "desk.yaml": desk };
const call = { tool_name: "note.add", tool_input: {} };

/** Three witnesses, of which two are enough, and the setting that names them. */
async function witnessesIn(t: TestContext, folder: string, quorum = 2): Promise<readonly TestWitness[]> {
  const witnesses = await Promise.all(["a", "b", "c"].map((name) => new TestWitness(name).start(t)));
  writeFileSync(join(folder, "policy"), policyText(witnesses, quorum));
  return witnesses;
}

function trustAll(witnesses: readonly TestWitness[], { ledger }: Running): void {
  for (const witness of witnesses) witness.trusted.set(ledger.name, ledger.verifiers);
}

interface Shown {
  readonly ok: boolean;
  readonly anchored: { readonly seq: number; readonly by: string } | null;
  readonly anchors: readonly { readonly seq: number; readonly by: string; readonly at: number | null }[];
}

async function verified(gate: Running): Promise<Shown> {
  return (await ask(gate, "/ledger/verify")).json as Shown;
}

suite("a gate with anchors", () => {
  test("the gate shows which anchors have seen which row, and the checkpoint that a quorum cosigned", async (t) => {
    const folder = temporaryFolder(t);
    const witnesses = await witnessesIn(t, folder);
    const heads = join(folder, "heads");
    const flags = {
      "witness-policy": join(folder, "policy"),
      sinks: `file:${heads}`,
      "anchor-every": "1",
      "ledger-name": "example.org/anchored",
      pin: join(folder, "elsewhere", "pin"),
    };
    const gate = await startGate(t, { folder, contracts, flags });
    assert.equal((await ask(gate, "/checkpoint?cosigned=1")).status, 404, "nobody knows the log yet");
    assert.equal((await ask(gate, "/checkpoint?cosigned=2")).status, 400);
    assert.equal((await ask(gate, "/checkpoint?cosign=1")).status, 400);
    trustAll(witnesses, gate);
    await check(gate, call);
    await check(gate, call);
    await until(() => gate.gate.anchors?.cosigned?.size === 2);
    await until(() => gate.gate.anchors?.vouched.filter(({ seq }) => seq === 2).length === 5);
    await until(() => gate.ledger.pin?.reading.seq === 2);
    const { ok, anchored, anchors } = await verified(gate);
    assert.deepEqual([ok, anchored], [true, { seq: 2, by: "head pin" }]);
    const expected = ["head pin", "quorum of witnesses", "file sink", "witness w1", "witness w2", "witness w3"];
    assert.deepEqual(anchors.map(({ by }) => by).toSorted(), expected.toSorted());
    assert.ok(anchors.every(({ seq, at, by }) => seq === 2 && (at === null) === (by === "head pin")));
    const cosigned = await ask(gate, "/checkpoint?cosigned=1");
    const keys = witnesses.map((witness) => witness.key);
    const opened = openCheckpoint(cosigned.text, gate.ledger.verifiers, keys);
    assert.ok(opened.ok && opened.value.size === 2 && opened.value.signed.length >= 3);
    assert.equal(
      readFileSync(heads, "utf8")
        .match(/^example\.org\/anchored\n\d+$/gm)
        ?.at(-1),
      "example.org/anchored\n2",
    );
  });

  test("the gate does not start if a witness or sink has seen more rows than the ledger", async (t) => {
    const folder = temporaryFolder(t);
    const witnesses = await witnessesIn(t, folder, 1);
    const flags = { "anchor-every": "1", "ledger-name": "example.org/anchored" };
    const policy = { ...flags, "witness-policy": join(folder, "policy") };
    const sinks = { ...flags, sinks: `file:${join(folder, "heads")}` };
    const data = join(folder, "data");
    const first = await startGate(t, { folder, contracts, flags: { ...policy, ...sinks } });
    trustAll(witnesses, first);
    await check(first, call);
    await first.stop();
    cpSync(data, join(folder, "copy"), { recursive: true });
    const second = await startGate(t, { folder, contracts, flags: { ...policy, ...sinks } });
    for (let more = 0; more < 3; more += 1) await check(second, call);
    await second.stop();
    assert.equal(second.gate.anchors?.cosigned?.size, 4, "the end of a gate tells them its last head");
    rmSync(data, { recursive: true });
    cpSync(join(folder, "copy"), data, { recursive: true });
    const refused = /\brow 1\b.*\b(?:witness w1|file sink)\b.*\brow 4\b/;
    await assert.rejects(startGate(t, { folder, contracts, flags: policy }), { message: refused });
    await assert.rejects(startGate(t, { folder, contracts, flags: sinks }), { message: refused });
    await assert.rejects(startGate(t, { folder, contracts, flags: { ...policy, accept: "anchors" } }), {
      message: refused,
    });
    const blind = await startGate(t, { folder, contracts, flags });
    assert.equal((await check(blind, call)).json.verdict, "ALLOW", "it would have gone on beside the lost rows");
    await blind.stop();
    await assert.rejects(startGate(t, { folder, contracts, flags: sinks }), {
      message: /\brow 2\b.*\bfile sink\b.*\brow 4\b/,
    });
  });

  test("the gate starts with fewer rows than a witness after its operator records the loss", async (t) => {
    const folder = temporaryFolder(t);
    const witnesses = await witnessesIn(t, folder, 1);
    const flags = { "anchor-every": "1", "witness-policy": join(folder, "policy") };
    const data = join(folder, "data");
    const first = await startGate(t, { folder, contracts, flags });
    trustAll(witnesses, first);
    await check(first, call);
    await first.stop();
    cpSync(data, join(folder, "copy"), { recursive: true });
    const second = await startGate(t, { folder, contracts, flags });
    await check(second, call);
    await second.stop();
    rmSync(data, { recursive: true });
    cpSync(join(folder, "copy"), data, { recursive: true });
    await assert.rejects(startGate(t, { folder, contracts, flags }), { message: /\bcheckpoint\b.*\brow 2\b/ });
    const resume = [
      "resume",
      "--after-restore",
      "--seen",
      join(data, "checkpoint.seen"),
      "--reason",
      "the disk is gone",
    ];
    const { code, stderr } = await command([...resume, "--data-dir", data]);
    assert.equal(code, 0, stderr);
    const resumed = await startGate(t, { folder, contracts, flags });
    assert.equal((await check(resumed, call)).status, 200);
    assert.ok(
      resumed.gate.anchors?.readings.every(({ isDiverged }) => isDiverged),
      "they take this ledger no more",
    );
    await resumed.stop();
  });

  test("the gate answers checks and stops without waiting for a slow witness", async (t) => {
    const folder = temporaryFolder(t);
    const witnesses = await witnessesIn(t, folder, 1);
    const flags = { "witness-policy": join(folder, "policy"), "anchor-every": "1" };
    const gate = await startGate(t, { folder, contracts, flags });
    const events: string[] = [];
    for (const witness of witnesses) {
      witness.instead = () => undefined;
      witness.onRequest = () => events.push("a witness is asked");
    }
    await check(gate, call);
    await until(() => events.length > 0);
    for (let more = 0; more < 20; more += 1) {
      assert.equal((await check(gate, call)).status, 200);
      events.push("a check is answered");
    }
    await gate.stop();
    events.push("the gate has stopped");
    assert.deepEqual([events[0], events.at(-1)], ["a witness is asked", "the gate has stopped"]);
    assert.equal(events.filter((event) => event === "a check is answered").length, 20);
    assert.ok(
      witnesses.every(({ requests }) =>
        requests.every((request) => request.endsWith("-> nothing") || request.endsWith(" 404")),
      ),
      "none of them ever answered",
    );
  });

  test("the gate anchors each tenant's ledger separately", async (t) => {
    const folder = temporaryFolder(t);
    const heads = join(folder, "heads");
    writeFileSync(join(folder, "tenants.yaml"), "tenants:\n  acme: { mandate: mandate.yaml, mode: enforce }\n");
    const flags = { tenants: join(folder, "tenants.yaml"), sinks: `file:${heads}`, "anchor-every": "1" };
    const gate = await startGate(t, { folder, contracts, flags });
    const operator = JSON.parse(readFileSync(join(folder, "data", "operator.json"), "utf8")) as {
      readonly key: string;
    };
    const made = await ask(gate, "/t/acme/admin/keys", {
      method: "POST",
      headers: { authorization: `Bearer ${operator.key}`, "content-type": "application/json" },
      body: JSON.stringify({ name: "agent", scopes: ["check", "receipts"] }),
    });
    const headers = { authorization: `Bearer ${made.json.key}`, "content-type": "application/json" };
    const answer = await ask(gate, "/t/acme/check", { method: "POST", headers, body: JSON.stringify(call) });
    assert.equal(answer.json.verdict, "ALLOW", answer.text);
    let shown: Shown | undefined;
    while (shown?.anchored?.by !== "file sink") shown = (await ask(gate, "/t/acme/ledger/verify", { headers })).json;
    const [origin, size] = readFileSync(`${heads}.acme`, "utf8").split("\n");
    assert.deepEqual([size, origin === gate.ledger.name], [String(shown.anchored.seq), false]);
  });
});

const wrong: readonly (readonly [readonly string[], string])[] = [
  [["--witness-policy", "none"], "policy-is-not-there"],
  [["--witness-policy", "policy"], "policy-cannot-be-used"],
  [["--sinks", "file:here"], "sink-without-its-whole-path"],
  [["--seen", "none"], "seen-is-not-there"],
  [["--seen", "policy"], "seen-without-a-checkpoint"],
];

test("a wrong setting of anchors stops the start with one sentence", async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, "policy"), "hello\n");
  for (const [args, name] of wrong) {
    const { code, stderr } = await finish(t, ["serve", "--port", "0", "--log", "silent", ...args], { cwd: folder });
    assert.equal(code, 2);
    says(name, stderr.trimEnd());
  }
});

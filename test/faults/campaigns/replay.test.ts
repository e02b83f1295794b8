/**
 * Goal: `replay` decides a recorded ledger again to the last character, across sessions, counters, restarts and changed
 * contracts. Method: random calls on all contracts of the repository go through gates that are started one after
 * another over one ledger, on a fast clock; then the commands run on their ledger. FIDELITY_RUNS sets how many calls.
 */
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, suite, test } from "node:test";
import { replayCommand, type ReplayCommandOptions } from "../../../packages/records/src/replay/command.ts";
import { loadFunctions, compileMandate, type PolicySet } from "../../../packages/readers/src/contract.ts";
import { Clock } from "../../../packages/gate/src/server/policy/clock.ts";
import { openGate } from "../../../packages/gate/src/server/service/gate.ts";
import { openLedger } from "../../../packages/gate/src/ledger/mod.ts";
import { good, modes, parseCheckRequest } from "../../../packages/core/src/wire/mod.ts";
import { openPack } from "../../support/contract-kit.ts";
import { control } from "../../support/controls/control.ts";
import { root } from "../../support/gate.ts";
import { Chance } from "../../support/model/chance.ts";
import { randomBody } from "../../support/random-call.ts";
import { printSeed, seedOf } from "../../support/random-test.ts";

const runs = Number(process.env["FIDELITY_RUNS"] ?? 3000);
const seed = seedOf("FIDELITY_SEED", 20_261_121);
const folder = mkdtempSync(join(tmpdir(), "svc-gate-replay-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const files = readdirSync(join(root, "contracts")).filter((name) => /(?<!\.test)\.yaml$/.test(name));
const texts = new Map(files.map((name) => [name, readFileSync(join(root, "contracts", name), "utf8")]));

/** Rules in observe mode, counters that come and go, and remembered names. */
const extra = `contract: extra
tools:
  note.add:
    input:
      type: object
      additionalProperties: false
      required: [to]
      properties: { to: { type: string, maxLength: 60 }, about: { type: array, items: { type: string, maxLength: 60 }, maxItems: 9 } }
    otherwise: ALLOW
counters:
  known: { of: note.add, per: session, counting: released, remembers: input.to }
  often: { of: note.add, per: [session, key], within: 10m }
  today: { of: note.add, per: gate, within: day, timezone: Europe/Berlin }
rules:
  - rule: stranger
    on: note.add
    when: "!(input.to in counters.known) && counters.often > 3"
    verdict: ESCALATE
    reason: "{input.to} is new"
  - { rule: talkative, on: note.add, when: counters.today > 20, mode: observe, verdict: BLOCK, reason: "{counters.today} notes" }
  - { rule: about, on: note.add, when: "input.?about.orValue([]).exists(x, x in counters.known)", verdict: BLOCK, reason: known }
`;

function policySet(names: readonly string[], settings = ""): PolicySet {
  const mandate = `mandate: all\ncontracts: [${names.join(", ")}]\n${settings}`;
  const compiled = compileMandate({ name: "mandate.yaml", text: mandate }, (name) => {
    const text =
      name === "extra.yaml" ? extra : name === "stricter.yaml" ? extra.replace("> 3", "> 1") : texts.get(name);
    return text === undefined ? openPack(name) : good({ name, text });
  });
  if (!compiled.ok) throw new Error(compiled.problem.map(({ message }) => message).join("\n"));
  return compiled.value;
}

/** The policy of each start: all contracts, fewer, all with a stricter one, other limits, all again. */
const stages: readonly (() => PolicySet)[] = [
  () => policySet([...files, "extra.yaml"]),
  () => policySet(files),
  () => policySet([...files, "stricter.yaml"]),
  () => policySet(["extra.yaml", "payments.yaml"], "limits: { payments: { per_payment_usd: 20 } }\n"),
  () => policySet([...files, "extra.yaml"]),
];

async function fill(data: string): Promise<void> {
  const chance = new Chance(seed);
  let now = Date.parse("2026-03-28T20:00:00Z");
  const source = { wall: () => now, monotonic: () => now };
  for (const [stage, inForce] of stages.entries()) {
    const contract = inForce();
    await loadFunctions(contract);
    const ledger = await openLedger({ folder: data, engine: "svc-gate/test" });
    const opened = await openGate({
      policySet: contract,
      ledger,
      clock: new Clock(source),
      mode: modes[stage % modes.length] ?? "enforce",
      onDefect: ({ rule, defect }) => assert.fail(`a defect in ${rule}: ${String(defect)}`),
    });
    assert.ok(opened.ok);
    const { gate } = opened.value;
    for (let done = 0; done < runs / stages.length;) {
      const bodies = Array.from({ length: chance.whole(1, 8) }, () => randomBody(chance, contract));
      done += bodies.length;
      now += chance.pick([1, 20, 900, 60_000, 400_000]);
      const keyName = chance.pick(["default", "other"]);
      await Promise.all(
        bodies.map(async (body) => {
          const parsed = parseCheckRequest(body);
          if (parsed.ok) await gate.check(parsed.value, { keyName, bytes: body.length, digest: "0".repeat(64) });
        }),
      );
    }
    await gate.drain();
    await ledger.close();
  }
}

const data = join(folder, "data");
const plain: ReplayCommandOptions = { examples: "3", json: true };

suite(`${runs} random checks, seed ${seed}`, async () => {
  await fill(data);

  test("replay decides each check again with the same verdict, rule, reason, trace and counters", async (t) => {
    printSeed(t, { cases: runs, seed, variable: "FIDELITY_SEED" });
    const { exitCode, text } = await replayCommand(data, plain);
    const found = JSON.parse(text);
    assert.deepEqual([exitCode, found.disagreements, found.shown, found.skipped], [0, 0, [], []], text.slice(0, 2000));
    assert.ok(found.agreed > runs * 0.9, `${found.agreed} of ${runs}`);
    console.log(`# ${found.agreed} receipts agree`);
  });

  control("positive control: a changed verdict, a missing receipt and a missing contract are noticed", async () => {
    const doctored: readonly (readonly [change: string, expected: RegExp])[] = [
      ["DELETE FROM contracts WHERE digest = (SELECT min(digest) FROM contracts)", /"skipped":\[\{/],
      [
        'UPDATE receipts SET leaf = replace(leaf, \'"verdict":"BLOCK"\', \'"verdict":"ALLOW"\') WHERE seq > 100',
        /"what":"verdict"/,
      ],
      [
        "DELETE FROM receipts WHERE seq = (SELECT min(seq) FROM receipts WHERE tool = 'note.add')",
        /"what":"(?:reason|trace|verdict)"/,
      ],
    ];
    for (const [change, expected] of doctored) {
      const copy = join(folder, "copy");
      cpSync(data, copy, { recursive: true });
      const database = new DatabaseSync(join(copy, "ledger.db"));
      database.exec(change);
      database.close();
      const { text } = await replayCommand(copy, plain);
      assert.match(text, expected, change);
      rmSync(copy, { recursive: true });
    }
  });

  test("replay with another contract reports changed verdicts by rule, tool and session, with examples", async () => {
    const other = join(folder, "mandate.yaml");
    cpSync(join(root, "contracts"), join(folder, "contracts"), { recursive: true });
    writeFileSync(
      other,
      "mandate: one\ncontracts: [contracts/payments.yaml]\nlimits: { payments: { per_payment_usd: 1 } }\n",
    );
    const { exitCode, text } = await replayCommand(data, { ...plain, contract: other, sum: "input.amount" });
    const found = JSON.parse(text);
    assert.equal(exitCode, 1);
    assert.equal(
      found.changed,
      found.changes.reduce((sum: number, { receipts }: { receipts: number }) => sum + receipts, 0),
    );
    for (const groups of [found.by_rule, found.by_tool, found.by_session])
      assert.equal(
        found.changed,
        groups.reduce((sum: number, { receipts }: { receipts: number }) => sum + receipts, 0),
      );
    assert.ok(
      found.changes.some(
        ({ was, wouldBe }: { was: string; wouldBe: string }) => was === "ALLOW" && wouldBe === "BLOCK",
      ),
    );
    const shown = await replayCommand(data, { ...plain, json: false, contract: other, sum: "input.amount" });
    assert.match(shown.text, /\n +was +.* +receipts +.*\binput\.amount\n/);
    assert.match(shown.text, /\nexamples\n {2}receipt [0-9]+: /);
  });
});

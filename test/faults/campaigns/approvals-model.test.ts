/**
 * Goal: approvals do what spec/approvals.md says, whatever happens in which order. Method: a second implementation,
 * written from the specification, counts everything again from a list of events. Random histories run through a gate on
 * SQLite; after each step the test compares every answer, every counter and the state of every approval. So do all
 * orders of the acts on one approval (rule R 15). Positive controls: planted defects. APPROVAL_RUNS sets how many
 * histories, APPROVAL_SEED which, APPROVAL_ORDERS how many acts each order has.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { promisify } from "node:util";
import { control } from "../../support/controls/control.ts";
import { temporaryFolder } from "../../support/gate.ts";
import { run, type Met } from "../../support/model/approvals/drive.ts";
import { kept, orders } from "../../support/model/approvals/kept.ts";
import { shrink, stepsOf, type Step } from "../../support/model/approvals/steps.ts";
import type { Mutation } from "../../support/mutation/mutate.ts";
import { mutatedEnvironment, preload } from "../../support/mutation/sources.ts";
import { printSeed, seedOf } from "../../support/random-test.ts";

const runs = Number(process.env["APPROVAL_RUNS"] ?? 100);
const seed = seedOf("APPROVAL_SEED");
const length = Number(process.env["APPROVAL_ORDERS"] ?? 3);

/** Runs a history on a ledger of its own. */
function once(t: TestContext, steps: readonly Step[], met?: Met): Promise<string | undefined> {
  return run(join(temporaryFolder(t), "data"), steps, met);
}

/** Fails with the shortest history that still shows a difference. */
async function agrees(t: TestContext, what: string, steps: readonly Step[], met?: Met): Promise<void> {
  const problem = await once(t, steps, met);
  if (problem === undefined) return;
  const shortest = await shrink(steps, async (fewer) => (await once(t, fewer)) !== undefined);
  const lines = shortest.map((step) => JSON.stringify(step)).join("\n");
  assert.fail(`${what}: ${problem}\nshortest history:\n${lines}\n${await once(t, shortest)}`);
}

suite("approvals and a second implementation agree", () => {
  for (const { name, steps } of kept) test(`gate and model agree on ${name}`, (t) => agrees(t, name, steps));

  test(`gate and model agree on ${runs} random histories from seed ${seed}`, async (t) => {
    printSeed(t, { cases: runs, seed, variable: "APPROVAL_SEED" });
    const met: Met = new Map();
    for (let each = seed; each < seed + runs; each += 1) await agrees(t, `seed ${each}`, stepsOf(each), met);
    t.diagnostic(JSON.stringify(Object.fromEntries([...met].toSorted(([one], [other]) => one.localeCompare(other)))));
  });

  test(`R15: every order of ${length} acts on an approval leaves the counters as a recount finds them`, async (t) => {
    const all = orders(length);
    for (let from = 0; from < all.length; from += 30)
      await agrees(t, `orders from ${from}`, all.slice(from, from + 30).flat());
    t.diagnostic(`${all.length} orders`);
  });

  test("the histories reach every answer that an approval can give", async (t) => {
    const met: Met = new Map();
    for (let each = 1; each <= 25; each += 1) assert.equal(await once(t, stepsOf(each), met), undefined);
    const answers = ["ALLOW used", "BLOCK closed", "BLOCK denied", "ESCALATE attached", "ESCALATE opened"];
    const acts = ["approve approved", "approve pending", "cancel cancelled", "deny denied", "erase", "reload assist"];
    const missing = [...answers, "ESCALATE capped", ...acts].filter((what) => !met.has(what));
    assert.deepEqual(missing, []);
  });
});

const defects: readonly { readonly name: string; readonly defect: Mutation }[] = [
  {
    name: "a batch overlooks an approval that it opened",
    defect: { within: "BatchCall.values", find: "!this.#batch.isEmpty", put: "false" },
  },
  {
    name: "an approval is used although a denial holds",
    defect: { within: "judgeCall", find: "denial.denials === 0", put: "false" },
  },
  {
    name: "a denied rule holds only for calls that it decides",
    defect: { within: "denialFor", find: "Object.hasOwn(causes, of.rule)", put: "Object.keys(causes)[0] === of.rule" },
  },
  {
    name: "a vote counts whose key the asker's person made",
    defect: { within: "sharedVoice", find: "voicesOf(voter)", put: "[voter.person]" },
  },
  {
    name: "an approval is used twice",
    defect: {
      within: "BatchApprovals.#close",
      find: "this.#approvals.set(approval.row, { ...approval, status });",
      put: "",
    },
  },
  { name: "an approval never expires", defect: { within: "statusAt", first: "return approval.status;" } },
  {
    name: "a hold outlives its approval",
    defect: { within: "ApprovalTables.keep", find: "for (const row of released) this.#release.run(row);", put: "" },
  },
  {
    name: "two votes of one maker are two voices",
    defect: { within: "quorumOf", find: "own.some($each)", put: "false" },
  },
  {
    name: "a person who has voted never votes again",
    defect: { within: "ApprovalDesk.#isAgain", find: "if (!isOpen(approval)) return true;", put: "return true;" },
  },
  {
    name: "a person who has voted votes again at any time",
    defect: { within: "ApprovalDesk.#isAgain", first: "return false;" },
  },
  {
    name: "a fact may move freely",
    defect: { within: "isNoRisk", find: "return counters && facts;", put: "return counters;" },
  },
  {
    name: "a counter may rise",
    defect: { within: "isNoRisk", find: "return counters && facts;", put: "return facts;" },
  },
  { name: "a pinned fact may change", defect: { within: "isWithin", find: "arePinned(now, shown)", put: "true" } },
  {
    name: "a session has no room of its own",
    defect: { within: "waitingIfFull", find: "if (open.session >= sessionMax) return open.session;", put: "" },
  },
  {
    name: "an approval that replaces another one shows less than the person reads",
    defect: { within: "BatchCall.judge", find: "isReplacing ? $fresh : asking", put: "asking" },
  },
  { name: "a repeat counts as an asking", defect: { within: "withoutOwn", first: "return value;" } },
];

/** Within how many random histories a defect must show. */
const historiesMax = 60;

suite("positive control: defects that the second implementation notices", { concurrency: 2 }, () => {
  const child = join(import.meta.dirname, "../../support/model/approvals/child.ts");
  for (const { name, defect } of defects) {
    control(`positive control: the defect "${name}" is noticed`, async (t) => {
      const env = { ...process.env, ...mutatedEnvironment([defect]) };
      const args = ["--import", preload, child, String(historiesMax)];
      const { stdout } = await promisify(execFile)(process.execPath, args, { env, timeout: 300_000 });
      t.diagnostic(stdout.slice(0, 160));
      assert.match(stdout, /^differs in history/);
    });
  }
});

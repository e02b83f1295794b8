/**
 * Goal: `svc-gate test` decides as a running gate does, whatever calls and decisions follow each other. Method: a random
 * session, from a printed seed, goes to a gate over HTTP. Its answers become the expectations of a test case, which must
 * pass. Positive control: the case fails if one expected answer is another.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { testCommand } from "../../packages/svc-gate/src/cli/test/command.ts";
import type { Outcome } from "../../packages/svc-gate/src/cli/outcome.ts";
import { payments, startDesk, type Desk } from "../support/approvals.ts";
import { temporaryFolder } from "../support/gate.ts";
import { Chance } from "../support/model/chance.ts";

const seed = Number(process.env["TRUTH_SEED"] ?? Date.now() % 1_000_000_000);
const rounds = 4;
const stepsOfRound = 40;

const persons = { anna: ["finance"], bob: ["finance", "legal"], cleo: ["legal"] };

/** Plays a random session on a gate, and returns its steps with what they came to, as lines of a test case. */
async function played(chance: Chance, desk: Desk): Promise<readonly object[]> {
  const ids: string[] = [];
  const steps: object[] = [];
  while (steps.length < stepsOfRound)
    steps.push(ids.length > 0 && chance.often(0.4) ? await decision(chance, desk, ids) : await call(chance, desk, ids));
  return steps;
}

async function call(chance: Chance, desk: Desk, ids: string[]): Promise<object> {
  const platform = { wallet: chance.pick(["w1", "w2"]), price: chance.pick([5, 11, 12]) };
  const input = { amount: chance.pick([10, 900, 1100, 1200]), to: chance.pick(["x", "often"]) };
  const session = chance.pick(["s1", "s2"]);
  const id = ids.length > 0 && chance.often(0.6) ? chance.pick(ids) : undefined;
  const { verdict, reason, approval } = await desk.asks({
    tool_name: "pay.send",
    tool_input: input,
    session_id: session,
    platform_state: platform,
    ...(id !== undefined && { approval: { id } }),
  });
  const isNew = approval?.new === true;
  if (isNew) ids.push(approval.id);
  const { status, new: opened, needs, has, next } = approval ?? {};
  return {
    tool: "pay.send",
    input,
    session,
    platform,
    ...(id !== undefined && { approval: nameOf(ids, id) }),
    ...(isNew && { as: nameOf(ids, approval.id) }),
    expect: {
      answered: verdict,
      // An id in a reason is the gate's own. The keys of all persons are new there, so they are one voice with one name.
      ...(!/apr_| approved this call/.test(reason) && { reason }),
      approval: approval === undefined ? null : { status, new: opened, needs, has, next },
    },
  };
}

async function decision(chance: Chance, desk: Desk, ids: readonly string[]): Promise<object> {
  const id = chance.pick(ids);
  const act = chance.often(0.75) ? "approve" : "deny";
  const person = chance.pick(Object.keys(persons));
  const { status, json } = await desk.decides(person, id, act);
  const comment = act === "deny" ? { comment: "not today" } : {};
  return { [act]: person, approval: nameOf(ids, id), ...comment, expect: status === 200 ? json.status : json.code };
}

const nameOf = (ids: readonly string[], id: string): string => `a${ids.indexOf(id)}`;

function tested(t: TestContext, steps: readonly object[]): Promise<Outcome> {
  const folder = temporaryFolder(t);
  const lines = steps.map((step) => `      - ${JSON.stringify(step)}\n`).join("");
  writeFileSync(join(folder, "pay.yaml"), payments);
  writeFileSync(
    join(folder, "pay.test.yaml"),
    `persons: ${JSON.stringify(persons)}\ncases:\n  - case: a random session\n    calls:\n${lines}`,
  );
  const options = { json: false, junit: undefined, coverage: false, min: undefined, filter: undefined, watch: false };
  return testCommand([folder], options);
}

suite(`random sessions with persons who decide (TRUTH_SEED=${seed})`, () => {
  for (let round = 0; round < rounds; round += 1)
    test(`session ${round + 1} of ${rounds}: a test case agrees with the gate`, async (t) => {
      const steps = await played(new Chance(seed + round), await startDesk(t, { persons }));
      const { exitCode, text } = await tested(t, steps);
      assert.equal(exitCode, 0, text);
      const wrong = steps.map((step, index) =>
        index === steps.length - 1 ? { ...step, expect: wrongOf(step) } : step,
      );
      assert.equal((await tested(t, wrong)).exitCode, 1, "positive control: another last answer is noticed");
    });
});

function wrongOf(step: object): unknown {
  if (!("tool" in step)) return "expect" in step && step.expect === "not-found" ? "pending" : "not-found";
  return { approval: { status: "capped" } };
}

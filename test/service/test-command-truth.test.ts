/**
 * Goal: `svc-gate test` decides as a running gate does, whatever calls, decisions and outcomes follow each other. Method:
 * a random session, from a printed seed, goes to a gate over HTTP. Its answers become the expectations of a test case,
 * which must pass. Positive control: the case fails if one expected answer is another.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { testCommand } from "../../packages/workbench/src/test/command.ts";
import type { Outcome } from "../../packages/gate/src/cli/outcome.ts";
import { payments, startDesk } from "../support/approvals.ts";
import { temporaryFolder } from "../support/gate.ts";
import { Chance } from "../support/model/chance.ts";
import { tillOf, type Till } from "../support/outcomes.ts";
import { printSeed, seedOf } from "../support/random-test.ts";

const seed = seedOf("TRUTH_SEED");
const rounds = 4;
const stepsOfRound = 60;

const persons = { anna: ["finance"], bob: ["finance", "legal"], cleo: ["legal"] };

const look = `  pay.look:
    input: { type: object, additionalProperties: false }
    requires: platform.present
    otherwise: ALLOW
`;
const paid = "  paid: { of: [pay.send], per: platform.wallet, sum: input.amount, counting: done, within: 24h }";
/** The payments of the approvals, with a budget that outcomes settle, and a tool whose answers show the counters. */
const contract = `${payments
  .replace("  pay.legal:", `${look}  pay.legal:`)
  .replace("within: 24h }", `within: 24h, settles: outcome }\n${paid}`)}  - rule: look
    on: [pay.look]
    when: counters.spent >= 0
    verdict: BLOCK
    reason: "{counters.spent} {counters.spent.held} {counters.paid}"
`;

/** A session on a gate so far. */
interface Session {
  readonly till: Till;
  /** By the name of the call that opened it. */
  readonly approvals: Map<string, string>;
  /** The answers of payments, by the names of their calls. */
  readonly answers: Map<string, any>;
}

/** Plays a random session on a gate, and returns its steps with what they came to, as lines of a test case. */
async function played(chance: Chance, till: Till): Promise<readonly object[]> {
  const session: Session = { till, approvals: new Map(), answers: new Map() };
  const steps: object[] = [];
  while (steps.length < stepsOfRound) {
    if (session.approvals.size > 0 && chance.often(0.3)) steps.push(await decision(chance, session));
    else if (session.answers.size > 0 && chance.often(0.4))
      steps.push(await outcome(chance, session), ...(await looks(till)));
    else steps.push(await call(chance, session));
  }
  return steps;
}

async function call(chance: Chance, { till, approvals, answers }: Session): Promise<object> {
  const platform = { wallet: chance.pick(["w1", "w2"]), price: chance.pick([5, 5, 5, 11, 12]) };
  const input = { amount: chance.pick([10, 40, 900, 1100, 1200]), to: chance.pick(["x", "often"]) };
  const session = chance.pick(["s1", "s2"]);
  const used = approvals.size > 0 && chance.often(0.6) ? chance.pick([...approvals.keys()]) : undefined;
  const answer = await till.asks({
    tool_name: "pay.send",
    tool_input: input,
    session_id: session,
    platform_state: platform,
    ...(used !== undefined && { approval: { id: approvals.get(used) } }),
  });
  const name = `c${answers.size}`;
  answers.set(name, answer);
  const { verdict, reason, approval } = answer;
  if (approval?.new === true) approvals.set(name, approval.id);
  const { status, new: opened, needs, has, next } = approval ?? {};
  return {
    tool: "pay.send",
    input,
    session,
    platform,
    as: name,
    ...(used !== undefined && { approval: used }),
    expect: {
      answered: verdict,
      // An id in a reason is the gate's own. The keys of all people are new there, so they are one voice with one name.
      ...(!/apr_| approved this call/.test(reason) && { reason }),
      approval: approval === undefined ? null : { status, new: opened, needs, has, next },
    },
  };
}

/** Reads the counters of both wallets. */
async function looks(till: Till): Promise<readonly object[]> {
  const steps: object[] = [];
  for (const wallet of ["w1", "w2"]) {
    const lookUp = { tool_name: "pay.look", tool_input: {}, session_id: "s1", platform_state: { wallet } };
    const { verdict, reason } = await till.asks(lookUp);
    steps.push({ tool: "pay.look", session: "s1", platform: { wallet }, expect: { answered: verdict, reason } });
  }
  return steps;
}

async function decision(chance: Chance, { till, approvals }: Session): Promise<object> {
  const [name, id] = chance.pick([...approvals]);
  const act = chance.often(0.75) ? "approve" : "deny";
  const person = chance.pick(Object.keys(persons));
  const { status, json } = await till.decides(person, id, act);
  const comment = act === "deny" ? { comment: "not today" } : {};
  return { [act]: person, approval: name, ...comment, expect: status === 200 ? json.status : json.code };
}

async function outcome(chance: Chance, { till, answers }: Session): Promise<object> {
  const passed = [...answers].filter(([, { verdict }]) => verdict === "ALLOW");
  const [name, answer] = chance.pick(passed.length > 0 && chance.often(0.8) ? passed : [...answers]);
  const by = chance.pick(["asker", "books"] as const);
  const state = chance.pick(["done", "failed", "unknown"]);
  const more = state === "done" && chance.often(0.6) ? { amount: chance.pick([0, 10, 450.5, 1300]) } : {};
  const { status, json } = await till.reports(by, answer, state, more);
  return {
    outcome: state,
    call: name,
    ...more,
    ...(by === "asker" && { key: "default" }),
    ...(status !== 200 && { expect: json.code }),
  };
}

function tested(t: TestContext, steps: readonly object[]): Promise<Outcome> {
  const folder = temporaryFolder(t);
  const lines = steps.map((step) => `      - ${JSON.stringify(step)}\n`).join("");
  writeFileSync(join(folder, "pay.yaml"), contract);
  writeFileSync(
    join(folder, "pay.test.yaml"),
    `persons: ${JSON.stringify(persons)}\ncases:\n  - case: a random session\n    calls:\n${lines}`,
  );
  const options = { json: false, junit: undefined, coverage: false, min: undefined, filter: undefined, watch: false };
  return testCommand([folder], options);
}

suite(`random sessions with people who decide and keys that report (TRUTH_SEED=${seed})`, () => {
  for (let round = 0; round < rounds; round += 1)
    test(`session ${round + 1} of ${rounds}: a test case agrees with the gate`, async (t) => {
      printSeed(t, { cases: stepsOfRound, seed, variable: "TRUTH_SEED" });
      const steps = await played(new Chance(seed + round), await tillOf(await startDesk(t, { contract, persons })));
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

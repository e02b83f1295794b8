/**
 * Goal: a grant by form covers no call that a naive model refuses. Method: random calls, of which a person grants some in a random
 * width; later calls differ in words, structure, members, facts or session, and the gate's answer is compared with the model's.
 * Positive control: gates with a planted defect.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startDesk, type Desk } from "../support/approvals.ts";
import { Dice } from "../support/campaign/random.ts";
import { control } from "../support/controls/control.ts";
import { printSeed, seedOf } from "../support/random-test.ts";
import {
  drawCall,
  drawLater,
  isOfForm,
  render,
  widthForms,
  type DrawnCall,
  type WidthName,
} from "../support/width-model.ts";

/** Everything that the table does not refuse waits for a person. */
const contract = `contract: shell
platform: { type: object, required: [cwd], properties: { cwd: { type: string }, user: { type: string } } }
approval: { unbound: [input.description] }
commands:
${widthForms.trim().replace(/^/gm, "  ")}
let: { run: "commands(input.command, platform.cwd)" }
tools:
  bash:
    input:
      type: object
      additionalProperties: false
      required: [command]
      properties:
        command: { type: string, maxLength: 4096 }
        description: { type: string }
        limit: { type: number }
        background: { type: boolean }
        more: {}
    requires: platform.present
    otherwise: ALLOW
rules:
  - rule: asks
    on: bash
    when: run.verdict != "BLOCK"
    verdict: ESCALATE
    approval: { grants: { by: form, at_most: 14d, uses: 10000, free: [input.limit] } }
    reason: "{run.reason}"
`;
const mandate = `mandate: m
contracts: [contracts/pay.yaml]
approvals: { open: { key: 10000, session: 10000, ledger: 10000 } }
`;
const laterMax = 20;

/** A command line with all else that a call has. */
interface WholeCall {
  readonly line: DrawnCall;
  readonly input: Readonly<Record<string, unknown>>;
  readonly platform: Readonly<Record<string, unknown>>;
  readonly session: string;
}

function drawWhole(dice: Dice, round: number): WholeCall {
  const input = dice.oneOf([{}, {}, { limit: 5 }, { background: true }, { more: { a: 1 } }, { description: "x" }]);
  return { line: drawCall(dice), input, platform: { cwd: "/srv/app" }, session: `s${round}` };
}

function drawChange(whole: WholeCall, dice: Dice): WholeCall {
  const { input, platform } = whole;
  const line = drawLater(whole.line, dice);
  if (dice.roll() < 0.7) return { ...whole, line };
  return dice.oneOf([
    { ...whole, line, input: { ...input, limit: 9 } },
    { ...whole, line, input: { ...input, description: "y" } },
    { ...whole, line, input: { ...input, background: true } },
    { ...whole, line, input: { ...input, background: undefined } },
    { ...whole, line, input: { ...input, more: { a: 2 } } },
    { ...whole, line, input: { ...input, more: { ...(input["more"] as object | undefined), b: 1 } } },
    { ...whole, line, platform: { ...platform, cwd: "/srv/other" } },
    { ...whole, line, platform: { ...platform, user: "eve" } },
    { ...whole, line, session: "other" },
  ]);
}

function body({ line, input, platform, session }: WholeCall): object {
  const tool_input = { command: render(line), ...input };
  return { tool_name: "bash", tool_input, platform_state: platform, session_id: session };
}

interface MadeGrant {
  readonly source: WholeCall;
  readonly width: WidthName;
  readonly anySession: boolean;
}

/** May the grant cover the call? */
function mayCover({ source, width, anySession }: MadeGrant, later: WholeCall): boolean {
  const rest = ({ input: { limit: _limit, description: _description, ...input }, platform }: WholeCall): string =>
    JSON.stringify([input, platform]);
  const isSameSession = anySession || source.session === later.session;
  return isSameSession && rest(source) === rest(later) && isOfForm(source.line, later.line, width);
}

/** Compares the gate's answers with the model's. @returns how many calls were covered, and how many not */
async function compares(desk: Desk, dice: Dice, rounds: number): Promise<{ covered: number; refused: number }> {
  const counts = { covered: 0, refused: 0 };
  for (let round = 0; round < rounds; round += 1) {
    const source = drawWhole(dice, round);
    const { approval } = await desk.asks(body(source));
    if (approval?.new !== true) continue;
    const { json: card } = await desk.as("anna", `/approvals/${approval.id}`);
    const { form } = card.grants_allowed;
    if (form === undefined) continue;
    const { name: width } = dice.oneOf<{ readonly name: WidthName }>(form.widths);
    const grant: MadeGrant = { source, width, anySession: dice.roll() < 0.3 };
    const wanted = { approval: approval.id, hash: card.hash, width, any_session: grant.anySession };
    const made = await desk.as("anna", "/grants", wanted);
    assert.equal(made.status, 201, made.text);
    for (let at = 0; at < laterMax; at += 1) {
      const later = drawChange(source, dice);
      const answer = await desk.asks(body(later));
      const isCovered = answer.approval?.status === "granted";
      assert.ok(!isCovered || mayCover(grant, later), `${width}: ${JSON.stringify([body(source), body(later)])}`);
      counts[isCovered ? "covered" : "refused"] += 1;
    }
    const ended = await desk.as("anna", `/grants/${made.json.id}/revoke`, {});
    assert.equal(ended.status, 200, ended.text);
  }
  return counts;
}

test("of random calls none is covered that the model refuses", async (t) => {
  const [rounds, seed] = [Number(process.env["GRANT_ROUNDS"] ?? 500), seedOf("GRANT_SEED")];
  printSeed(t, { cases: rounds * laterMax, seed, variable: "GRANT_SEED" });
  const { covered, refused } = await compares(await startDesk(t, { contract, mandate }), new Dice(seed), rounds);
  t.diagnostic(`${covered} calls were covered, and ${refused} were not`);
  assert.ok(covered > rounds && refused > rounds, `${covered} covered, ${refused} not`);
});

const defects = [
  { within: "isOfForm", find: "call.forms[width] === digest", put: "true" },
  { within: "isOfForm", find: "call.rest([...free, member]) === rest", put: "true" },
  { within: "allElseText", first: "return String(platform === undefined) + charactersOf(without.length);" },
  { within: "coveredAmounts", find: "call.session === grant.place", put: "true" },
];
for (const defect of defects)
  control(`positive control: the model notices ${JSON.stringify(defect)}`, async (t) => {
    const desk = await startDesk(t, { contract, mandate, defects: [defect] });
    await assert.rejects(() => compares(desk, new Dice(7), 60), assert.AssertionError);
  });

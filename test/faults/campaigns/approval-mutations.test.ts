/**
 * Goal: an approval lets exactly the call through that a person was shown. Method: random changes of one approved call
 * name its approval, each in a session of its own. None is let through, and each row says that the approval did not
 * match. Positive control: a gate that does not compare the binding. MUTATIONS and MUTATION_SEED set how many and which.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Dice } from "../../support/campaign/random.ts";
import { startDesk, type Desk } from "../../support/approvals.ts";
import { control } from "../../support/controls/control.ts";
import { ask, key } from "../../support/gate.ts";
import type { Mutation } from "../../support/mutation/mutate.ts";
import { printSeed, seedOf } from "../../support/random-test.ts";

const wanted = Number(process.env["MUTATIONS"] ?? 1000);
const seed = seedOf("MUTATION_SEED");

/** Every call of the tools waits for a person, so nothing but an approval can allow it. */
const contract = `contract: any
platform:
  type: object
  required: [wallet]
  properties: { wallet: { type: string }, clock: { type: number } }
tools:
  t.pay:
    input: { type: object, additionalProperties: true }
    requires: platform.present
    otherwise: ESCALATE
  t.send:
    input: { type: object, additionalProperties: true }
    requires: platform.present
    otherwise: ESCALATE
subject: [platform.wallet]
`;
const mandate = `mandate: any
contracts: [contracts/pay.yaml]
approvals: { open: { key: 10000, session: 10000, ledger: 10000 } }
`;

/** JSON in which a number has its characters, and an object keeps its order. */
type Json = string | boolean | null | Num | readonly Json[] | Members;
interface Num {
  readonly num: string;
}
type Members = ReadonlyMap<string, Json>;

const input: Members = new Map<string, Json>([
  ["to", "anna"],
  ["amount", { num: "1200.5" }],
  ["lines", [{ num: "1" }, { num: "2" }, new Map([["sku", "a-1"]])]],
  ["deep", new Map<string, Json>([["a", new Map<string, Json>([["b", "x\\u00e9"]])]])],
  ["urgent", true],
  ["note", null],
]);

interface Call {
  readonly tool: string;
  readonly input: Members;
  readonly session: string;
  readonly wallet: string;
}

const base: Call = { tool: "t.pay", input, session: "s0", wallet: "w" };

function textOf(value: Json): string {
  if (value instanceof Map)
    return `{${[...value].map(([name, of]) => `${JSON.stringify(name)}:${textOf(of)}`).join(",")}}`;
  if (Array.isArray(value)) return `[${value.map(textOf).join(",")}]`;
  return isNumber(value) ? value.num : JSON.stringify(value);
}

function isNumber(value: Json): value is Num {
  return typeof value === "object" && value !== null && "num" in value;
}

function bodyOf({ tool, input: of, session, wallet }: Call, approval?: string): string {
  const id = approval === undefined ? "" : `,"approval":{"id":${JSON.stringify(approval)}}`;
  const names = `"tool_name":${JSON.stringify(tool)},"session_id":${JSON.stringify(session)}`;
  return `{${names},"tool_input":${textOf(of)},"platform_state":{"wallet":${JSON.stringify(wallet)}}${id}}`;
}

/** Returns another value: another spelling of a number is one. */
function otherValue(dice: Dice, value: Json): Json {
  if (value instanceof Map) return otherMembers(dice, value);
  if (Array.isArray(value)) return otherList(dice, value);
  if (isNumber(value)) {
    const spellings = [`${value.num}0`, `${value.num}e0`, `-${value.num}`, `1${value.num}`, `${value.num}1`];
    return { num: dice.oneOf(value.num.includes(".") ? spellings : spellings.slice(1)) };
  }
  if (typeof value === "string")
    return dice.oneOf([`${value} `, value.toUpperCase() + "!", `${value}\u0000`, `\ufeff${value}`, ""]);
  return dice.oneOf([value === null ? false : null, { num: "0" }, "true", [], new Map()]);
}

function otherList(dice: Dice, list: readonly Json[]): Json {
  const at = Math.floor(dice.between(0, list.length));
  const changed = list.map((each, index) => (index === at ? otherValue(dice, each) : each));
  return dice.oneOf([changed, list.slice(1), [...list, null], list.toReversed(), [list]]);
}

function otherMembers(dice: Dice, members: Members): Members {
  const entries = [...members];
  const at = Math.floor(dice.between(0, entries.length));
  const [name, value] = entries[at] ?? ["", null];
  const changed = entries.map((each, index): [string, Json] => (index === at ? [name, otherValue(dice, value)] : each));
  const renamed = entries.map((each, index): [string, Json] => (index === at ? [`${name} `, value] : each));
  const others = [
    changed,
    changed,
    changed,
    renamed,
    entries.filter((_, index) => index !== at),
    [...entries, ["more", null]],
  ];
  return new Map(dice.oneOf(others as readonly (readonly [string, Json][])[]));
}

function otherCall(dice: Dice, session: string): Call {
  const call = { ...base, session };
  const kind = Math.floor(dice.between(0, 10));
  if (kind === 0) return { ...call, tool: "t.send" };
  if (kind === 1) return { ...call, wallet: dice.oneOf(["W", "w ", "", "w2"]) };
  return kind === 2 ? call : { ...call, input: otherMembers(dice, input) };
}

/** @returns the changed calls that were let through, or whose row does not say that the approval did not match */
async function missed(desk: Desk, count: number): Promise<readonly string[]> {
  const { id } = (await asks(desk, bodyOf(base))).approval;
  assert.equal((await desk.decides("anna", id, "approve")).json.status, "approved");
  const dice = new Dice(seed);
  const found: string[] = [];
  for (let each = 1; each <= count; each += 1) {
    const body = bodyOf(otherCall(dice, `s${each}`), id);
    const { verdict, receipt } = await asks(desk, body);
    const { asked } = await desk.outcomeOf(receipt.seq);
    if (verdict !== "ESCALATE" || asked?.mismatch !== true) found.push(`${verdict} ${JSON.stringify(asked)}: ${body}`);
  }
  assert.equal((await asks(desk, bodyOf(base, id))).verdict, "ALLOW", "the approval was open the whole time");
  return found;
}

async function asks(desk: Desk, body: string): Promise<any> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const { status, json, text } = await ask(desk, "/check", { method: "POST", headers, body });
  assert.equal(status, 200, `${text}: ${body}`);
  return json;
}

test(`[issue 16] ${wanted} changes of an approved call are not let through (seed ${seed})`, async (t) => {
  printSeed(t, { cases: wanted, seed, variable: "MUTATION_SEED" });
  const desk = await startDesk(t, { contract, mandate });
  assert.deepEqual(await missed(desk, wanted), []);
});

control("positive control: a gate that does not compare the binding is noticed", async (t) => {
  const unbound: Mutation = {
    within: "misfitsOf",
    find: "asking.binding === ask.binding(asking.sessions)",
    put: "true",
  };
  const desk = await startDesk(t, { contract, mandate, defects: [unbound] });
  assert.ok((await missed(desk, 5).catch(() => ["the approval was used by another call"])).length > 0);
});

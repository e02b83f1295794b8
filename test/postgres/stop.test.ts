/**
 * Goal: after the 200 of a stop at the root, no gate on the database answers ALLOW in its scope, in the root's ledger or in
 * a tenant's, from the stop's row on. Method: two gates answer checks of the root and of tenants without a pause, while
 * stops are set on one of them and lifted again. Positive control: a gate that does not read the root's stops.
 *
 * STOP_ROUNDS sets the number of stops, STOP_TENANTS the number of tenants.
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { after, suite, test, type TestContext } from "node:test";
import { control } from "../support/controls/control.ts";
import { ask, key, spawnGate, startGate, temporaryFolder, type Answer } from "../support/gate.ts";
import type { Mutation } from "../support/mutation/mutate.ts";
import { mutatedEnvironment, preload } from "../support/mutation/sources.ts";
import { openDatabase, type TestDatabase } from "../support/databases.ts";
import { eventually } from "../support/patience.ts";

const rounds = Number(process.env["STOP_ROUNDS"] ?? 12);
const tenants = Array.from({ length: Number(process.env["STOP_TENANTS"] ?? 3) }, (_, at) => `t${at + 1}`);
/** Tenants that are asked in each round. */
const sampleMax = 3;

const server = await openDatabase({ after });
/** Gates that share ledgers share the key that signs their heads. */
const keyFile = join(temporaryFolder({ after }), "signing.key");
const call = { tool_name: "door.open", tool_input: {} };
const contract = `contract: desk
tools:
  door.open: { input: { type: object, additionalProperties: true }, otherwise: ALLOW }
`;

interface Peer {
  readonly address: string;
}

interface Pair {
  readonly gates: readonly [Peer, Peer];
  /** Posts to a gate as its operator: 0 is the first gate, and 1 the second. */
  readonly operates: (path: string, body: object, at?: 0 | 1) => Promise<Answer>;
  /** The verdict of a check on the root, or on a tenant. */
  readonly asks: (gate: Peer, tenant?: string) => Promise<string>;
  readonly reads: (path: string, tenant?: string) => Promise<any>;
}

function post(gate: Peer, path: string, bearer: string, body: object): Promise<Answer> {
  const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" };
  return ask(gate, path, { method: "POST", headers, body: JSON.stringify(body) });
}

function operatorOf(folder: string): string {
  return JSON.parse(readFileSync(join(folder, "data", "operator.json"), "utf8")).key;
}

/** Starts two gates on a database. With a defect, the second is a process of its own. */
async function startPair(t: TestContext, there: TestDatabase, defect?: Mutation): Promise<Pair> {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, "own"));
  writeFileSync(join(folder, "own", "desk.yaml"), contract);
  writeFileSync(
    join(folder, "tenants.yaml"),
    `tenants:\n${tenants.map((id) => `  ${id}: { mandate: own/desk.yaml, mode: enforce }\n`).join("")}`,
  );
  const flags = {
    "database-url": there.url(),
    "signing-key": keyFile,
    log: "error",
    tenants: join(folder, "tenants.yaml"),
    mandate: join(folder, "own", "desk.yaml"),
    mode: "enforce",
  };
  const first = await startGate(t, { folder, flags });
  const other = temporaryFolder(t);
  const env = Object.fromEntries(
    Object.entries(flags).map(([name, value]) => [`SVC_${name.toUpperCase().replaceAll("-", "_")}`, value]),
  );
  const second: Peer =
    defect === undefined
      ? await startGate(t, { folder: other, flags })
      : await spawnGate(t, [], {
          cwd: other,
          env: { ...env, ...mutatedEnvironment([defect]), SVC_API_KEY: key, SVC_DATA_DIR: join(other, "data") },
          preload: [preload],
        });
  const keys = new Map<string | undefined, string>([[undefined, key]]);
  const name = `agent-${basename(folder).toLowerCase()}`; // The tests share the database.
  for (const id of tenants) {
    const scopes = ["check", "receipts"];
    const made = await post(first, `/t/${id}/admin/keys`, operatorOf(folder), { name, scopes });
    keys.set(id, made.json.key ?? assert.fail(made.text));
  }
  const gates = [first, second] as const;
  const pathOf = (path: string, tenant?: string): string => (tenant === undefined ? path : `/t/${tenant}${path}`);
  const asks: Pair["asks"] = async (gate, tenant) => {
    const { json, text } = await post(gate, pathOf("/check", tenant), keys.get(tenant) ?? "", call);
    return json.verdict ?? assert.fail(text);
  };
  // The second gate reads new keys once a second.
  const last = tenants.at(-1) ?? "";
  const isKnown = async (): Promise<boolean> =>
    (await post(second, pathOf("/check", last), keys.get(last) ?? "", call)).status === 200;
  await eventually("the new keys at the second gate", isKnown);
  return {
    gates,
    asks,
    operates: (path, body, at = 0) => post(gates[at], path, operatorOf([folder, other][at] ?? folder), body),
    reads: async (path, tenant) => {
      const headers = { authorization: `Bearer ${keys.get(tenant) ?? ""}` };
      return (await ask(first, pathOf(path, tenant), { headers })).json;
    },
  };
}

/** Asks without a pause until the signal ends it. */
async function load({ asks, gates }: Pair, signal: AbortSignal): Promise<void> {
  for (let n = 0; !signal.aborted; n += 1) await asks(gates[n % 2] as Peer, [undefined, ...tenants.slice(0, 3)][n % 4]);
}

async function stopsAndLifts(pair: Pair, round: number): Promise<void> {
  const { asks, gates, operates } = pair;
  const scope = round % 2 === 0 ? "all" : { tools: ["door.open"] };
  const stopped = await operates("/admin/stop", { scope, why: `round ${round}` });
  assert.equal(stopped.status, 200, stopped.text);
  assert.deepEqual(stopped.json.ledgers, [null, ...tenants]);
  const from = (round * sampleMax) % tenants.length;
  const sample = [undefined, ...tenants.slice(from, from + sampleMax)];
  const verdicts = await Promise.all(sample.flatMap((tenant) => gates.map((gate) => asks(gate, tenant))));
  assert.deepEqual(new Set(verdicts), new Set(["BLOCK"]), `round ${round}`);
  const lifted = await operates("/admin/stop/lift", { scope });
  assert.equal(lifted.status, 200, lifted.text);
  assert.equal(await asks(gates[0], sample.at(-1)), "ALLOW");
}

/** Every check between the row of a stop and the row of its end must be blocked, and every other allowed. */
async function assertRows({ reads }: Pair, tenant: string | undefined): Promise<void> {
  let before = Number.MAX_SAFE_INTEGER;
  let isStopped: boolean | undefined;
  const answers: (readonly [string, boolean | undefined])[] = [];
  const rows: any[] = [];
  for (;;) {
    const { receipts, next } = await reads(`/receipts?kind=all&limit=1000&before=${before}`, tenant);
    rows.push(...receipts);
    if (next === null || next === undefined) break;
    before = next;
  }
  for (const { act, answered } of rows.toReversed()) {
    if (act === "stop.set" || act === "stop.lift") isStopped = act === "stop.set";
    else if (answered !== null && answered !== undefined) answers.push([answered, isStopped === true]);
  }
  const wrong = answers.filter(([answered, stopped]) => (answered === "BLOCK") !== stopped);
  assert.deepEqual(wrong, [], `${wrong.length} of ${answers.length} rows of ${tenant ?? "the root"}`);
  assert.ok(answers.length > 0);
  const verified = await reads("/ledger/verify", tenant);
  assert.equal(verified.broken ?? null, null, JSON.stringify(verified));
}

if (typeof server === "string") test("PostgreSQL: stops", { skip: server }, () => undefined);
else
  suite("stops on two gates with tenants", () => {
    test("C24: after the stop's 200 no row of any ledger is answered ALLOW on either gate", async (t) => {
      const pair = await startPair(t, server);
      const ended = new AbortController();
      const loads = [load(pair, ended.signal), load(pair, ended.signal)];
      try {
        for (let round = 0; round < rounds; round += 1) await stopsAndLifts(pair, round);
      } finally {
        ended.abort();
      }
      await Promise.all(loads);
      for (const tenant of [undefined, ...tenants.slice(0, 50)]) await assertRows(pair, tenant);
    });

    control("positive control: a gate whose tenants do not read the root's stops is noticed", async (t) => {
      const defect = {
        within: "missingActs",
        find: "if (root.acts.length === 0) return root.acts;",
        put: "return [];",
      };
      const pair = await startPair(t, server, defect);
      // This check records the acts that earlier tests left to follow: the second gate would not.
      assert.equal(await pair.asks(pair.gates[0], tenants[0]), "ALLOW");
      // The first gate gets no call from here on: its row in the tenant's ledger would stop the second one too.
      assert.equal((await pair.operates("/admin/stop", { scope: "all", why: "control" }, 1)).status, 200);
      assert.equal(await pair.asks(pair.gates[1], tenants[0]), "ALLOW");
      assert.equal((await pair.operates("/admin/stop/lift", { scope: "all" }, 1)).status, 200);
    });
  });

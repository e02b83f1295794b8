import assert from "node:assert/strict";
import { cpSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { control } from "./controls/control.ts";
import { command } from "./command.ts";
import {
  ask,
  check,
  key,
  spawnGate,
  startGate,
  temporaryFolder,
  writeContracts,
  type Answer,
  type GateOptions,
} from "./gate.ts";
import type { Mutation } from "./mutation/mutate.ts";
import { readExposition } from "./exposition.ts";
import { controlPatienceMs, patienceMs } from "./patience.ts";
import { mutatedEnvironment, preload } from "./mutation/sources.ts";

/** Payments that a person decides if they are large, within a budget that counts what waits. */
export const payments = `contract: pay
platform:
  type: object
  required: [wallet]
  properties: { wallet: { type: string }, price: { type: number }, clock: { type: number } }
tools:
  pay.send:
    input:
      type: object
      additionalProperties: false
      required: [amount, to]
      properties:
        amount: { type: number, minimum: 0 }
        to: { type: string }
        note: { type: string }
        extra: {}
    requires: platform.present
    approval: { unbound: [input.note], use_within: 5m }
    otherwise: ALLOW
  pay.legal:
    input: { type: object, additionalProperties: true }
    approval: { by: [legal], of: 2, batch: false }
    otherwise: ESCALATE
counters:
  spent: { of: [pay.send], per: platform.wallet, sum: input.amount, counting: possible, within: 24h }
  tries: { of: [pay.send], per: platform.wallet, within: 24h }
rules:
  - rule: budget
    on: [pay.send]
    when: counters.spent + input.amount > 2500
    verdict: BLOCK
    final: true
    reason: "{counters.spent} is spent"
  - { rule: odd, on: [pay.send], when: input.to == "nobody", verdict: BLOCK, reason: nobody gets money }
  - rule: large
    on: [pay.send]
    when: input.amount > 1000
    verdict: ESCALATE
    approval: { by: [finance] }
    reason: "{input.amount} is a large payment"
  - rule: many
    on: [pay.send]
    when: input.to == "often" && counters.tries > 0
    verdict: ESCALATE
    reason: "{counters.tries} were tried"
  - rule: dear
    on: [pay.send]
    when: platform.?price.orValue(0) > 10
    verdict: ESCALATE
    approval: { drift: 1 }
    reason: "the price {platform.?price} is high"
`;

export const large = {
  tool_name: "pay.send",
  tool_input: { amount: 1200, to: "anna" },
  session_id: "s1",
  platform_state: { wallet: "w" },
};

/** A payment that no person must decide. */
export const small = { ...large, tool_input: { amount: 5, to: "anna" } };

/** Makes the batches of a control slow, so that calls which arrive meanwhile share the next one. */
export const slowBatches: Mutation = {
  within: "decideBatch",
  first: "await new Promise((resolve) => setTimeout(resolve, 300));",
};

/** A gate with people who decide. */
export interface Desk {
  readonly address: string;
  /** How long to wait for what it does; short if it has a planted defect. */
  readonly patienceMs: number;
  readonly folder: string;
  readonly keys: Readonly<Record<string, string>>;
  /** Asks about a call, with the first key unless another is given. */
  readonly asks: (call: object, agent?: string) => Promise<any>;
  /** Sends a request with a person's key. */
  readonly as: (person: string, path: string, body?: object) => Promise<Answer>;
  /** Decides an approval, with the hash that the gate shows. */
  readonly decides: (person: string, id: string, decision: "approve" | "deny", body?: object) => Promise<Answer>;
  readonly operates: (path: string, body: object) => Promise<Answer>;
  /** The evidence of a row's outcome. */
  readonly outcomeOf: (seq: number) => Promise<any>;
  /** The number of rows. */
  readonly rows: () => Promise<number>;
  readonly stop: () => Promise<void>;
  /** Ends a gate that runs as a process without any cleanup; another gate stops. */
  readonly kill: () => Promise<void>;
}

export interface DeskOptions {
  readonly folder?: string;
  readonly contract?: string;
  readonly mandate?: string;
  readonly mode?: string;
  /** The groups of each person. */
  readonly persons?: Readonly<Record<string, readonly string[]>>;
  /** The scopes of the people's keys. */
  readonly scopes?: readonly string[];
  /** Defects: the gate then runs as a process of its own. */
  readonly defects?: readonly Mutation[];
  /** Settings. A gate on a shared database, or with other variables than its own, runs as a process. */
  readonly env?: Readonly<Record<string, string>>;
  /** True for a gate that must be a process, because it is killed or has a port of its own. */
  readonly isProcess?: boolean;
  /** The port of a gate that runs as a process; a free one by default. */
  readonly port?: string;
  /** A gate on the same database: its people's keys work here too. */
  readonly peer?: Desk;
}

/** Starts a gate that parks large payments, and makes a key for each person. */
export async function startDesk(t: TestContext, options: DeskOptions = {}): Promise<Desk> {
  const folder = options.folder ?? temporaryFolder(t);
  const files = {
    contracts: { "pay.yaml": options.contract ?? payments },
    ...(options.mandate !== undefined && { mandate: options.mandate }),
  };
  const mode = options.mode ?? "enforce";
  const { address, stop, kill } = canRunHere(options)
    ? await startHere(t, { folder, ...files, flags: { mode }, env: options.env ?? {} })
    : await startProcess(t, folder, { ...options, mode, mandate: writeContracts(folder, files) });
  const operator = JSON.parse(readFileSync(join(folder, "data", "operator.json"), "utf8")).key as string;
  const post = (by: string, path: string, body: object): Promise<Answer> =>
    ask({ address }, path, {
      method: "POST",
      headers: { authorization: `Bearer ${by}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const keys: Record<string, string> = { ...options.peer?.keys };
  const persons = options.persons ??
    (options.peer && {}) ?? { anna: ["finance"], bob: ["finance", "legal"], cleo: ["legal"] };
  for (const [person, groups] of Object.entries(persons)) {
    await post(operator, "/admin/persons", { name: person });
    const scopes = options.scopes ?? ["approve", "receipts"];
    const made = await post(operator, "/admin/keys", { name: `${person}-laptop`, scopes, person, groups });
    assert.equal(made.status, 201, made.text);
    keys[person] = made.json.key;
  }
  const as: Desk["as"] = (person, path, body) => {
    const own = keys[person] ?? assert.fail(`${person} has no key`);
    const authorization = `Bearer ${own}`;
    return body === undefined ? ask({ address }, path, { headers: { authorization } }) : post(own, path, body);
  };
  return {
    address,
    patienceMs: (options.defects ?? []).length === 0 ? patienceMs : controlPatienceMs,
    folder,
    keys,
    as,
    stop,
    kill,
    asks: async (call, agent) => {
      const answer = await check({ address }, call, agent === undefined ? {} : { authorization: `Bearer ${agent}` });
      assert.equal(answer.status, 200, answer.text);
      return answer.json;
    },
    decides: async (person, id, decision, body = {}) => {
      const { json } = await as(person, `/approvals/${id}`);
      const comment = decision === "deny" ? { comment: "not today" } : {};
      return as(person, `/approvals/${id}/${decision}`, { hash: json.hash, ...comment, ...body });
    },
    operates: (path, body) => post(operator, path, body),
    outcomeOf: async (seq) => {
      const { json } = await ask({ address }, `/receipts/${seq}`);
      const parts = (json.evidence as readonly string[]).map((part) =>
        JSON.parse(Buffer.from(part, "base64url").toString()),
      );
      return parts.find((part: readonly unknown[]) => part[1] === "outcome")?.[2];
    },
    rows: async () => (await ask({ address }, "/ledger/verify")).json.rows,
  };
}

function canRunHere({ defects = [], env = {}, isProcess = false }: DeskOptions): boolean {
  return !isProcess && defects.length === 0 && Object.keys(env).every((name) => /^SVC_(?!DATABASE_)/.test(name));
}

async function startHere(t: TestContext, options: GateOptions): Promise<Pick<Desk, "address" | "kill" | "stop">> {
  const gate = await startGate(t, options);
  return { ...gate, kill: () => gate.stop() };
}

async function startProcess(
  t: TestContext,
  folder: string,
  {
    mandate,
    mode,
    defects = [],
    env: more = {},
    port,
  }: DeskOptions & { readonly mandate: string; readonly mode: string },
): Promise<Pick<Desk, "address" | "kill" | "stop">> {
  const env = {
    ...(defects.length > 0 && mutatedEnvironment(defects)),
    SVC_API_KEY: key,
    SVC_MODE: mode,
    SVC_MANDATE: mandate,
    SVC_DATA_DIR: join(folder, "data"),
    SVC_LOG: "silent",
    ...more,
  };
  const gate = await spawnGate(t, port === undefined ? [] : ["--port", port], {
    cwd: folder,
    env,
    preload: defects.length > 0 ? [preload] : [],
  });
  return {
    address: gate.address,
    stop: async () => {
      gate.kill("SIGTERM");
      await gate.exit;
    },
    kill: async () => {
      gate.kill("SIGKILL");
      await gate.exit;
    },
  };
}

/** Works with the ledger of a gate again, loses the rows of that work, and resumes the ledger without them. */
export async function losesRows(t: TestContext, desk: Desk, work: (again: Desk) => Promise<unknown>): Promise<void> {
  const { folder } = desk;
  const [ledger, older] = [join(folder, "data", "ledger.db"), join(folder, "older.db")];
  await desk.stop();
  cpSync(ledger, older);
  const again = await startDesk(t, { folder, persons: {} });
  await work(again);
  await again.stop();
  renameSync(older, ledger);
  const args = ["resume", "--after-restore", "--reason", "the disk died", "--by", "Ada"];
  const { code, stderr } = await command([...args, "--data-dir", join(folder, "data")]);
  assert.equal(code, 0, stderr);
}

/** Asks about the large payment, and lets a person approve it. */
export async function approved(desk: Desk, call: object = large): Promise<string> {
  const parked = await desk.asks(call);
  assert.equal(parked.verdict, "ESCALATE");
  const { status, json, text } = await desk.decides("anna", parked.approval.id, "approve");
  assert.equal(status, 200, text);
  assert.equal(json.status, "approved");
  return parked.approval.id;
}

/** Asserts that the running gate verifies its ledger, and that `verify`, `verify --deep` and `replay` accept it afterwards. */
export async function assertLedgerValid(desk: Desk): Promise<void> {
  const { json } = await ask(desk, "/ledger/verify");
  assert.equal(json.ok, true, JSON.stringify(json));
  await desk.stop();
  const data = join(desk.folder, "data");
  for (const args of [
    ["verify", data],
    ["verify", "--deep", data],
    ["replay", data],
  ]) {
    const { code, stdout, stderr } = await command(args);
    assert.equal(code, 0, `${args.join(" ")}: ${stdout}${stderr}`);
  }
}

/** A call that names an approval. */
export const naming = (id: string, call: object = large): object => ({ ...call, approval: { id } });

const metricsKeys = new WeakMap<Desk, Promise<Answer>>();

/** Reads the metrics about approvals, with a key that may only read metrics. */
export async function approvalMetrics(desk: Desk): Promise<Readonly<Record<string, number>>> {
  const made = metricsKeys.get(desk) ?? desk.operates("/admin/keys", { name: "prometheus", scopes: ["metrics"] });
  metricsKeys.set(desk, made);
  const headers = { authorization: `Bearer ${(await made).json.key}` };
  const families = readExposition((await ask(desk, "/metrics", { headers })).text);
  const samples = [...families.values()].flatMap((family) => family.samples);
  return Object.fromEntries(
    samples
      .filter(({ name }) => name.startsWith("svc_gate_approval"))
      .map(({ name, labels, value }) => [[name.slice("svc_gate_".length), ...Object.values(labels)].join(" "), value]),
  );
}

/** A rule as a scenario, and a defect that the scenario must notice. */
export interface Scenario {
  readonly rule: string;
  readonly run: (desk: Desk, t: TestContext) => Promise<void>;
  /** Several where two checks back each other. */
  readonly defect: Mutation | readonly Mutation[];
  readonly options?: DeskOptions;
}

/** Runs each scenario against a gate, and as a positive control against a gate with its defect. */
export function runScenarios(name: string, scenarios: readonly Scenario[]): void {
  suite(name, { concurrency: 2 }, () => {
    for (const { rule, run, defect, options } of scenarios) {
      test(rule, async (t) => run(await startDesk(t, options), t));
      control(`positive control: a defect is noticed by "${rule}"`, async (t) => {
        const desk = await startDesk(t, { ...options, defects: [defect].flat() });
        await assert.rejects(async () => run(desk, t));
      });
    }
  });
}

import { parseCheckRequest, type Result, type Refusal } from "../../../packages/core/src/wire/mod.ts";
import type { Parked } from "./approvers.ts";
import { contracts } from "./contracts.ts";
import type { Machine } from "./machine.ts";
import type { Outside } from "./outside.ts";
import type { Sources } from "./sources.ts";

type Opened<Value> = Value extends (...args: never[]) => Promise<infer Made> ? Made : never;
type Gate = Extract<Opened<Sources["openGate"]>, { readonly ok: true }>["value"]["gate"];

/** A serving gate. */
export interface Serving {
  readonly gate: Gate;
  readonly ledger: Opened<Sources["openLedger"]>;
  readonly machine: Machine;
}

const sessions = 3;

/** Runs sessions, each with one call after another, sometimes a repeated one. */
export async function ask(
  serving: Serving,
  outside: Outside,
  { life, calls }: { readonly life: number; readonly calls: number },
): Promise<void> {
  let left = calls;
  const session = async (number: number): Promise<void> => {
    let body = "";
    for (let transaction = 1; left > 0; transaction += 1) {
      left -= 1;
      const { chance } = serving.machine;
      await pause(serving.machine, chance.often(0.5) ? 0 : chance.whole(0, 400));
      const isAgain = body !== "" && chance.often(0.15);
      const name = `${life}/${number}/${transaction}`;
      body = isAgain ? body : bodyOf(name, `s${number}`, chance.whole(1, 40));
      await askOnce(serving, outside, { body, name: isAgain ? undefined : name });
    }
  };
  await Promise.all(Array.from({ length: sessions }, (_, number) => session(number)));
}

export function bodyOf(call: string, session: string, amount: number, tool = "pay"): string {
  return JSON.stringify({ tool_name: tool, session_id: session, tool_input: { amount, call } });
}

/** @param asked undefined if the call was made before, and may have been answered then */
export async function askOnce(
  { gate, machine }: Serving,
  outside: Outside,
  { body, name, keyName = body.length % 2 === 0 ? "even" : "odd" }: AskOptions,
): Promise<void> {
  const { process } = machine;
  const request = parseCheckRequest(body);
  if (!request.ok) throw new Error(request.problem.detail);
  const answer = await gate.check(request.value, { keyName, bytes: body.length, digest: "0".repeat(64) });
  if (!process.isAlive) return;
  if (answer.ok) noteAnswer(machine, outside, JSON.parse(answer.value) as Answer, { body, keyName });
  else if (name !== undefined) outside.refused.add(name);
}

/** Notes an answer of a check, and the call that now waits for a person. */
export function noteAnswer(
  { now }: Machine,
  outside: Outside,
  { receipt, approval }: Pick<Answer, "approval" | "receipt">,
  call: Parked,
): void {
  outside.answered(receipt, now);
  if (approval?.new === true) outside.parked.set(approval.id, call);
  if (approval?.status === "used") outside.used += 1;
}

interface AskOptions {
  readonly body: string;
  readonly name: string | undefined;
  /** By default one of two keys, by the length of the body. */
  readonly keyName?: string;
}

/** The body of an answer. */
export interface Answer {
  readonly verdict: string;
  readonly receipt: Receipt;
  readonly approval?: Parking | undefined;
}

/** The member `approval` of an answer. */
interface Parking {
  readonly id: string;
  readonly new: boolean;
  readonly status: string;
}

interface Receipt {
  readonly seq: number;
  readonly hash: string;
}

/** Acts as an administrator: reloads, a key command, a look at the newest receipts, a walk over the chain. */
export async function administer(serving: Serving, outside: Outside): Promise<void> {
  const { machine } = serving;
  const { process, chance } = machine;
  for (let left = chance.whole(0, 4); left > 0; left -= 1) {
    await pause(machine, chance.whole(0, 900));
    await chance.way<() => Promise<void>>([
      [2, () => () => reload(serving, outside)],
      [1, () => () => changeKey(serving, outside)],
      [2, () => () => look(serving, outside)],
      [1, () => () => walk(serving, outside)],
    ])();
    if (!process.isAlive) return;
  }
}

async function reload({ gate, machine }: Serving, outside: Outside): Promise<void> {
  const { chance, process } = machine;
  const mode = chance.pick(["enforce", "assist"] as const);
  const reloaded = await gate.policies.reload({ policySet: chance.pick(contracts), mode }, "ada");
  if (process.isAlive && reloaded.ok && reloaded.value.receipt !== undefined)
    outside.answered(reloaded.value.receipt, machine.now);
}

/** The row of a new key. */
async function changeKey({ gate, machine }: Serving, outside: Outside): Promise<void> {
  const { process } = machine;
  const body = { name: "even", digest: "0".repeat(64) };
  const act = { by: "ada", act: "keys.create", body, reason: "Svc: ada made the key even" };
  const enacted: Result<Receipt, Refusal> = await gate.appendAdminEvent(() =>
    Promise.resolve({ ok: true, value: act }),
  );
  if (process.isAlive && enacted.ok) outside.answered(enacted.value, machine.now);
}

async function look({ gate, machine }: Serving, outside: Outside): Promise<void> {
  const { process } = machine;
  try {
    for await (const slice of gate.ledger.rows.receipts({ before: Number.MAX_SAFE_INTEGER, limit: 5 })) {
      for (const { seq, json } of slice)
        if (process.isAlive) outside.shown(seq, (JSON.parse(json) as Receipt).hash, machine.now);
    }
  } catch (error) {
    expected(machine, outside, `receipts cannot be read: ${String(error)}`);
  }
}

async function walk({ gate, machine }: Serving, outside: Outside): Promise<void> {
  try {
    const { broken } = await gate.verify();
    if (broken !== undefined)
      expected(machine, outside, `the chain of a serving gate is broken: ${JSON.stringify(broken)}`);
  } catch (error) {
    expected(machine, outside, `the chain cannot be walked: ${String(error)}`);
  }
}

/** Returns whether the error is expected: a failing disk may make a read fail, or return wrong data. */
export function expected({ process }: Machine, outside: Outside, what: string): void {
  if (process.isAlive && process.met.length === 0) outside.wrong(what);
}

export function pause(machine: Machine, ms: number): Promise<void> {
  return new Promise((resolve) => machine.later(ms, resolve));
}

import { createHash } from "node:crypto";
import { Agent, request } from "node:http";
import { setTimeout as wait } from "node:timers/promises";

/** A contract that counts every call, by number and by sum. */
export const contract = `contract: load
tools:
  payment.send:
    input:
      type: object
      additionalProperties: false
      required: [amount]
      properties: { amount: { type: number, minimum: 0 } }
    otherwise: ALLOW
counters:
  calls: { of: [payment.send], per: session, within: 24h }
  spent: { of: [payment.send], per: gate, sum: input.amount, counting: released }
rules:
  - { rule: too-many, on: [payment.send], when: counters.calls >= 40, verdict: BLOCK, reason: "{counters.calls} calls" }
  - { rule: too-much, on: [payment.send], when: counters.spent + input.amount > 100000000, verdict: ESCALATE, reason: "{counters.spent}" }
`;

/** A tenant and the key of its callers. */
export interface Tenant {
  readonly id: string;
  readonly key: string;
}

/** An answer as the caller received it. */
export interface Answer {
  readonly tenant: string;
  readonly seq: number;
  readonly hash: string;
  readonly verdict: string;
}

/** Callers that ask until they are stopped, each call at the next gate, and continue after any answer. */
export class Callers {
  readonly answers: Answer[] = [];
  /** Calls without a verdict: refused, or the connection broke. */
  unanswered = 0;
  #stopped = false;
  readonly #working: Promise<unknown>;

  constructor(urls: readonly string[], tenants: readonly Tenant[], perTenant: number) {
    const callers = tenants.flatMap((tenant) =>
      Array.from({ length: perTenant }, (_, at) => this.#call(urls, tenant, `session-${at}`)),
    );
    this.#working = Promise.all(callers);
  }

  answersOf(tenants: readonly string[]): number {
    return this.answers.filter(({ tenant }) => tenants.includes(tenant)).length;
  }

  /** Waits until each of these tenants has had this many more answers. */
  async more(tenants: readonly string[], count: number): Promise<void> {
    const wanted = tenants.map((tenant) => [tenant, this.answersOf([tenant]) + count] as const);
    while (wanted.some(([tenant, enough]) => this.answersOf([tenant]) < enough)) await wait(20);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#working;
  }

  async #call(urls: readonly string[], { id: tenant, key }: Tenant, name: string): Promise<void> {
    const agent = new Agent({ keepAlive: true });
    for (let call = 0; !this.#stopped; call += 1) {
      const body = JSON.stringify({
        tool_name: "payment.send",
        tool_input: { amount: (call % 700) / 100 },
        session_id: `${name}-${Math.floor(call / 50)}`,
      });
      try {
        const { verdict, receipt } = await ask(`${urls[call % urls.length]}/t/${tenant}/check`, { agent, key, body });
        this.answers.push({ tenant, verdict, ...receipt });
      } catch {
        this.unanswered += 1;
        await wait(20);
      }
    }
    agent.destroy();
  }
}

interface Answered {
  readonly verdict: string;
  readonly receipt: { readonly seq: number; readonly hash: string };
}

interface Asking {
  readonly agent: Agent;
  readonly key: string;
  readonly body: string;
}

export function ask(url: string, { agent, key, body }: Asking): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    };
    const asking = request(url, { method: "POST", agent, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        if (response.statusCode === 200) resolve(JSON.parse(text) as Answered);
        else reject(new Error(`${response.statusCode}: ${text}`));
      });
    });
    asking.on("error", reject);
    asking.end(body);
  });
}

export interface Row {
  readonly seq: number;
  readonly leaf: string;
  readonly evidence: string;
}

/**
 * Returns the faults in a ledger's rows without the gate's own code: a gap, a broken chain, or a counter value that is
 * not the sum of the earlier rows.
 */
export function problemsOf(rows: readonly Row[]): readonly string[] {
  const problems: string[] = [];
  const calls = new Map<string, number>();
  let [spent, before] = [0, "0".repeat(64)];
  for (const [at, { seq, leaf, evidence }] of rows.entries()) {
    const { prev, answered, seq: named } = JSON.parse(leaf) as Record<string, unknown>;
    if (seq !== at + 1 || named !== seq) problems.push(`row ${at + 1} is numbered ${seq}`);
    if (prev !== before) problems.push(`row ${seq} does not follow the row before`);
    const { call, input, outcome } = partsOf(evidence);
    const sessionCalls = calls.get(call.session_id) ?? 0;
    const read = JSON.stringify(outcome.counters);
    const sum = JSON.stringify({ "load.calls": String(sessionCalls), "load.spent": String(spent / 100) });
    if (read !== sum) problems.push(`row ${seq} read ${read}, and what came before is ${sum}`);
    calls.set(call.session_id, sessionCalls + 1);
    if (answered === "ALLOW") spent += Math.round(input.amount * 100);
    before = hashOf(leaf);
  }
  return problems;
}

interface Parts {
  readonly call: { readonly session_id: string };
  readonly input: { readonly amount: number };
  readonly outcome: { readonly counters: Readonly<Record<string, string>> };
}

function partsOf(evidence: string): Parts {
  const disclosed = evidence.split("~").map((part) => {
    const [, name, value] = JSON.parse(Buffer.from(part, "base64url").toString()) as [string, string, unknown];
    return [name, value] as const;
  });
  return Object.fromEntries(disclosed) as unknown as Parts;
}

/** Returns the answers that differ from their tenant's rows. */
export function lostOf(answers: readonly Answer[], rows: readonly Row[]): readonly Answer[] {
  return answers.filter(({ seq, hash, verdict }) => {
    const row = rows[seq - 1];
    if (row === undefined || hashOf(row.leaf) !== hash) return true;
    return (JSON.parse(row.leaf) as Record<string, unknown>)["answered"] !== verdict;
  });
}

function hashOf(leaf: string): string {
  return createHash("sha256").update("\0").update(leaf).digest("hex");
}

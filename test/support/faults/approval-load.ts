import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Dice } from "../campaign/random.ts";
import { apiKey } from "../gate-process.ts";
import type { Mutation } from "../mutation/mutate.ts";
import { decisionProblem, statesOf, type Answered as Decision } from "../simulation/approvers.ts";
import { chainProblem } from "../simulation/inspect.ts";
import { hashOf, type Row } from "../simulation/rows.ts";
import { setupIn, type Setup } from "./setup.ts";

const mandate = `mandate: approvals
contracts: [approvals.yaml]
approvals: { open: { key: 10000, session: 2500, ledger: 10000 } }
`;

/** Every call waits for a person, and a counter reserves its amount. */
const contract = `contract: approvals
tools:
  transfer:
    input:
      type: object
      additionalProperties: false
      required: [amount]
      properties: { amount: { type: number, minimum: 0 } }
    otherwise: ESCALATE
counters:
  moved: { of: [transfer], per: gate, sum: input.amount, counting: possible }
rules:
  - { rule: never, on: [transfer], when: counters.moved < 0, verdict: BLOCK, reason: "{counters.moved} were moved" }
`;

/** Returns a set-up whose gate lets people decide every call. */
export function setupOfApprovals(folder: string, changes: readonly Mutation[] = []): Setup {
  const { data, settings } = setupIn(folder, { changes });
  writeFileSync(join(folder, "approvals.yaml"), contract);
  writeFileSync(join(folder, "mandate.yaml"), mandate);
  return { data, settings: { ...settings, SVC_MANDATE: join(folder, "mandate.yaml"), SVC_PIN: join(folder, "pin") } };
}

interface Parked {
  readonly id: string;
  readonly hash: string;
  readonly call: object;
}

interface Said {
  readonly status: number;
  readonly json: any;
}

/** Agents whose calls wait, and people who decide them, over gates that are killed. */
export class ApprovalLoad {
  readonly #data: string;
  readonly #dice: Dice;
  #person = "";
  #calls = 0;
  #denied = 0;
  #url = "";
  #agent = new Agent();
  readonly #told = new Map<number, string>();
  readonly #decided: Decision[] = [];
  /** How often each approval let a call through, as the answers say. */
  readonly #allowed = new Map<string, number>();
  /** Parked calls whose end nobody knows: a process was killed meanwhile. */
  #unclear: Parked[] = [];

  constructor(data: string, dice: Dice) {
    this.#data = data;
    this.#dice = dice;
  }

  /** The numbers of answers, answered decisions, and calls that were let through. */
  get counts(): { readonly answers: number; readonly decided: number; readonly used: number } {
    const used = [...this.#allowed.values()].reduce((sum, each) => sum + each, 0);
    return { answers: this.#told.size, decided: this.#decided.length, used };
  }

  /** Makes the person's key, on a gate that is not killed meanwhile. */
  async prepare(url: string): Promise<void> {
    this.#url = url;
    this.#agent = new Agent({ keepAlive: true });
    const operator = JSON.parse(readFileSync(join(this.#data, "operator.json"), "utf8")) as { readonly key: string };
    await this.#send("/admin/persons", { name: "anna" }, operator.key);
    const body = { name: "anna", scopes: ["approve"], person: "anna" };
    const { status, json } = await this.#send("/admin/keys", body, operator.key);
    assert.equal(status, 201, JSON.stringify(json));
    this.#person = json.key;
    this.#agent.destroy();
  }

  /** Parks, decides and uses calls until the gate ends. */
  async run(url: string, clients: number): Promise<void> {
    this.#url = url;
    this.#agent = new Agent({ keepAlive: true });
    const unclear = this.#unclear.slice(-20);
    this.#unclear = [];
    await Promise.all([this.#client(unclear), ...Array.from({ length: clients - 1 }, () => this.#client([]))]);
    this.#agent.destroy();
  }

  async #client(unclear: readonly Parked[]): Promise<void> {
    let parked: Parked | undefined;
    try {
      for (parked of unclear) await this.#use(parked);
      for (;;) {
        parked = undefined;
        parked = await this.#park();
        await this.#decide(parked);
        await this.#use(parked);
      }
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      // The gate has ended: its earlier answers still count.
      if (parked !== undefined) this.#unclear.push(parked);
    }
  }

  async #park(): Promise<Parked> {
    this.#calls += 1;
    const call = { tool_name: "transfer", tool_input: { amount: this.#calls }, session_id: `s-${this.#calls % 5000}` };
    const { json } = await this.#check(call);
    assert.equal(json.verdict, "ESCALATE", JSON.stringify(json));
    return { id: json.approval.id, hash: json.receipt.hash, call };
  }

  async #decide({ id, hash }: Parked): Promise<void> {
    const roll = this.#dice.roll();
    // A third denial within an hour would block all further calls.
    const act = roll < 0.8 ? "approve" : roll < 0.9 && this.#denied < 2 ? "deny" : "cancel";
    if (act === "deny") this.#denied += 1;
    const body = act === "cancel" ? {} : { hash, comment: "because" };
    const { status, json } = await this.#send(`/approvals/${id}/${act}`, body, this.#person);
    assert.equal(status, 200, JSON.stringify(json));
    this.#decided.push({
      row: Number(id.split("_")[1]),
      act: `approval.${act}`,
      person: act === "cancel" ? undefined : "anna",
    });
    if (json.receipt !== null) this.#hear(json.receipt);
  }

  /** Asks twice at the same time with the approval's id. */
  async #use({ id, call }: Parked): Promise<void> {
    const naming = { ...call, approval: { id } };
    const answers = await Promise.allSettled([this.#check(naming), this.#check(naming)]);
    for (const answer of answers) {
      if (answer.status === "fulfilled" && answer.value.json.verdict === "ALLOW")
        this.#allowed.set(id, (this.#allowed.get(id) ?? 0) + 1);
    }
    for (const answer of answers) if (answer.status === "rejected") throw answer.reason;
  }

  async #check(call: object): Promise<Said> {
    const said = await this.#send("/check", call, apiKey);
    assert.equal(said.status, 200, JSON.stringify(said.json));
    this.#hear(said.json.receipt);
    return said;
  }

  #hear({ seq, hash }: { readonly seq: number; readonly hash: string }): void {
    this.#told.set(seq, hash);
  }

  #send(path: string, body: object, key: string): Promise<Said> {
    const text = JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(text),
      };
      const sent = request(`${this.#url}${path}`, { method: "POST", agent: this.#agent, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const said = Buffer.concat(chunks).toString();
          resolve({ status: response.statusCode ?? 0, json: JSON.parse(said) });
        });
      });
      sent.on("error", reject);
      sent.end(text);
    });
  }

  /**
   * Compares the ledger's file with everything that was answered, and a gate that has just started with the file.
   *
   * @returns the broken promise
   */
  async problem(url: string): Promise<string | undefined> {
    const database = new DatabaseSync(join(this.#data, "ledger.db"), { readOnly: true });
    const rows = database.prepare("SELECT seq, session, tool, leaf, evidence FROM receipts ORDER BY seq").all();
    database.close();
    const read = rows as unknown as readonly Row[];
    for (const [seq, hash] of this.#told) {
      const row = read[seq - 1];
      if (row === undefined || hashOf(row) !== hash) return `LOST: row ${seq} was answered`;
    }
    const twice = [...this.#allowed].find(([, times]) => times > 1);
    if (twice !== undefined) return `the approval ${twice[0]} let ${twice[1]} calls through`;
    return chainProblem(read) ?? decisionProblem(read, { decided: this.#decided }) ?? (await this.#states(url, read));
  }

  async #states(url: string, rows: readonly Row[]): Promise<string | undefined> {
    const headers = { authorization: `Bearer ${apiKey}`, connection: "close" };
    for (const [seq, state] of [...statesOf(rows)].slice(-30)) {
      const row = rows[seq - 1];
      if (row === undefined) continue;
      const response = await fetch(`${url}/approvals/apr_${seq}_${hashOf(row).slice(0, 32)}`, { headers });
      const { status } = (await response.json()) as { readonly status?: string };
      if (status !== state) return `the approval of row ${seq} is ${status}, and its rows say ${state}`;
    }
    return undefined;
  }
}

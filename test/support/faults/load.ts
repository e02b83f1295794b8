import { Agent, request } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { apiKey } from "../gate-process.ts";

/** A client's answer and its time. */
export interface Answered {
  readonly seq: number;
  readonly hash: string;
  readonly verdict: string;
  /** When the call was sent, in milliseconds since the epoch. */
  readonly askedAt: number;
  /** When the whole answer had arrived, in nanoseconds of the clock that all processes of the machine share. */
  readonly heard: bigint;
}

/** A refusal: its status and its code. */
export interface Refused {
  readonly status: number;
  readonly code: string;
}

const sessionLimit = 40;

/** Every call adds to a counter of calls; an allowed call also adds a fraction to another. Rules read both. */
export const contract = `contract: load
summary: Every call is counted, by number and by sum.
tools:
  payment.send:
    input:
      type: object
      additionalProperties: false
      required: [amount]
      properties:
        amount: { type: number, minimum: 0 }
    otherwise: ALLOW
counters:
  calls: { of: [payment.send], per: session, within: 24h }
  spent: { of: [payment.send], per: gate, sum: input.amount, counting: released }
rules:
  - rule: too-many
    on: [payment.send]
    when: counters.calls >= ${sessionLimit}
    verdict: BLOCK
    reason: this session has made {counters.calls} calls
  - rule: too-much
    on: [payment.send]
    when: counters.spent + input.amount > 100000000
    verdict: ESCALATE
    reason: "{counters.spent} is spent"
`;

/** Clients of one gate after another on the same ledger, and all their answers. */
export class Load {
  readonly answers: Answered[] = [];
  readonly refusals: Refused[] = [];
  #sessions = 0;

  /**
   * Makes calls until the gate ends or refuses, each client one call after another.
   *
   * @param calls of each client; unlimited by default
   */
  async run(url: string, clients: number, calls = Number.POSITIVE_INFINITY): Promise<void> {
    await Promise.all(Array.from({ length: clients }, () => this.#client(url, calls)));
  }

  /** Waits until there are this many answers, however slow the machine, or until the load is over. */
  async reaches(answers: number, working: Promise<void>): Promise<void> {
    const over = new AbortController();
    void working.finally(() => over.abort());
    while (!over.signal.aborted && this.answers.length < answers) await wait(5);
  }

  /** Amounts are in hundredths, so that the sum has fractions. */
  async #client(url: string, calls: number): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    let session = 0;
    try {
      for (let call = 0; call < calls; call += 1) {
        if (call % 50 === 0) session = this.#sessions += 1;
        const body = JSON.stringify({
          tool_name: "payment.send",
          tool_input: { amount: (call % 700) / 100 },
          session_id: `s-${session}`,
        });
        const said = await ask(url, agent, body);
        if ("status" in said) {
          this.refusals.push(said);
          return;
        }
        this.answers.push(said);
      }
    } catch {
      // The gate has ended: its earlier answers still count.
    } finally {
      agent.destroy();
    }
  }
}

function ask(url: string, agent: Agent, body: string): Promise<Answered | Refused> {
  const sentAt = Date.now();
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${apiKey}`,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    };
    const asking = request(`${url}/check`, { method: "POST", agent, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const heard = process.hrtime.bigint();
        const said = JSON.parse(Buffer.concat(chunks).toString());
        const status = response.statusCode ?? 0;
        if (status !== 200) resolve({ status, code: String(said.code) });
        else resolve({ seq: said.receipt.seq, hash: said.receipt.hash, verdict: said.verdict, askedAt: sentAt, heard });
      });
    });
    asking.on("error", reject);
    asking.end(body);
  });
}

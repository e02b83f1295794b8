import { Agent, request } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import type { Dice } from "./random.ts";
import type { ClientResult } from "./ledger-comparison.ts";

/** More than the sum of all bounds of a gate: a later answer counts as forgotten. */
const hungMs = 90_000;
/** The calls on one account: more than its budget, so that any gate must block the last ones. */
const callsOfAccount = 8;

export interface LoadOptions {
  /** The gates; a client may ask any of them. */
  readonly urls: readonly string[];
  readonly dice: Dice;
  /** The pause between two calls of a client, in milliseconds on average. */
  readonly pauseMs: number;
  /** The prefix of the accounts' names. */
  readonly accounts: string;
  readonly key: string;
}

/** The clients' calls and answers, and the slowest answer's time. */
export class Load {
  readonly results: ClientResult[] = [];
  readonly #options: LoadOptions;
  #calls = 0;
  #isEnding = false;
  #clients: Promise<unknown> = Promise.resolve();
  answered = 0;
  slowestMs = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  start(clients: number): void {
    this.#clients = Promise.all(Array.from({ length: clients }, (_, at) => this.#client(`s-${at}`)));
  }

  /** Resolves when every call has ended. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await this.#clients;
  }

  /** Makes calls one after another, each at a random gate, sometimes in a burst without a pause. */
  async #client(session: string): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 4 });
    const { dice, pauseMs } = this.#options;
    while (!this.#isEnding) {
      for (let left = dice.roll() < 0.1 ? 10 : 1; left > 0; left -= 1) await this.#call(session, agent);
      if (pauseMs > 0) await wait(dice.between(0, 2 * pauseMs));
    }
    agent.destroy();
  }

  async #call(session: string, agent: Agent): Promise<void> {
    const { accounts, dice, key, urls } = this.#options;
    const call = this.#calls;
    this.#calls += 1;
    const account = `${accounts}${Math.floor(call / callsOfAccount)}`;
    const id = `${account}.${call}`;
    const amount = Math.floor(dice.between(1, 700)) / 100;
    const body = JSON.stringify({ tool_name: "spend", tool_input: { id, account, amount }, session_id: session });
    const startedAt = performance.now();
    const results = await ask(`${dice.oneOf(urls)}/check`, { agent, key, id, body });
    this.slowestMs = Math.max(this.slowestMs, performance.now() - startedAt);
    this.results.push(results);
    if (results.kind === "answered") this.answered += 1;
    // Nobody listens there at the moment: the next may be another.
    if (results.kind === "cut") await wait(50);
  }
}

interface Asking {
  readonly agent: Agent;
  readonly key: string;
  readonly id: string;
  readonly body: string;
}

function ask(url: string, { agent, key, id, body }: Asking): Promise<ClientResult> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const asking = request(url, { method: "POST", agent, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", () => resolve({ kind: "cut", id }));
      response.on("end", () => {
        const status = response.statusCode ?? 0;
        const said = parsed(Buffer.concat(chunks).toString());
        if (said === undefined) resolve({ kind: "cut", id });
        else if (status === 200)
          resolve({ kind: "answered", id, seq: said.receipt.seq, hash: said.receipt.hash, verdict: said.verdict });
        else resolve({ kind: "refused", id, status, code: said.code });
      });
    });
    asking.setTimeout(hungMs, () => {
      resolve({ kind: "hung", id });
      asking.destroy();
    });
    asking.on("error", () => resolve({ kind: "cut", id }));
    asking.end(body);
  });
}

interface Said {
  readonly verdict: string;
  readonly receipt: { readonly seq: number; readonly hash: string };
  readonly code: string;
}

function parsed(text: string): Said | undefined {
  try {
    return JSON.parse(text) as Said;
  } catch {
    return undefined;
  }
}

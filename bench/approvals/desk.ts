import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gateSettings, start, type Server } from "../check.ts";
import { Line, overLines, type Heard } from "./line.ts";

/** The first key of a measured gate, which may ask for checks. */
export const agent = "bench-key-bench-key-bench-key";

/** Payments of wallets. A person decides the large ones, and a budget counts what waits. Beside them, commands. */
const contract = `contract: bench
platform: { type: object, required: [wallet], properties: { wallet: { type: string } } }
commands:
  forms:
    - { run: restart|publish, words: NAME, does: runs, verdict: ESCALATE, reason: it waits }
    - { run: show, words: NAME, does: reads }
let: { run: 'commands(input.command, "/srv")' }
tools:
  shell:
    input:
      type: object
      additionalProperties: false
      required: [command]
      properties: { command: { type: string, maxLength: 1000 } }
    otherwise: ALLOW
  pay.send:
    input:
      type: object
      additionalProperties: false
      required: [amount, to]
      properties: { amount: { type: number, minimum: 0 }, to: { type: string } }
    requires: platform.present
    otherwise: ALLOW
counters:
  spent: { of: [pay.send], per: platform.wallet, sum: input.amount, counting: possible, within: 30d }
rules:
  - { rule: budget, on: [pay.send], when: counters.spent + input.amount > 1e12, verdict: BLOCK, reason: "the budget is used" }
  - { rule: large, on: [pay.send], when: input.amount > 1000, verdict: ESCALATE, reason: "{input.amount} is a large payment" }
  - rule: asks
    on: [shell]
    when: run.verdict == "ESCALATE"
    verdict: ESCALATE
    approval: { grants: { by: form, at_most: 14d, uses: 10000 } }
    reason: it waits
`;

/** As many approvals may be open as a mandate can permit. A session has at most a quarter of its key's room. */
const mandate = `mandate: bench
contracts: [bench.yaml]
approvals: { open: { key: 10000, session: 2500, ledger: 10000 } }
`;

/** The most decisions of one request. */
const decisionsMax = 50;

/** What an answer to a check says about its approval. */
export interface Parked {
  readonly id: string;
  /** The hash of the row that asked. */
  readonly hash: string;
}

/** A measured gate with an agent, a person and 64 connections. */
export class Desk {
  readonly server: Server;
  /** The folder of the ledger. */
  readonly data: string;
  readonly lines: readonly Line[];
  readonly #operator: string;
  #person = "";

  private constructor(server: Server, data: string, lines: readonly Line[]) {
    this.server = server;
    this.data = data;
    this.lines = lines;
    this.#operator = (JSON.parse(readFileSync(join(data, "operator.json"), "utf8")) as { readonly key: string }).key;
  }

  static async open(folder: string): Promise<Desk> {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "bench.yaml"), contract);
    writeFileSync(join(folder, "mandate.yaml"), mandate);
    const data = join(folder, "data");
    const settings = { ...gateSettings(data), SVC_MANDATE: join(folder, "mandate.yaml") };
    const server = await start(["--max-semi-space-size=8", "bin/svc-gate.mjs", "serve"], settings);
    const lines = await Promise.all(Array.from({ length: 64 }, () => Line.open(server.url)));
    const desk = new Desk(server, data, lines);
    await desk.#operate("/admin/persons", { name: "anna" });
    desk.#person = await desk.makeKey("anna-laptop", { scopes: ["approve", "receipts"], person: "anna" });
    return desk;
  }

  get line(): Line {
    return this.lines[0] as Line;
  }

  async #operate(path: string, body: object): Promise<Heard> {
    return expected(await this.line.ask(path, this.#operator, JSON.stringify(body)), [200, 201]);
  }

  /** Returns the secret of a new key. */
  async makeKey(name: string, record: object): Promise<string> {
    const { body } = await this.#operate("/admin/keys", { name, ...record });
    return (JSON.parse(body) as { readonly key: string }).key;
  }

  /** Sends a check, whose answer must have this verdict. */
  async check(line: Line, call: string, verdict: string, key: string = agent): Promise<Heard> {
    const heard = expected(await line.ask("/check", key, call), [200]);
    if (!heard.body.startsWith(`{"verdict":"${verdict}"`)) throw new Error(`not ${verdict}, but ${heard.body}`);
    return heard;
  }

  /** Opens an approval for each call, over all connections. */
  async park(calls: readonly string[], key: string = agent): Promise<readonly Parked[]> {
    const parked: Parked[] = [];
    await overLines(this.lines, calls.length, async (line, index) => {
      parked[index] = parkedIn(await this.check(line, calls[index] as string, "ESCALATE", key));
    });
    return parked;
  }

  /** Decides approvals, as many in one request as may be. */
  async decide(parked: readonly Parked[], decision: "approve" | "deny"): Promise<void> {
    for (let from = 0; from < parked.length; from += decisionsMax) {
      const some = parked.slice(from, from + decisionsMax);
      const decisions = some.map(({ id, hash }) => ({ id, hash, decision, comment: "bench" }));
      expected(await this.line.ask("/approvals/decide", this.#person, JSON.stringify({ decisions })), [200]);
    }
  }

  /** Approves one call on its own. */
  async approve({ id, hash }: Parked): Promise<Heard> {
    return expected(await this.line.ask(`/approvals/${id}/approve`, this.#person, JSON.stringify({ hash })), [200]);
  }

  /** Makes a grant from a call that waits. */
  async grant({ id, hash }: Parked, terms: object): Promise<Heard> {
    const body = JSON.stringify({ approval: id, hash, ...terms });
    return expected(await this.line.ask("/grants", this.#person, body), [201]);
  }

  /** Ends the gate's process, so that its ledger can be read. */
  async stop(): Promise<void> {
    for (const line of this.lines) line.close();
    const { child } = this.server;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await ended;
  }

  kill(): void {
    this.server.child.kill("SIGKILL");
  }
}

/** Runs work with a gate of its own, and ends the gate. */
export async function withDesk<T>(folder: string, work: (desk: Desk) => Promise<T>): Promise<T> {
  const desk = await Desk.open(folder);
  try {
    return await work(desk);
  } finally {
    desk.kill();
  }
}

export interface Call {
  readonly wallet: string;
  /** Over 1,000, a person decides. */
  readonly amount: number;
  readonly session: string;
  readonly approval?: string;
}

export function callText({ wallet, amount, session, approval }: Call): string {
  return JSON.stringify({
    tool_name: "pay.send",
    tool_input: { amount, to: "anna" },
    session_id: session,
    platform_state: { wallet },
    ...(approval !== undefined && { approval: { id: approval } }),
  });
}

export function commandText(command: string): string {
  return JSON.stringify({ tool_name: "shell", tool_input: { command }, session_id: "commands" });
}

/** Large payments, each in its own session: only the first call of a session may use the last quarter of a key's room. */
export function largeCalls(wallet: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => callText({ wallet, amount: 1001 + at, session: `${wallet}-${at}` }));
}

export function parkedIn({ body }: Heard): Parked {
  const { approval, receipt } = JSON.parse(body) as {
    readonly approval: { readonly id: string | null };
    readonly receipt: { readonly hash: string };
  };
  if (approval.id === null) throw new Error(`no approval was opened: ${body}`);
  return { id: approval.id, hash: receipt.hash };
}

function expected(heard: Heard, statuses: readonly number[]): Heard {
  if (!statuses.includes(heard.status)) throw new Error(`${heard.status}: ${heard.body}`);
  return heard;
}

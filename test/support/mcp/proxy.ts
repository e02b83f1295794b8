/** A real gate, `svc-gate mcp` as a process, and a client that writes lines: what a test of the proxy needs. */
import assert from "node:assert/strict";
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { TestContext } from "node:test";
import { startDesk, type Desk } from "../approvals.ts";
import { ask, atEnd, key, root, temporaryFolder } from "../gate.ts";
import { agentProgram } from "../agent-program.ts";
import type { Mutation } from "../mutation/mutate.ts";
import { patienceMs } from "../patience.ts";

export const rawServer: string = join(root, "test", "support", "mcp", "raw-server.ts");

const any = "{ type: object, additionalProperties: true }";

/** An object with members of these types, and any others. */
const object = (members: Readonly<Record<string, string>>): string => {
  const properties = Object.entries(members).map(([name, type]) => `${name}: ${type}`);
  const required = Object.keys(members).join(", ");
  return `{ type: object, additionalProperties: true, required: [${required}], properties: { ${properties.join(", ")} } }`;
};

const [number, text] = ["{ type: number }", "{ type: string }"];
const tools = {
  pay: object({ amount: number }),
  task: object({ amount: number }),
  confirm: object({ amount: number }),
  "confirm.mcp.responses": object({ $responses: object({ sure: object({ action: text }) }) }),
  "pay.mcp.responses": any,
  "mcp.elicitation": any,
  "mcp.sampling": object({ maxTokens: number }),
  "mcp.resources.read": object({ uri: text }),
  ...Object.fromEntries(
    ["sample", "slow", "twice", "secrets", "change", "broken", "extra", "hold"].map((name) => [name, any]),
  ),
};

const rules = {
  large: ["pay, bank.task, bank.confirm", "input.amount >= 500", "verdict: BLOCK", "{input.amount} is too much"],
  middle: [
    "pay, bank.task, bank.confirm",
    "input.amount >= 50",
    "verdict: ESCALATE, approval: { by: [finance] }",
    "{input.amount} is a lot",
  ],
  once: ["confirm", "counters.confirmed >= 1", "verdict: BLOCK", "one confirmation is enough"],
  unsure: [
    "confirm.mcp.responses",
    'input["$responses"].sure.action != "accept"',
    "verdict: BLOCK",
    "the user is not sure",
  ],
  long: ["mcp.sampling", "input.maxTokens > 50", "verdict: ESCALATE, approval: { by: [finance] }", "many tokens"],
  wordy: ["mcp.sampling", "input.maxTokens > 100", "verdict: BLOCK", "too many tokens"],
  hidden: ["mcp.resources.read", 'input.uri != "file:///open"', "verdict: BLOCK", "this file is closed"],
};

/** Less than 50 passes, less than 500 needs a person, and the rest is blocked. */
export const bank: string = [
  "contract: bank",
  "tools:",
  ...Object.entries(tools).map(([name, input]) => `  bank.${name}: { input: ${input}, otherwise: ALLOW }`),
  "counters:",
  "  confirmed: { of: [bank.confirm], per: session }",
  "rules:",
  ...Object.entries(rules).map(
    ([rule, [on, when, verdict, reason]]) =>
      `  - { rule: ${rule}, on: [bank.${on}], when: '${when}', ${verdict}, reason: "${reason}" }`,
  ),
  "",
].join("\n");

export interface Answer {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: any;
  readonly result?: any;
  readonly error?: { readonly code: number; readonly message: string };
}

export interface ProxyOptions {
  readonly mutations?: readonly Mutation[];
  /** Channels that `accept` allows. */
  readonly allow?: readonly string[];
  /** More options of `svc-gate mcp`. */
  readonly flags?: readonly string[];
  /** Words that change the raw server, for `accept` and then for the proxy. */
  readonly accepted?: readonly string[] | null;
  readonly words?: readonly string[];
  readonly mode?: string;
  /** The address of something else than the gate. */
  readonly url?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly capabilities?: object;
  /** How long a message may take; on a broken proxy it may never come. */
  readonly patienceMs?: number;
}

export interface Proxy {
  readonly desk: Desk;
  /** How long a test waits for what the proxy does. */
  readonly patienceMs: number;
  readonly folder: string;
  readonly lockFile: string;
  /** Sends one line. */
  readonly send: (line: string | object) => void;
  /** Sends a request and resolves with its answer. */
  readonly ask: (method: string, params?: object, id?: unknown) => Promise<Answer>;
  readonly call: (name: string, input?: object, more?: object) => Promise<Answer>;
  /** Resolves with the first message that fits, also an earlier one. */
  readonly next: (fits: (message: Answer) => boolean) => Promise<Answer>;
  /** All messages that the client got. */
  readonly got: readonly Answer[];
  /** What the server wrote. */
  readonly witness: () => readonly any[];
  readonly ran: () => readonly any[];
  readonly receipts: () => Promise<readonly any[]>;
  readonly stderr: () => string;
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>;
  /** Ends the client's side, and resolves with the exit code. */
  readonly end: () => Promise<number | null>;
}

/** The text that a model gets. */
export function textOf({ result }: Answer): string {
  return result?.content?.[0]?.text ?? "";
}

export const older: object = { protocolVersion: "2025-11-25", clientInfo: { name: "test", version: "1" } };
export const newerMeta: object = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} }, sampling: {} },
};

/** Accepts the raw server's tools, starts the proxy before it, and shakes hands as an older client. */
export async function startProxy(t: TestContext, options: ProxyOptions = {}): Promise<Proxy> {
  const { mutations = [], allow = [], flags = [], accepted = [], words = [], mode = "enforce", env = {} } = options;
  const desk = await startDesk(t, { contract: bank, mode });
  const folder = temporaryFolder(t);
  const file = join(folder, "witness.jsonl");
  const lockFile = join(folder, "bank.json");
  const name = ["--name", "bank", "--pins", lockFile];
  const command = (some: readonly string[]): readonly string[] => ["--", process.execPath, rawServer, ...some];
  if (accepted !== null) {
    const channels = allow.flatMap((channel) => ["--allow", channel]);
    const project = flags.filter((flag) => flag === "--project");
    writeFileSync(lockFile, await acceptedLock(t, ["--name", "bank", ...project, ...channels, ...command(accepted)]));
  }
  const own = {
    SVC_URL: options.url ?? desk.address,
    SVC_KEY: key,
    SVC_TIMEOUT: String(patienceMs / 1000),
    MCP_WITNESS: file,
    ...env,
  };
  const child = spawnAgent(t, ["mcp", ...name, ...flags, ...command(words)], own, mutations);
  const client = lineClient(child, options.patienceMs ?? patienceMs);
  const witness = (): readonly any[] => {
    const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
    return lines.filter(Boolean).map((line) => JSON.parse(line));
  };
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  const proxy: Proxy = {
    desk,
    patienceMs: options.patienceMs ?? patienceMs,
    folder,
    lockFile,
    ...client,
    witness,
    ran: () => witness().filter((entry) => "ran" in entry),
    receipts: async () => (await ask(desk, "/receipts")).json.receipts,
    ended,
    end: () => {
      child.stdin.end();
      return ended;
    },
  };
  await proxy.ask("initialize", {
    ...older,
    capabilities: options.capabilities ?? { sampling: {}, elicitation: {}, roots: {} },
  });
  proxy.send({ jsonrpc: "2.0", method: "notifications/initialized" });
  return proxy;
}

const locks = new Map<string, Promise<string>>();

/** Runs `accept` once for the same server and channels. */
function acceptedLock(t: TestContext, args: readonly string[]): Promise<string> {
  const known = locks.get(args.join(" "));
  if (known !== undefined) return known;
  const file = join(temporaryFolder(t), "lock.json");
  const made = runAgent(t, ["mcp", "accept", "--yes", "--pins", file, ...args]).then(({ code, output }) => {
    assert.equal(code, 0, output);
    return readFileSync(file, "utf8");
  });
  locks.set(args.join(" "), made);
  return made;
}

export type AgentProcess = ChildProcessByStdio<Writable, Readable, Readable>;

export function spawnAgent(
  t: TestContext,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  mutations: readonly Mutation[] = [],
): AgentProcess {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:SVC_|NODE_)/.test(name)));
  const { command, env: planted } = agentProgram(mutations);
  const [program, ...first] = command;
  const child = spawn(program, [...first, ...args], {
    env: { ...inherited, ...planted, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const closed = new Promise((resolve) => child.on("close", resolve));
  child.stdin.on("error", () => undefined);
  atEnd(t, () => {
    child.kill("SIGKILL");
    return closed;
  });
  return child;
}

/** Runs a command of the agent's package to its end. */
export async function runAgent(
  t: TestContext,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  mutations: readonly Mutation[] = [],
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawnAgent(t, args, env, mutations);
  child.stdin.end();
  let output = "";
  child.stdout.on("data", (piece) => (output += String(piece)));
  child.stderr.on("data", (piece) => (output += String(piece)));
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return { code, output };
}

function lineClient(
  child: AgentProcess,
  forMs: number,
): Pick<Proxy, "send" | "ask" | "call" | "next" | "got" | "stderr"> {
  const got: Answer[] = [];
  let stderr = "";
  const waiters = new Set<() => void>();
  const answers = new Map<unknown, (message: Answer) => void>();
  child.stderr.on("data", (piece) => (stderr += String(piece)));
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message: Answer = JSON.parse(line);
    got.push(message);
    if (message.method === undefined) answers.get(message.id)?.(message);
    for (const wake of waiters) wake();
  });
  const late = (what: string): Error => {
    const last = JSON.stringify(got.slice(-5));
    return new assert.AssertionError({ message: `no ${what}; the last messages were ${last}\n${stderr}` });
  };
  const next: Proxy["next"] = (fits) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(late("such message")), forMs);
      const look = (): void => {
        const found = got.find(fits);
        if (found === undefined) return;
        clearTimeout(timer);
        waiters.delete(look);
        resolve(found);
      };
      waiters.add(look);
      look();
    });
  const send: Proxy["send"] = (line) =>
    void child.stdin.write(`${typeof line === "string" ? line : JSON.stringify(line)}\n`);
  let count = 0;
  const request: Proxy["ask"] = (method, params = {}, id = (count += 1)) => {
    const answer = new Promise<Answer>((resolve, reject) => {
      const timer = setTimeout(() => reject(late(method)), forMs);
      answers.set(id, (message) => {
        clearTimeout(timer);
        answers.delete(id);
        resolve(message);
      });
    });
    send({ jsonrpc: "2.0", id, method, params });
    // A test may fail before it waits for the answer.
    answer.catch(() => undefined);
    return answer;
  };
  return {
    got,
    stderr: () => stderr,
    send,
    next,
    ask: request,
    call: (name, input, more = {}) =>
      request("tools/call", { name, ...(input === undefined ? {} : { arguments: input }), ...more }),
  };
}

import { spawn } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { routeHooks } from "../../packages/svc-gate/src/serve-hooks.ts";
import { NotKept } from "../../packages/gate/src/ledger/errors.ts";
import type { ServeHooks } from "../../packages/gate/src/server/policy/hooks.ts";
import { readConfig } from "../../packages/gate/src/server/start/config.ts";
import { serve, type RunningGate } from "../../packages/gate/src/server/start/serve.ts";
import { newFolder, removeFolder } from "./ledger-fixture.ts";

export const root: string = fileURLToPath(new URL("../..", import.meta.url));
export const main: string = join(root, "packages", "svc-gate", "src", "main.ts");
/** Where Node keeps compiled sources. Without it each process that a test starts compiles the same sources again. */
export const compiled = { NODE_COMPILE_CACHE: join(root, "node_modules", ".cache", "compiled") } as const;
export const key = "a-key-that-only-this-test-knows";

const any = "{ type: object, additionalProperties: true }";
const amount =
  "{ type: object, additionalProperties: false, required: [amount], properties: { amount: { type: number } } }";

/** One tool for each way in which a verdict arises. */
export const desk = `contract: desk
limits: { visits: 10 }
tools:
  note.add: { input: ${any}, otherwise: ALLOW }
  door.open: { input: ${any}, otherwise: ALLOW }
  door.force: { input: ${any}, otherwise: ALLOW }
  mail.send: { input: ${any}, otherwise: ESCALATE }
  safe.open: { input: ${any}, otherwise: BLOCK }
  visit: { input: ${any}, otherwise: ALLOW }
  typed: { input: ${amount}, otherwise: ALLOW }
  stated:
    input: ${any}
    requires: [{ when: platform.present, reason: the platform said nothing }]
    otherwise: ALLOW
  divided: { input: ${amount}, otherwise: ALLOW }
counters:
  visits: { of: [visit], per: session }
rules:
  - { rule: shut, on: [door.open], when: "true", verdict: BLOCK, reason: the door is shut }
  - { rule: sealed, on: [door.force], when: "true", verdict: BLOCK, final: true, reason: the door is sealed }
  - { rule: often, on: [visit], when: counters.visits >= limits.visits, verdict: BLOCK, reason: "{counters.visits} visits are enough" }
  - { rule: share, on: [divided], when: 1 / input.amount > 1, verdict: BLOCK, reason: the share is too large }
`;

export interface GateFiles {
  /** Contracts by file name; by default the desk and the example's payments. */
  readonly contracts?: Readonly<Record<string, string>>;
  readonly mandate?: string;
}

export interface GateOptions extends GateFiles {
  /** The folder of an earlier gate, to be served again. */
  readonly folder?: string;
  readonly flags?: Readonly<Record<string, string>>;
  /** Settings by their variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** By default those with which the command line starts a gate, without the tests of a reload. */
  readonly hooks?: ServeHooks;
}

/** A test, or another object with an end. */
export interface Ending {
  readonly after: (fn: () => Promise<void>) => void;
}

const endings = new WeakMap<Ending, (() => unknown)[]>();

/** Runs at the end of the test, in reverse order: a gate stops before its folder is removed. */
export function atEnd(t: Ending, ending: () => unknown): void {
  const known = endings.get(t);
  if (known !== undefined) {
    known.push(ending);
    return;
  }
  const all = [ending];
  endings.set(t, all);
  t.after(async () => {
    for (const each of all.toReversed()) await each();
  });
}

/** Makes a folder that is removed when the test ends. */
export function temporaryFolder(t: Ending): string {
  const folder = newFolder();
  atEnd(t, () => removeFolder(folder));
  return folder;
}

/** Writes a mandate and its contracts into a folder. */
export function writeContracts(folder: string, { contracts, mandate }: GateFiles): string {
  mkdirSync(join(folder, "contracts"), { recursive: true });
  if (contracts === undefined) {
    cpSync(join(root, "contracts", "payments.yaml"), join(folder, "contracts", "payments.yaml"));
    writeFileSync(join(folder, "contracts", "desk.yaml"), desk);
  }
  for (const [name, text] of Object.entries(contracts ?? {})) writeFileSync(join(folder, "contracts", name), text);
  const names = contracts === undefined ? ["payments.yaml", "desk.yaml"] : Object.keys(contracts);
  const file = join(folder, "mandate.yaml");
  writeFileSync(
    file,
    mandate ?? `mandate: test\ncontracts: [${names.map((name) => `contracts/${name}`).join(", ")}]\n`,
  );
  return file;
}

export interface Running extends RunningGate {
  readonly folder: string;
  readonly port: number;
}

/** Starts a gate in this process, in enforce mode by default; it stops when the test ends. */
export async function startGate(t: Ending, options: GateOptions = {}): Promise<Running> {
  const folder = options.folder ?? temporaryFolder(t);
  const mandate = writeContracts(folder, options);
  const flags = {
    mode: "enforce",
    "api-key": key,
    port: "0",
    log: "silent",
    mandate,
    "data-dir": join(folder, "data"),
  };
  const configured = readConfig(options.env ?? {}, { ...flags, ...options.flags });
  if (!configured.ok) throw new Error(configured.problem.join("\n"));
  const serving = await serve(configured.value.config, configured.value.warnings, options.hooks ?? routeHooks);
  // A fault leaves callers without an answer, so the test must fail at once.
  serving.failed.catch((fault: unknown) => setImmediate(() => Promise.reject(fault)));
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopped ??= serving.stop());
  atEnd(t, stop);
  return { ...serving, stop, folder, port: Number(new URL(serving.address).port) };
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined if the text is not JSON. */
  readonly json: any;
}

/** Sends one request with the key, unless `headers` has another authorization or an empty one. */
export async function ask(
  { address }: Pick<Running, "address">,
  path: string,
  init: {
    readonly method?: string;
    readonly headers?: Record<string, string>;
    readonly body?: string | Uint8Array;
  } = {},
): Promise<Answer> {
  const headers = { authorization: `Bearer ${key}`, ...init.headers };
  const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ""));
  const response = await fetch(address + path, { ...init, headers: given, redirect: "error" });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: parse(text) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Sends POST /check with a body: an object, or the text itself. */
export function check(
  gate: Pick<Running, "address">,
  body: object | string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return ask(gate, "/check", {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

/** Sends bytes unchanged and collects the answer until the connection ends, or `enough` is satisfied. */
export function exchange(
  port: number,
  bytes: string | Uint8Array,
  enough: (text: string) => boolean = () => false,
): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(text));
    socket.on("data", (piece) => {
      text += piece.toString("latin1");
      if (enough(text)) socket.destroy();
    });
  });
}

/** Returns a request as text, with the key; the connection closes after it. */
export function requestText(line: string, headers: readonly string[] = [], body = ""): string {
  const all = ["Host: gate", `Authorization: Bearer ${key}`, "Connection: close", ...headers];
  return `${line}\r\n${all.join("\r\n")}\r\n\r\n${body}`;
}

export interface Process {
  readonly pid: number;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Resolves with the exit code, or the signal's name. */
  readonly exit: Promise<number | string>;
  readonly kill: (signal: NodeJS.Signals) => void;
}

export interface ProcessOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Standard input; by default it is empty. */
  readonly input?: string;
  /** Modules to load first. */
  readonly preload?: readonly string[];
}

/** Runs `svc-gate` with arguments; it is killed when the test ends. The caller's SVC_ variables are not passed on. */
export function runCommand(
  t: TestContext,
  args: readonly string[],
  { cwd, env, input = "", preload = [] }: ProcessOptions = {},
): Process {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:SVC_|NODE_)/.test(name)));
  const imports = preload.flatMap((module) => ["--import", module]);
  const child = spawn(process.execPath, [...imports, main, ...args], {
    cwd: cwd ?? dirname(main),
    env: { ...inherited, ...compiled, ...env },
  });
  child.stdin.on("error", () => undefined); // The command may end before it has read its input.
  child.stdin.end(input);
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (piece) => (stdout += String(piece)));
  child.stderr.on("data", (piece) => (stderr += String(piece)));
  const exit = new Promise<number | string>((resolve) => {
    child.on("close", (code, signal) => resolve(code ?? signal ?? "unknown"));
  });
  atEnd(t, () => {
    child.kill("SIGKILL");
    return exit;
  });
  return {
    pid: child.pid ?? 0,
    stdout: () => stdout,
    stderr: () => stderr,
    exit,
    kill: (signal) => child.kill(signal),
  };
}

/** Runs a command to its end. */
export async function finish(
  t: TestContext,
  args: readonly string[],
  options?: ProcessOptions,
): Promise<{ readonly code: number | string; readonly stdout: string; readonly stderr: string }> {
  const running = runCommand(t, args, options);
  const code = await running.exit;
  return { code, stdout: running.stdout(), stderr: running.stderr() };
}

export interface Spawned extends Process {
  readonly address: string;
  readonly port: number;
}

/** Starts `svc-gate serve` as a process and waits until it listens. */
export async function spawnGate(
  t: TestContext,
  args: readonly string[] = [],
  options: ProcessOptions = {},
): Promise<Spawned> {
  const running = runCommand(t, ["serve", "--port", "0", ...args], options);
  let hasEnded = false;
  const ended = running.exit.then((code) => {
    hasEnded = true;
    throw new Error(`the gate ended with ${code} before it listened:\n${running.stdout()}${running.stderr()}`);
  });
  ended.catch(() => undefined);
  const listening = async (): Promise<string> => {
    for (;;) {
      const address = /^svc-gate listens on (\S+)/.exec(running.stdout())?.[1];
      if (address !== undefined) return address;
      if (hasEnded) return ended;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const address = await Promise.race([listening(), ended]);
  return { ...running, address, port: Number(new URL(address).port) };
}

export interface Refused {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/** Returns the last answer of an exchange, without the earlier ones. */
export async function send(gate: Running, bytes: string): Promise<Refused> {
  const text = await exchange(gate.port, bytes, isWhole);
  const [head = "", body = ""] = text.split(/\r\n\r\n(?=[^\r]*$)/);
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]), head, body };
}

function isWhole(text: string): boolean {
  const [head = "", ...rest] = text.split("\r\n\r\n");
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? Number.NaN);
  return rest.join("\r\n\r\n").length >= length;
}

export function post(body: string, ...headers: string[]): string {
  return requestText(
    "POST /check HTTP/1.1",
    ["Content-Type: application/json", `Content-Length: ${Buffer.byteLength(body)}`, ...headers],
    body,
  );
}

/** Keeps the sequencer's first batch waiting for the ledger until it is released. */
export function pauseLedger(
  gate: Running,
  t: TestContext,
): { readonly started: Promise<void>; readonly go: () => void } {
  const started = Promise.withResolvers<void>();
  const paused = Promise.withResolvers<void>();
  const begin = gate.ledger.begin.bind(gate.ledger);
  t.mock.method(gate.ledger, "begin", async () => {
    started.resolve();
    await paused.promise;
    return begin();
  });
  return { started: started.promise, go: paused.resolve };
}

/** Makes the ledger's disk full: no transaction keeps its rows. */
export function keepsNothing(gate: Running, t: TestContext): void {
  const begin = gate.ledger.begin.bind(gate.ledger);
  t.mock.method(gate.ledger, "begin", async () => {
    const transaction = await begin();
    t.mock.method(transaction, "commit", () => Promise.reject(new NotKept("disk-full", "full")));
    return transaction;
  });
}

/** Asks the gate without HTTP, as a call whose body had this many bytes. */
export function submit(gate: Running, bytes: number, keyName = "default"): Promise<{ readonly ok: boolean }> {
  const request = {
    toolName: "note.add",
    toolInput: new Map(),
    sessionId: null,
    platformState: null,
    inputText: "{}",
    platformText: null,
  };
  return gate.gate.check(request, { keyName, digest: "0".repeat(64), bytes });
}

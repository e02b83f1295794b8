/**
 * `svc-gate hook --agent HOST`: an agent host starts it before each tool call. It sends the host's input to the
 * gate and prints the gate's answer. One file without dependencies, because it runs before every call.
 *
 * It fails closed: the exit code is 2, which hosts read as a refusal, until an allowed answer has been written. The gate
 * translates the host's format, so this file has no rules.
 */
import { createHash } from "node:crypto";
import { fstatSync, openSync, readFileSync, closeSync } from "node:fs";
import { createRequire } from "node:module";
import { parseArgs } from "node:util";

const inputBytesMax = 1_048_576;
const answerBytesMax = 1_048_576;
const waitSecondsMax = 50;

const usage = `usage: svc-gate hook --agent NAME [options]

Ask the gate about the tool call that the host describes on stdin. Exit code 0: the answer is on stdout; 2: the call is blocked.

  --agent NAME          the host: claude-code, codex, gemini-cli or copilot-cli
  --url URL             the gate, by default SVC_URL or http://127.0.0.1:8787
  --key-file FILE       a file with the API key that only its owner can read, by default SVC_KEY_FILE
  --on-escalate WAY     deny (the default), wait, or for claude-code defer
  --wait SECONDS        how long to wait for a person, by default 600
  --servers LIST        for copilot-cli, the names of its MCP servers with commas between them
  --timeout SECONDS     the longest wait for the gate, by default 10

Set it up with: svc-gate hook install --agent NAME
`;

/** `import` would read every export of `node:http`, also WebSocket, which takes 40 ms. */
const load = createRequire(import.meta.url);

interface HookSettings {
  readonly agent: string;
  readonly url: URL;
  readonly key: string;
  readonly onEscalate: "defer" | "deny" | "wait";
  readonly servers: string | undefined;
  readonly waitMs: number;
  readonly timeoutMs: number;
}

/** Why the hook has no answer of the gate: a clause for the reason. */
class NoAnswer extends Error {}

/** Runs the command and sets the process's exit code. */
export async function hook(words: readonly string[]): Promise<void> {
  process.exitCode = 2;
  if (words.includes("--help")) {
    process.stdout.write(usage);
    process.exitCode = 0;
    return;
  }
  try {
    const settings = readSettings(words);
    const input = await readInput();
    const output = await ask(settings, input);
    await print(output);
    process.exitCode = 0;
  } catch (error) {
    const why = error instanceof NoAnswer ? error.message : "the hook itself failed";
    process.stderr.write(`Svc: ${why}; without a verdict the action is blocked.\n`);
  }
}

function readSettings(words: readonly string[]): HookSettings {
  const { values } = parseWords(words);
  const { agent = "", "on-escalate": onEscalate = "deny" } = values;
  if (!Object.hasOwn(outputs, agent)) throw new NoAnswer(`--agent must be one of ${Object.keys(outputs).join(", ")}`);
  if (onEscalate !== "deny" && onEscalate !== "wait" && onEscalate !== "defer")
    throw new NoAnswer("--on-escalate must be deny, wait or defer");
  if (onEscalate === "defer" && agent !== "claude-code") throw new NoAnswer(`${agent} cannot defer a call`);
  return {
    agent,
    url: addressOf(values.url ?? process.env["SVC_URL"] ?? "http://127.0.0.1:8787"),
    key: keyIn(values["key-file"] ?? process.env["SVC_KEY_FILE"]),
    onEscalate,
    servers: values.servers,
    waitMs: seconds("--wait", values.wait ?? "600") * 1000,
    timeoutMs: seconds("--timeout", values.timeout ?? "10") * 1000,
  };
}

function parseWords(words: readonly string[]): { readonly values: Readonly<Record<string, string | undefined>> } {
  const text = { type: "string" } as const;
  const names = ["agent", "url", "key-file", "on-escalate", "servers", "wait", "timeout"];
  try {
    return parseArgs({ args: [...words], options: Object.fromEntries(names.map((name) => [name, text])) });
  } catch (error) {
    throw new NoAnswer(`the hook's command line is wrong: ${(error as Error).message}`);
  }
}

function addressOf(text: string): URL {
  const isAddress = /^https?:\/\/[^/?#@]+(?:\/[^?#]*)?$/i.test(text) && URL.canParse(text);
  if (!isAddress) throw new NoAnswer("--url must be http:// or https://, a host, and no user, query or fragment");
  return new URL(text.replace(/\/+$/, ""));
}

/** The agent can read the key too, but other users of the machine must not. */
function keyIn(file: string | undefined): string {
  if (file === undefined) throw new NoAnswer("the hook has no key: name its file with --key-file");
  const key = readKey(file);
  if (!/^[\x21-\x7e]+$/.test(key)) throw new NoAnswer(`${file} does not contain an API key`);
  return key;
}

function readKey(file: string): string {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, "r");
    const isOpenToOthers = process.platform !== "win32" && (fstatSync(descriptor).mode & 0o077) !== 0;
    if (isOpenToOthers) throw new NoAnswer(`other users can read ${file}: run chmod 600 on it`);
    return readFileSync(descriptor, "utf8").trim();
  } catch (error) {
    if (error instanceof NoAnswer) throw error;
    throw new NoAnswer(`the key file ${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? "error"})`);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function seconds(name: string, text: string): number {
  if (!/^[1-9][0-9]{0,4}$/.test(text)) throw new NoAnswer(`${name} must be a whole number of seconds from 1 to 99999`);
  return Number(text);
}

async function readInput(): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of process.stdin as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > inputBytesMax) throw new NoAnswer(`the call is over ${inputBytesMax} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** Asks the gate. With `wait`, asks again when a person has decided. */
async function ask(settings: HookSettings, input: Buffer): Promise<string> {
  const end = performance.now() + settings.waitMs;
  const { output, approval } = await post(settings, input, settings.onEscalate);
  if (approval === undefined || settings.onEscalate !== "wait") return output;
  // The gate checks the call again, with the approval or the denial.
  return (await isDecided(settings, approval, end)) ? (await post(settings, input, "deny")).output : output;
}

/** Waits until a person has decided; false if the time is over. */
async function isDecided(settings: HookSettings, approval: string, end: number): Promise<boolean> {
  for (let left = end - performance.now(); left > 0; left = end - performance.now()) {
    const wait = Math.ceil(Math.min(waitSecondsMax, left / 1000));
    const { status, body } = await exchange(settings, {
      method: "GET",
      path: `/approvals/${approval}?wait=${wait}`,
      wait,
    });
    if (status !== 200) throw new NoAnswer(`the gate answered ${status} while a person decided`);
    if (objectIn(body)["next"] !== "wait") return true;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return false;
}

interface HookAnswer {
  readonly output: string;
  /** The id of an approval that a person has not decided yet. */
  readonly approval: string | undefined;
}

async function post(
  settings: HookSettings,
  input: Buffer,
  onEscalate: HookSettings["onEscalate"],
): Promise<HookAnswer> {
  const wait = onEscalate === "wait" ? Math.min(waitSecondsMax, settings.waitMs / 1000) : 0;
  const servers = settings.servers === undefined ? "" : `&servers=${encodeURIComponent(settings.servers)}`;
  const query = `on_escalate=${onEscalate}${wait > 0 ? `&wait=${wait}` : ""}${servers}`;
  const question = { method: "POST", path: `/hooks/${settings.agent}?${query}`, wait, input } as const;
  const { status, body, headers } = await exchange(settings, question);
  if (status !== 200) throw new NoAnswer(`the gate answered ${status} instead of a verdict`);
  if (headers["svc-request"] !== createHash("sha256").update(input).digest("hex"))
    throw new NoAnswer("the gate answered another request than the one sent");
  const approval = headers["svc-approval"];
  return {
    output: outputIn(body, settings.agent),
    approval: typeof approval === "string" && /^[0-9A-Za-z_-]{1,100}$/.test(approval) ? approval : undefined,
  };
}

/** Returns only what the host may read, written again: a member that this version does not know is not passed on. */
function outputIn(body: string, agent: string): string {
  const output = outputs[agent]?.(objectIn(body));
  if (output === undefined) throw new NoAnswer("the gate sent an answer that cannot be read");
  return JSON.stringify(output);
}

type AnswerMembers = Readonly<Record<string, unknown>>;

/** For each host, the output for an answer of the gate; undefined if the answer is none. */
const outputs: Readonly<Record<string, (answer: AnswerMembers) => object | undefined>> = {
  "claude-code": ({ hookSpecificOutput }) => {
    const {
      hookEventName,
      permissionDecision,
      permissionDecisionReason = "",
    } = (hookSpecificOutput ?? {}) as AnswerMembers;
    const isKnown = [undefined, "allow", "deny", "defer"].includes(permissionDecision as string | undefined);
    if (typeof hookEventName !== "string" || !isKnown || typeof permissionDecisionReason !== "string") return undefined;
    const decision = permissionDecision === undefined ? {} : { permissionDecision, permissionDecisionReason };
    return { hookSpecificOutput: { hookEventName, ...decision } };
  },
  // Codex runs a call without a decision and reports an `allow` as an error. So the gate must say `allow`, and Codex reads none.
  codex: ({ hookSpecificOutput }) => {
    const { hookEventName, permissionDecision, permissionDecisionReason } = (hookSpecificOutput ?? {}) as AnswerMembers;
    if (permissionDecision === "deny" && isReason(permissionDecisionReason))
      return { hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision, permissionDecisionReason } };
    const isReport = hookEventName === "PostToolUse" && permissionDecision === undefined;
    return isReport || permissionDecision === "allow" ? { hookSpecificOutput: { hookEventName } } : undefined;
  },
  "gemini-cli": ({ decision, reason, hookSpecificOutput }) => {
    if (decision === "deny" && isReason(reason)) return { decision, reason };
    if (decision === "allow") return { decision };
    const isReport = ((hookSpecificOutput ?? {}) as AnswerMembers)["hookEventName"] === "AfterTool";
    return isReport && decision === undefined ? {} : undefined;
  },
  "copilot-cli": ({ permissionDecision, permissionDecisionReason, decision }) => {
    if (decision === "none" && permissionDecision === undefined) return {};
    const isKnown = permissionDecision === "allow" || permissionDecision === "deny";
    return isKnown && isReason(permissionDecisionReason) ? { permissionDecision, permissionDecisionReason } : undefined;
  },
};

function isReason(value: unknown): boolean {
  return typeof value === "string" && value.trim() !== "";
}

function objectIn(body: string): AnswerMembers {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === "object" && value !== null) return value as AnswerMembers;
  } catch {
    // Reported below.
  }
  throw new NoAnswer("the gate sent an answer that cannot be read");
}

interface GateRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** Seconds that the gate may take longer. */
  readonly wait: number;
  readonly input?: Buffer;
}

interface GateResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** One exchange, from connect to the last byte within the time-out. Redirects and proxy variables are not followed. */
async function exchange(
  { url, key, timeoutMs }: HookSettings,
  { method, path, wait, input }: GateRequest,
): Promise<GateResponse> {
  const { request }: typeof import("node:https") = load(url.protocol === "https:" ? "node:https" : "node:http");
  const signal = AbortSignal.timeout(timeoutMs + wait * 1000);
  const headers = {
    authorization: `Bearer ${key}`,
    "accept-encoding": "identity",
    "user-agent": "svc-gate-hook/1.0.0",
    ...(input === undefined ? {} : { "content-type": "application/json", "content-length": input.length }),
  };
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void => reject(new NoAnswer(causeOf(error, signal, url)));
    const sent = request(
      `${url.href.replace(/\/$/, "")}${path}`,
      { method, headers, signal, agent: false },
      (response) => {
        const pieces: Buffer[] = [];
        let length = 0;
        response.on("data", (piece: Buffer) => {
          length += piece.length;
          if (length > answerBytesMax) response.destroy(new NoAnswer("the gate's answer is too long"));
          pieces.push(piece);
        });
        response.on("error", fail);
        response.on("end", () => {
          const { statusCode = 0, headers: found } = response;
          if (!response.complete) return fail(new Error("cut short"));
          return resolve({ status: statusCode, headers: found, body: Buffer.concat(pieces).toString("utf8") });
        });
      },
    );
    sent.on("error", fail);
    sent.end(input);
  });
}

function causeOf(error: NodeJS.ErrnoException, signal: AbortSignal, { origin }: URL): string {
  if (error instanceof NoAnswer) return error.message;
  if (signal.aborted) return `the gate at ${origin} did not answer in time`;
  const { code = "" } = error;
  return /^(?:ECONNREFUSED|ENOTFOUND|EAI_|ENETUNREACH|EHOSTUNREACH|ERR_TLS|CERT_|DEPTH_|SELF_|UNABLE_)/.test(code)
    ? `the gate at ${origin} could not be reached (${code})`
    : `the connection to the gate at ${origin} broke before a whole answer arrived`;
}

/** Resolves when the host's end of the pipe has the text: an unwritten refusal must not end with exit code 0. */
function print(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.on("error", reject);
    process.stdout.write(`${text}\n`, (error) => (error ? reject(error) : resolve()));
  });
}

/**
 * Runs the table of cases against a client: `node clients/conformance/run.ts [adapter command ...]`. Without a command,
 * it tests every client under every installed Python and Node. Exits with 1 if a case fails.
 */
import { createServer } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startAdapter, type Adapter } from "./adapter.ts";
import { cases, outcomes, type Case, type Options } from "./case.ts";
import { problemsOf, type ClientResult } from "./compare.ts";
import { runtimes, withAsync } from "./runtimes.ts";
import { listening, startServer } from "./server.ts";

export type CaseRun = { readonly id: string; readonly problems: readonly string[]; readonly result: ClientResult };

const casesAtOnce = 32;
const triesAlone = 6;
/**
 * A port below the range of free ports, which nothing serves: a free port could belong to another case by the time it
 * is used.
 */
const closedUrl = "http://127.0.0.1:4";

export type RunOptions = {
  /** The cases to run; all by default. */
  readonly only?: (one: Case) => boolean;
  /** Whether a fault must be certain: yes by default. A control of a broken client needs no second run and no long wait. */
  readonly again?: boolean;
};

/** Runs the cases against the adapter that the command starts. */
export async function runCases(
  command: readonly string[],
  { only = () => true, again = true }: RunOptions = {},
): Promise<CaseRun[]> {
  const strangers = [createServer(answerAll), createServer(answerAll)] as const;
  let visits = 0;
  for (const stranger of strangers) stranger.on("connection", () => (visits += 1));
  const [other, proxy] = await Promise.all(strangers.map((stranger) => listening(stranger)));
  const adapter = startAdapter(command, proxy ?? "");
  const waiting = cases()
    .filter(only)
    .toSorted((a, b) => Number(isTimed(b)) - Number(isTimed(a))); // cases that wait start first
  const runs: CaseRun[] = [];
  const work = async (): Promise<void> => {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
      runs.push(await runCase(one, { adapter, other: other ?? "", again }));
    }
  };
  await Promise.all(Array.from({ length: casesAtOnce }, work));
  if (again) await againAlone(runs, (one) => runCase(one, { adapter, other: other ?? "", again }));
  await adapter.end();
  for (const stranger of strangers) stranger.close();
  const sessions = runs.map(({ result }) => result.session_id).filter((id) => id !== undefined && id.length === 36);
  const own = [
    ...(visits === 0 ? [] : [`${visits} connections to a redirect's target or to a proxy of the environment`]),
    ...(new Set(sessions).size === sessions.length ? [] : ["two instances have one fresh session id"]),
  ];
  return [...runs, { id: "all-cases-together", problems: own, result: { id: "" } }];
}

/**
 * Runs a failed case with short time-outs or pauses again, alone. On a busy machine such a case can fail without a fault
 * of the client. A faulty client also fails alone.
 */
async function againAlone(runs: CaseRun[], run: (one: Case) => Promise<CaseRun>): Promise<void> {
  const timed = new Map(cases().flatMap((one) => (isTimed(one) ? [[one.id, one] as const] : [])));
  for (const [index, { id, problems }] of runs.entries()) {
    const one = timed.get(id);
    if (one === undefined || problems.length === 0) continue;
    for (let tries = 0; tries < triesAlone && runs[index]?.problems.length !== 0; tries += 1)
      runs[index] = await run(one);
  }
}

function isTimed(one: Case): boolean {
  return (
    Number(one.options.timeout_ms) < 20_000 ||
    one.calls.some(({ method, pause_ms }) => method === "settle" || pause_ms !== undefined)
  );
}

/** Answers every request as a gate would, so that a client that wrongly comes here does not notice it. */
function answerAll(socket: import("node:net").Socket): void {
  const body = '{"verdict":"ALLOW","reason":"Svc: from a stranger","mode":"enforce"}';
  socket.on("error", () => socket.destroy());
  socket.on("data", () => socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`));
}

async function runCase(
  one: Case,
  { adapter, other, again }: { readonly adapter: Adapter; readonly other: string; readonly again: boolean },
): Promise<CaseRun> {
  const turns = again ? 1000 : 100;
  const server = await startServer(one.server, other);
  const options = filled(one.options, server.url);
  const calls = one.calls.map((call) => ({ method: "check", ...call }));
  const result = await adapter.ask({ id: one.id, options, calls, at_once: one.at_once });
  // On a busy machine the client may end before this process has read its request.
  for (let turn = 0; turn < turns && server.attempts() < (one.attempts ?? 0); turn += 1) await pause(20);
  await server.stop();
  const problems = problemsOf({ case: one, options, outcomes: known, server }, result);
  return { id: one.id, problems, result };
}

const known = outcomes();

function filled(options: Options, gate: string): Options {
  if (typeof options.url !== "string") return options;
  const url = options.url
    .replace("$gate", gate)
    .replace("$closed", closedUrl)
    .replace("$tls", gate.replace("http:", "https:"));
  return { ...options, url };
}

async function main(command: readonly string[]): Promise<void> {
  const clients = command.length > 0 ? [{ name: command.join(" "), command }] : withAsync(runtimes().found);
  for (const client of clients) {
    const started = performance.now();
    const runs = await runCases(client.command);
    const failed = runs.filter(({ problems }) => problems.length > 0);
    for (const { id, problems } of failed) console.log(`${client.name} ${id}: ${problems.join("; ")}`);
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    console.log(`${client.name}: ${runs.length - failed.length} passed, ${failed.length} failed, ${seconds} s`);
    if (failed.length > 0) process.exitCode = 1;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));

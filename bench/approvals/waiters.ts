import { setTimeout } from "node:timers/promises";
import { cpuMicros, residentMb } from "../check.ts";
import { placeholder, type Load } from "../peers/load.ts";
import { send } from "../peers/measure.ts";
import { atLeast, atMost, median, medianInterval, printTable, round, shown, type Measures } from "../report.ts";
import { agent, callText, largeCalls, withDesk, type Desk, type Parked } from "./desk.ts";
import { Line, type Heard } from "./line.ts";

const waiterSeconds = 55;
/** Below the most that a gate lets one key have. */
const waitersOfKey = 60;
const decisions = 15;

interface Waiting {
  readonly lines: readonly Line[];
  readonly answers: readonly Promise<Heard | undefined>[];
}

interface Round {
  readonly without: Load;
  readonly beside: Load;
  /** How much the gate's memory grows while they wait. */
  readonly grownMb: number;
  /** The gate's processor time for one waiter, until it waits. */
  readonly startMicros: number;
  /** From a decision's request until the last of its two waiters has its answer, in milliseconds. */
  readonly heardMs: readonly number[];
  readonly decidedMs: readonly number[];
}

/**
 * Measures requests that wait for a decision: what they cost in memory, whether checks go on beside them, and how soon a
 * decision is heard. Each approval has two waiters, as of the agent's code and of a person's page.
 */
export async function measureWaiters(folder: string, count: number, rounds: number): Promise<Measures> {
  const found = await withDesk(folder, async (desk) => {
    const keys: string[] = [];
    for (let at = 0; at < count / waitersOfKey; at += 1)
      keys.push(await desk.makeKey(`page-${at}`, { scopes: ["receipts"] }));
    const parked = await desk.park(largeCalls("w", Math.ceil(count / 2) + rounds * decisions));
    await load(desk); // It fills the pools of memory.
    const measured: Round[] = [];
    for (let index = 0; index < rounds; index += 1)
      measured.push(await oneRound(desk, keys, parked.slice(index * decisions), count, index));
    return measured;
  });
  return report(found, count);
}

async function oneRound(
  desk: Desk,
  keys: readonly string[],
  parked: readonly Parked[],
  count: number,
  index: number,
): Promise<Round> {
  const { server } = desk;
  const first = index % 2 === 0 ? await load(desk) : undefined;
  const [beforeMb, beforeCpu] = [residentMb(server), cpuMicros(server.child)];
  const waiting = await startToWait(desk, keys, parked, count);
  const startMicros = (cpuMicros(server.child) - beforeCpu) / count;
  const grownMb = residentMb(server) - beforeMb;
  const beside = await load(desk);
  const heardMs: number[] = [];
  const decidedMs: number[] = [];
  for (const [at, each] of parked.slice(0, decisions).entries()) {
    const from = performance.now();
    const [decided] = await Promise.all([desk.approve(each), waiting.answers[2 * at], waiting.answers[2 * at + 1]]);
    heardMs.push(performance.now() - from);
    decidedMs.push(decided.ms);
  }
  for (const line of waiting.lines) line.close();
  await setTimeout(300);
  return { without: first ?? (await load(desk)), beside, grownMb, startMicros, heardMs, decidedMs };
}

/** Allowed checks that read a counter, over 64 connections. */
async function load({ server }: Desk): Promise<Load> {
  const found = await send({
    url: `${server.url}/check`,
    headers: { authorization: `Bearer ${agent}` },
    bodies: Array.from({ length: 64 }, (_, at) => callText({ wallet: `l${at}`, amount: 1, session: placeholder })),
    marker: '{"verdict":"ALLOW"',
    connections: 64,
    seconds: 2,
    sessions: 100_000,
    once: false,
  });
  if (found.failed > 0) throw new Error(`${found.failed} checks were not allowed: ${found.failure}`);
  return found;
}

/** Opens the waiters, and resolves when all of them wait. */
async function startToWait(
  { server }: Desk,
  keys: readonly string[],
  parked: readonly Parked[],
  count: number,
): Promise<Waiting> {
  const lines: Line[] = [];
  for (let at = 0; at < count; at += 1) lines.push(await Line.open(server.url));
  let answered = 0;
  const answers = lines.map(async (line, at) => {
    const { id } = parked[at >> 1] as Parked;
    const key = keys[Math.floor(at / waitersOfKey)] as string;
    const heard = await line.ask(`/approvals/${id}?wait=${waiterSeconds}`, key);
    answered += 1;
    if (heard.status !== 200 || !heard.body.includes('"status":"approved"'))
      throw new Error(`not heard: ${heard.body}`);
    return heard;
  });
  // A waiter that never hears a decision ends with its connection.
  for (const answer of answers) answer.catch(() => undefined);
  for (let before = -1; before !== cpuMicros(server.child);) {
    before = cpuMicros(server.child);
    await setTimeout(500);
  }
  if (answered > 0) throw new Error(`${answered} of ${count} requests did not wait`);
  return { lines, answers };
}

function report(found: readonly Round[], count: number): Measures {
  const ratio = medianInterval(found.map(({ without, beside }) => beside.perSecond / without.perSecond));
  const grownMb = Math.max(...found.map((each) => each.grownMb));
  const heard = medianInterval(found.flatMap(({ heardMs }) => heardMs));
  const after = median(found.flatMap(({ heardMs, decidedMs }) => heardMs.map((ms, at) => ms - (decidedMs[at] ?? 0))));
  console.log(`\n${count} requests that wait for a decision, ${found.length} rounds; a load of 64 connections`);
  printTable([
    ["", "value"],
    ["checks/s without them", round(median(found.map(({ without }) => without.perSecond)))],
    ["checks/s beside them", round(median(found.map(({ beside }) => beside.perSecond)))],
    ["beside / without, pairs", shown(ratio)],
    ["growth of the gate's memory, MB, greatest of the rounds", round(grownMb)],
    ["CPU until one waits, us", round(median(found.map(({ startMicros }) => startMicros)))],
    ["from a decision's request until both waiters hear it, ms", shown(heard)],
    ["the same, after the answer to the decision, ms", round(after)],
  ]);
  return {
    waiters_mb: atMost(grownMb, 64),
    checks_beside_waiters: atLeast(ratio.median, 0.9),
    heard_ms: atMost(heard.median, 1000),
  };
}

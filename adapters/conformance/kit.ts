/**
 * Runs the cases against a host. Three ledgers are compared: the witness that the tools write, the results
 * that the model is shown, and the gate's receipts. The host's own words prove nothing.
 */
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startModel, type ScriptedModel } from "../../packages/agent/src/model/server.ts";
import type { ScriptedCall, ScriptedTurn } from "../../packages/agent/src/model/script.ts";
import { compiled, root, temporaryFolder, type Ending } from "../../test/support/gate.ts";
import { startBadGate } from "./bad-gate.ts";
import type { Call, Driver, Ended, Host, HostCase, HostPlace, Plan, Turn } from "./case.ts";
import { cases } from "./cases.ts";
import { expectedOf, problemsOf, witnessIn } from "./compare.ts";
import { startRealGate, type RealGate, type Receipt } from "./fixture.ts";
import { startProxy, type Proxy } from "./proxy.ts";
import { patienceMs } from "../../test/support/patience.ts";

export interface CaseRun {
  readonly id: string;
  readonly title: string;
  /** Empty if the host passed. */
  readonly problems: readonly string[];
  /** Why the case does not apply; then it was not run. */
  readonly excuse?: string;
}

export interface RunOptions {
  /** Ids of the cases; all by default. */
  readonly ids?: readonly string[];
  /** The folder of the adapters. */
  readonly adapters?: string;
  /** Cases of one host at the same time. */
  readonly atOnce?: number;
  /** How long to wait for reports of outcomes and for commands in the background. */
  readonly lateMs?: number;
}

/** What the cases of one host share. */
interface World {
  readonly driver: Driver;
  readonly enforcing: RealGate;
  readonly observing: RealGate;
  readonly proxy: Proxy;
  readonly end: Ending;
  readonly host: Host;
  readonly lateMs: number;
  /** Checked again at the end: a tool may run late. */
  readonly witnesses: { readonly id: string; readonly file: string; readonly lines: number }[];
}

const payServer = fileURLToPath(new URL("pay-server.mjs", import.meta.url));
/** The deadline of the hook: short where the case waits for it, and long where a slow machine must not change the case. */
const hookSeconds = { broken: 2, working: 40 };

/** Runs the cases against a host, and then case G1: the host connected only to this machine. */
export async function runHost(end: Ending, driver: Driver, options: RunOptions = {}): Promise<readonly CaseRun[]> {
  const [enforcing, observing] = [
    await startRealGate(end, driver, "enforce"),
    await startRealGate(end, driver, "observe"),
  ];
  const proxy = await startProxy();
  const folder = temporaryFolder(end);
  const adapters = options.adapters ?? join(root, "adapters");
  const host = driver.open({ folder, env: environmentIn(folder, proxy), adapters });
  const world: World = {
    driver,
    enforcing,
    observing,
    proxy,
    end,
    host,
    lateMs: options.lateMs ?? patienceMs,
    witnesses: [],
  };
  const waiting = cases.filter(({ id }) => options.ids?.includes(id) ?? true);
  const runs: CaseRun[] = [];
  const work = async (): Promise<void> => {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) runs.push(await tryCase(one, world));
  };
  await Promise.all(Array.from({ length: options.atOnce ?? 1 }, work));
  await host.stop?.();
  await proxy.stop();
  const late = world.witnesses.filter(({ file, lines }) => witnessIn(file).length !== lines);
  const reached = [...new Set(proxy.log)].map((target) => `it asked for ${target}`);
  const last = [...reached, ...late.map(({ id }) => `case ${id}: a tool ran after the end of the run`)];
  const order = cases.map(({ id }) => id);
  return [
    ...runs.toSorted((one, other) => order.indexOf(one.id) - order.indexOf(other.id)),
    { id: "G1", title: "the host connected only to this machine, and nothing ran late", problems: last },
  ];
}

async function tryCase(one: HostCase, world: World): Promise<CaseRun> {
  const { id, title } = one;
  const excuse = excuseOf(one, world.driver);
  if (excuse !== undefined) return { id, title, problems: [], excuse };
  try {
    return { id, title, problems: await runCase(one, world) };
  } catch (error) {
    return { id, title, problems: [`the case could not go on: ${String(error)}`] };
  }
}

function excuseOf(one: HostCase, driver: Driver): string | undefined {
  const isTyped = one.turns.some((turn) => typeof turn !== "string" && turn.some(({ tool }) => tool === "stdin"));
  return isTyped && driver.stdin === undefined
    ? "the host has no tool that writes to a running command"
    : driver.excuse(one);
}

async function runCase(one: HostCase, world: World): Promise<readonly string[]> {
  const { driver, end, host } = world;
  const kind = one.gate ?? "enforce";
  const bad = kind === "enforce" || kind === "observe" ? undefined : await startBadGate(kind);
  const needsOwn = driver.choosesSession === false || one.person === "approves-then-rule-blocks";
  const own = needsOwn ? await startRealGate(end, driver, kind === "observe" ? kind : "enforce") : undefined;
  const gate = own ?? (kind === "observe" ? world.observing : world.enforcing);
  const model = await startModel(scriptsOf(one, driver));
  try {
    const isBroken = bad !== undefined || (one.hook ?? "ours") !== "ours";
    const plan = planOf(one, world, { model, url: bad?.url ?? gate.url, key: gate.key, isBroken });
    const ended = await runBoth(host, plan, gate);
    const file = join(plan.folder, "project", "witness.txt");
    await enoughLines(file, expectedOf(one, driver).ran.length, world.lateMs);
    const witness = witnessIn(file);
    world.witnesses.push({ id: one.id, file, lines: witness.length });
    const receipts = bad === undefined ? await receiptsOf(one, gate, plan.session, world.lateMs) : [];
    const ledgers = { witness, secret: secretOf(plan.folder), shown: model.shown, receipts, ended };
    const problems = problemsOf(one, driver, ledgers);
    return problems.length === 0 ? [] : [...problems, `the host said: ${shortened(ended.detail)}`];
  } finally {
    await Promise.all([model.stop(), bad?.stop()]);
  }
}

/** Returns the start and the end of a long text. An error of Python is in its last lines. */
function shortened(text: string): string {
  return text.length <= 1200 ? text : `${text.slice(0, 300)} ... ${text.slice(-900)}`;
}

/** Runs the host, lets the person act, and runs the host again if the case says so. */
async function runBoth(host: Host, plan: Plan, gate: RealGate): Promise<Ended> {
  const one = plan.case;
  if (one.person === "approves-while-held") {
    const [held] = await Promise.all([host.run(plan), gate.approve(plan.session)]);
    return held;
  }
  const first = await host.run(plan);
  if (one.again === undefined) return first;
  const isParked = one.again.length === 0;
  if (isParked && first.ended !== "parked") throw new Error(`the run did not park: ${first.detail}`);
  if (one.person === "denies") await gate.deny(plan.session);
  else if (one.person !== undefined) await gate.approve(plan.session);
  if (one.person === "approves-too-late") await pause(1200);
  if (one.person === "approves-then-rule-blocks") await gate.blockMedium();
  return host.run({ ...plan, isResumed: true, prompt: isParked ? "" : `Go on with [[${one.id}-again]]` });
}

function scriptsOf({ id, turns, again = [], inner = {} }: HostCase, driver: Driver): Record<string, ScriptedTurn[]> {
  const named = (all: readonly Turn[]): ScriptedTurn[] =>
    all.flatMap((turn): ScriptedTurn[] => {
      if (typeof turn === "string") return [turn];
      const calls = turn.map((call) => scriptedCall(call, driver));
      const isDelegated = driver.waits !== undefined && turn.some(({ tool }) => tool === "agent");
      return isDelegated ? [calls, [driver.waits.call]] : [calls];
    });
  const scripts: Record<string, readonly Turn[]> = { [id]: turns, [`${id}-again`]: again, ...inner };
  return Object.fromEntries(Object.entries(scripts).map(([name, all]) => [name, named(all)]));
}

function scriptedCall({ tool, input }: Call, driver: Driver): ScriptedCall {
  if (tool === "unknown") return { tool: "no_such_tool", arguments: input };
  if (tool === "stdin") return driver.stdin?.(input) ?? { tool: "no_such_tool", arguments: "{}" };
  return { tool: driver.tools[tool].host, arguments: driver.inputOf?.(tool, input) ?? input };
}

interface Peers {
  readonly model: ScriptedModel;
  readonly url: string;
  readonly key: string;
  /** True if the gate or the hook is one that fails. */
  readonly isBroken: boolean;
}

/** Returns what a host may know of this machine: where programs are, a home of its own, and the proxy that refuses. */
function environmentIn(folder: string, proxy: Proxy): HostPlace["env"] {
  for (const name of ["home", "tmp"]) mkdirSync(join(folder, name));
  const proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
  return {
    PATH: [dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(delimiter),
    HOME: join(folder, "home"),
    TMPDIR: join(folder, "tmp"),
    LANG: "C.UTF-8",
    ...compiled,
    // Without it, the Python package openai builds its types at their first use, and threads disturb each other there.
    DEFER_PYDANTIC_BUILD: "false",
    NO_PROXY: "127.0.0.1,localhost",
    no_proxy: "127.0.0.1,localhost",
    ...Object.fromEntries(proxies.map((name) => [name, proxy.url])),
  };
}

function planOf(one: HostCase, { driver, end, proxy }: World, { model, url, key, isBroken }: Peers): Plan {
  const folder = temporaryFolder(end);
  const env = environmentIn(folder, proxy);
  mkdirSync(join(folder, "project"));
  if (one.project === "reads-secret") writeFileSync(join(folder, "project", "secret.txt"), `secret ${randomUUID()}\n`);
  return {
    case: one,
    prompt: `Please work on [[${one.id}]]`,
    isResumed: false,
    folder,
    session: driver.choosesSession === false ? "" : randomUUID(),
    model: model.url,
    gate: url,
    key,
    env,
    payServer: [process.execPath, payServer, join(folder, "project", "witness.txt")],
    secondsForHook: isBroken ? hookSeconds.broken : hookSeconds.working,
  };
}

/** Returns the receipts of the session, after a moment for the reports of outcomes. */
async function receiptsOf(
  { expect }: HostCase,
  gate: RealGate,
  session: string,
  lateMs: number,
): Promise<readonly Receipt[]> {
  const end = Date.now() + lateMs;
  for (;;) {
    const receipts = await gate.receipts(session);
    const isReported = receipts.every(({ answered, outcome }) => answered !== "ALLOW" || outcome !== undefined);
    if (expect.hasOutcomes !== true || isReported || Date.now() > end) return receipts;
    await pause(50);
  }
}

/** Waits a moment for commands in the background. */
async function enoughLines(file: string, lines: number, lateMs: number): Promise<void> {
  if (lines === 0) return;
  for (const end = Date.now() + lateMs; witnessIn(file).length < lines && Date.now() < end;) await pause(50);
}

function secretOf(folder: string): string | undefined {
  const file = join(folder, "project", "secret.txt");
  return existsSync(file) ? readFileSync(file, "utf8").trim() : undefined;
}

import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { freePort } from "../free-port.ts";
import { bounds } from "../../../packages/gate/src/ledger/store/postgres/session.ts";
import { apiKey } from "../gate-process.ts";
import { mutatedEnvironment } from "../mutation/sources.ts";
import { planted, type Bug } from "./bugs.ts";
import { Load } from "./clients.ts";
import { Cluster } from "./cluster.ts";
import { contractOf, editions } from "./contract.ts";
import { exclusive, failures, type FailureName, type Field } from "./failures.ts";
import { Dice } from "./random.ts";
import { compareWithLedger, type LedgerFindings } from "./ledger-comparison.ts";
import { Replica, type GateEnd } from "./replica.ts";

export interface CampaignOptions {
  readonly seed: number;
  /** The failures in order; some happen at the same time. */
  readonly failures: readonly FailureName[];
  readonly replicas: number;
  readonly clients: number;
  /** A client's pause between two calls, in milliseconds on average. */
  readonly pauseMs: number;
  /**
   * The session bounds of the gates: the normal ones, or a quarter of them, so that more failures fit into a minute.
   */
  readonly bounds: "short" | "whole";
  readonly bug?: Bug;
  /** No failure starts after this time; then the campaign compares the answers with the ledger. */
  readonly enough?: AbortSignal;
  /** Receives a line for each event. */
  readonly say?: (sentence: string) => void;
}

export interface Report extends LedgerFindings {
  readonly seed: number;
  readonly happened: ReadonlyMap<string, number>;
  readonly answered: number;
  readonly refused: ReadonlyMap<string, number>;
  readonly cut: number;
  /** The time from the call to the answer, the refusal or the cut. */
  readonly slowestMs: number;
  readonly seconds: number;
  /** Gates that ended without being killed and were started again. */
  readonly ends: readonly GateEnd[];
  /** The answer of GET /ledger/verify at the end. */
  readonly verified: { readonly ok: boolean; readonly rows: number };
  /** Calls after the last failure, all of which were answered. */
  readonly after: number;
}

/** The most failures at the same time. */
const togetherMax = 3;
/** The time between the starts of two failures, in milliseconds. */
const betweenMs = [200, 1500] as const;
/** A failure counts as one under load only if a call was answered since the previous failure. */
const answersBetween = 10;
const patienceMs = 60_000;

const short = { connect: 1500, lock: 1500, statement: 3000, idleInTransaction: 2500, answer: 6000, settle: 10_000 };
const spans = {
  short: { tooLongMs: short.idleInTransaction, settleMs: short.settle },
  whole: { tooLongMs: bounds.idleInTransaction, settleMs: bounds.settle },
} as const;

/**
 * Runs gates over a replicated PostgreSQL under load with failures, and checks the ledger at the end.
 *
 * @returns the reason if this machine cannot run it
 */
export async function runCampaign(options: CampaignOptions): Promise<Report | string> {
  const endings: (() => Promise<void> | void)[] = [];
  try {
    return await campaign(options, { after: (ending) => void endings.unshift(ending) });
  } finally {
    for (const ending of endings) await ending();
  }
}

async function campaign(
  options: CampaignOptions,
  t: { after: (ending: () => Promise<void> | void) => void },
): Promise<Report | string> {
  const { seed, replicas, clients, pauseMs, bounds: length } = options;
  const dice = new Dice(seed);
  const cluster = await Cluster.start(t);
  if (typeof cluster === "string") return cluster;
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-campaign-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const from = Date.now();
  const mandate = join(folder, "campaign.yaml");
  writeFileSync(mandate, contractOf(editions[0]));
  const gates: Field["gates"][number][] = [];
  for (let at = 0; at < replicas; at += 1)
    gates.push(await startReplica(at, { cluster, folder, mandate, dice, options }));
  t.after(() => Promise.all(gates.map(({ replica }) => replica.stop())).then(() => undefined));
  await allServe(gates);
  const urls = gates.map(({ replica }) => replica.url);
  const load = new Load({ urls, dice: new Dice(seed + 1), pauseMs, accounts: "a", key: apiKey });
  const startedAt = performance.now();
  load.start(clients);
  const edit = reloading(mandate, gates, new Dice(seed + 2));
  const happened = await happen({ cluster, gates, ...spans[length] }, options, dice, load);
  await edit.end();
  await cluster.whenSafe();
  await load.end();
  await allServe(gates);
  const after = new Load({ urls, dice, pauseMs, accounts: "z", key: apiKey });
  after.start(2);
  await enough(after, 20);
  await after.end();
  const verified = await verify(urls[0] ?? "");
  const results = [...load.results, ...after.results];
  const findings = await compareWithLedger(cluster.primary.url(), "root", results, { from, to: Date.now() });
  return {
    ...findings,
    seed,
    happened,
    verified,
    answered: load.answered + after.answered,
    refused: countOf(results.flatMap((each) => (each.kind === "refused" ? [each.code] : []))),
    cut: results.filter(({ kind }) => kind === "cut").length,
    slowestMs: Math.round(load.slowestMs),
    seconds: Math.round((performance.now() - startedAt) / 1000),
    ends: gates.flatMap(({ replica }) => replica.ends),
    after: after.answered,
  };
}

interface RunSetup {
  readonly cluster: Cluster;
  readonly folder: string;
  readonly mandate: string;
  readonly dice: Dice;
  readonly options: CampaignOptions;
}

/**
 * Starts a replica. Each has its own clock, which is wrong by hours and jumps; every second one has a pin next to the
 * database.
 */
async function startReplica(
  at: number,
  { cluster, folder, mandate, dice, options }: RunSetup,
): Promise<Field["gates"][number]> {
  const { line, url } = await cluster.addLine();
  const own = join(folder, String(at));
  mkdirSync(own);
  const hour = 3_600_000;
  const clock = Array.from({ length: 4 }, () => Math.round(dice.between(-12 * hour, 12 * hour)));
  const settings = {
    SVC_API_KEY: apiKey,
    SVC_MODE: "enforce",
    SVC_LOG: "fatal",
    SVC_MANDATE: mandate,
    SVC_DATA_DIR: own,
    SVC_DATABASE_URL: url,
    SVC_DATABASE_POOL: "4",
    SVC_SIGNING_KEY: signingKey,
    ...(at % 2 === 0 ? {} : { SVC_PIN: join(own, "pin") }),
    CAMPAIGN_CLOCK: JSON.stringify(clock),
    ...(options.bounds === "whole" ? {} : { CAMPAIGN_BOUNDS: JSON.stringify(short) }),
    ...mutatedEnvironment(options.bug === undefined ? [] : planted[options.bug]),
  };
  return { replica: new Replica({ name: `replica ${at}`, port: await freePort(), settings }), line };
}

/** Gates that share a ledger share the key that signs its heads. */
const signingKey = generateKeyPairSync("ed25519").privateKey.export({ format: "pem", type: "pkcs8" });

async function happen(
  field: Field,
  { failures: names, enough: signal, say = () => undefined }: CampaignOptions,
  dice: Dice,
  load: Load,
): Promise<ReadonlyMap<string, number>> {
  const happened: string[] = [];
  const underWay = new Set<Promise<void>>();
  let serversTurn: Promise<unknown> = Promise.resolve();
  // Failures whose moment did not come are tried again at the end.
  const waiting = [...names];
  for (let at = 0; at < 2 * names.length && (at < waiting.length || underWay.size > 0); at += 1) {
    if (at >= waiting.length) await Promise.all(underWay);
    const name = waiting[at];
    if (name === undefined) break;
    if (signal?.aborted === true) break;
    const startedAt = performance.now();
    await enough(load, answersBetween);
    await wait(dice.between(...betweenMs));
    while (underWay.size >= togetherMax) await Promise.race(underWay);
    say(
      `${at + 1}/${waiting.length} ${name}; ${load.answered} answered, ${Math.round(performance.now() - startedAt)} ms since the last`,
    );
    const failure = (failures[name] as (typeof failures)[string])(field, dice);
    const transaction = exclusive.has(name) ? serversTurn : Promise.resolve();
    const over = transaction.then(failure).then((hasHappened) => {
      if (hasHappened) happened.push(name);
      else waiting.push(name);
      underWay.delete(over);
    });
    if (exclusive.has(name)) serversTurn = over;
    underWay.add(over);
  }
  await Promise.all(underWay);
  return countOf(happened);
}

/** Resolves after this many more answers, or after a time limit if the load has stopped. */
async function enough(load: Load, answers: number): Promise<void> {
  const [before, until] = [load.answered, performance.now() + patienceMs];
  while (load.answered < before + answers && performance.now() < until) await wait(20);
}

/** Sometimes changes a limit of the contract and reloads one of the gates. */
function reloading(mandate: string, gates: Field["gates"], dice: Dice): { end(): Promise<void> } {
  const ending = new AbortController();
  const run = async (): Promise<void> => {
    for (let edition = 1; !ending.signal.aborted; edition = 1 - edition) {
      await wait(dice.between(1000, 4000));
      // A gate that starts now must not read half of it.
      writeFileSync(`${mandate}.new`, contractOf(editions[edition] ?? 0));
      renameSync(`${mandate}.new`, mandate);
      await dice.oneOf(gates).replica.reload();
    }
  };
  const running = run();
  return {
    end: () => {
      ending.abort();
      return running;
    },
  };
}

async function allServe(gates: Field["gates"]): Promise<void> {
  const until = performance.now() + 180_000;
  for (const { replica } of gates) {
    while (!(await replica.isServing())) {
      if (performance.now() > until)
        throw new Error(`a gate does not serve: ${JSON.stringify(replica.ends.slice(-2))}`);
      await wait(100);
    }
  }
}

async function verify(url: string): Promise<Report["verified"]> {
  const response = await fetch(`${url}/ledger/verify`, { headers: { authorization: `Bearer ${apiKey}` } });
  return (await response.json()) as Report["verified"];
}

function countOf(names: readonly string[]): ReadonlyMap<string, number> {
  return new Map([...Map.groupBy(names, (name) => name)].map(([name, all]) => [name, all.length]));
}

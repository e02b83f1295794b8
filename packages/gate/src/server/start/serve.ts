import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import pino, { type Logger } from "pino";
import { openPostgres } from "../../ledger/in-database.ts";
import { dataFolder, sqliteThreads, type Database, type Ledger, type SqliteThreads } from "../../ledger/mod.ts";
import { NoLedger } from "../../ledger/errors.ts";
import { good, type Result } from "../../../../core/src/wire/mod.ts";
import type { AnchorSites } from "../anchoring/anchors.ts";
import { anchorSites } from "../anchoring/sites.ts";
import type { Config } from "./config.ts";
import { noConsole } from "./console-settings.ts";
import { consoleOrigin, openConsole, requireOidc } from "./console.ts";
import type { Gate } from "../service/gate.ts";
import type { ReloadResult } from "../service/policy-changes.ts";
import { makeServer, type HttpOptions } from "../http/server.ts";
import { readFirstKeyDigest, KeyRing, loadFirstKey, recordFirstKey, type FirstKey } from "../keys/keys.ts";
import { KeyDeciders } from "../approvals/deciders.ts";
import type { ReadAdmission } from "../admission/reads.ts";
import { QueueBudget } from "../admission/queue.ts";
import { listen, openOps, requireFreePorts } from "./listen.ts";
import { openOperatorDoor } from "./operator-file.ts";
import { openFilesWarning } from "../settings/gate-files.ts";
import { openFrom, type OpenedGate, type GateSource, type SharedParts } from "../service/gate-source.ts";
import { StartRefused } from "../errors.ts";
import { Rates } from "../keys/rate.ts";
import { RefusedInputs } from "../core/refused-inputs.ts";
import type { ServeHooks } from "../policy/hooks.ts";
import { Service, type ReloadTests } from "../service/service.ts";
import { readTenants, type TenantEntry } from "../settings/tenants-file.ts";
import { endpointsOf } from "../notify/endpoints.ts";
import { Notifier } from "../notify/notifier.ts";
import { Metrics } from "../telemetry/metrics.ts";
import { areTracesConfigured, openTraces, type Traces } from "../telemetry/traces.ts";
import { closeGate, Tenants } from "../service/tenants.ts";
import { collectWarnings } from "./warnings.ts";
import { engine } from "../version.ts";

export interface RunningGate {
  readonly address: string;
  /** The address of the second listener, if there is one. */
  readonly ops: string | undefined;
  /** The address of the console, if the gate serves it. */
  readonly console: string | undefined;
  /** Why it does not, with what to set, unless a setting says so. */
  readonly noConsole: string | undefined;
  /** The gate of the root. */
  readonly gate: Gate;
  readonly ledger: Ledger;
  readonly reads: ReadAdmission;
  readonly contracts: readonly string[];
  readonly tenants: number;
  readonly made: FirstKey["made"];
  /** Undefined if this start did not change the mode. */
  readonly modeChange: ModeChange | undefined;
  /** Sentences for the operator, which the log has too. */
  readonly warnings: readonly string[];
  /** Rejects with the fault after which the gate answers nothing more. */
  readonly failed: Promise<never>;
  /** Reads the files again and puts them in force. Errors are logged and change nothing. */
  reload(by: string): Promise<void>;
  /** Answers the waiting calls, then closes everything. */
  stop(): Promise<void>;
}

/** A change of the mode at this start, and the row that records it. */
export interface ModeChange {
  readonly from: string;
  readonly to: string;
  readonly setting: string;
  readonly seq: number;
}

/** The time for clients that read an answer slowly or never finish a body. It starts after every check is answered. */
const stopPatienceMs = 3000;

/** A tenant without requests for this time is closed. */
const tenantIdleMs = 60_000;

/** How often the gate reads what another gate on the same database has changed: keys, stops, the contract and the mode. */
const refreshMs = 1000;
const noRefresh = (): void => undefined; // If the database cannot be reached, nothing is decided.

/** An open tenant uses files and a cache. In a database it uses little more than its compiled contracts. */
const tenantsOpenMax = 64;
const tenantsSharedOpenMax = 1000;

/**
 * The number of threads that write the tenants' ledgers. The same number reads them. Each needs about 12 MB; the root
 * has its own.
 */
const tenantThreadsMax = 4;

/**
 * Starts a gate: contracts, ledger, counters, keys, then the listener. All mistakes are reported before it listens.
 *
 * @throws {StartRefused} with all errors of the contracts (exit code 2), or {LedgerRefused}
 */
export async function serve(config: Config, warnings: readonly string[], hooks: ServeHooks = {}): Promise<RunningGate> {
  const log = pino(
    { level: config.log, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: 2, sync: true }),
  );
  const told = collectWarnings(log);
  for (const warning of warnings) log.warn(warning);
  const tls = await readTls(config);
  const traces = await openConfiguredTraces(log);
  const opened = await openLedgers(config, log);
  const { rootSource, tenants, readSources, metrics, database, notifier, budget, close } = opened;
  const { gate: root, ledger, start } = opened.root;
  try {
    const { keys, first } = await openKeys(config, root, tenants, log);
    opened.deciders.use(keys);
    const rates = new Rates({
      fallback: (tenant) => (tenant === null ? undefined : tenants?.sourceOf(tenant)?.rate) ?? config.rate,
    });
    const started = await start();
    if (first !== undefined) await recordFirstKey(root, first, log);
    const parts = { log, keys, root, rootSource, tenants, readSources, metrics, notifier, traces, rates, hooks };
    const { connections, publicUrl } = config;
    const service = new Service({ ...parts, tests: testsOfReload(config, hooks), budget, connections, publicUrl });
    const door = await openConsole(config, { keys, log, ...hooks });
    const server = makeServer({ service, ...config, console: door, log, tls });
    const ops = await openOps(service, config, log);
    const address = await listen(server, config).catch(async (error: unknown) => {
      await ops?.close();
      throw error;
    });
    service.consoleOrigin = door && consoleOrigin(config, address);
    const operated = { address, key: keys.known.makeOperatorKey(), cert: tls?.cert };
    const operator = await openOperatorDoor(config.dataDir, operated, log);
    warnOfOpenFiles(config, log);
    void tenants?.openForSenders(notifier);
    // This is last, so that a refused start leaves no timer behind.
    told.end();
    const follow = followOthers(keys, root);
    const refreshing = database && setInterval(() => follow().catch(noRefresh), refreshMs).unref();
    return {
      address,
      ops: ops?.address,
      console: service.consoleOrigin && `${service.consoleOrigin}/console`,
      noConsole: config.console === undefined ? noConsole(config) : undefined,
      gate: root,
      ledger,
      reads: service.reads,
      contracts: root.policy.policySet.contracts,
      tenants: opened.tenantsAtStart,
      made: first?.made,
      modeChange: modeChangeOf(started, config),
      warnings: told.sentences,
      failed: root.failed,
      reload: (by) => service.reloadAll(by),
      stop: async () => {
        await service.drain();
        await closeServer(server);
        clearInterval(refreshing);
        await operator.close();
        await keys.close();
        await close();
        await traces?.stop();
        await ops?.close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function warnOfOpenFiles(config: Config, log: Logger): void {
  const open = openFilesWarning(config);
  if (open !== undefined) log.warn(open);
}

/** Follows what other gates have changed, also while no call comes here: else /health and the console show an old mode. */
function followOthers(keys: KeyRing, gate: Gate): () => Promise<void> {
  let followed = keys.known.lastRow;
  let isWaiting = false;
  return async () => {
    await keys.refresh();
    const { lastRow } = keys.known;
    if (lastRow === followed || isWaiting) return;
    isWaiting = true;
    const passed = await gate.passHead(true).finally(() => (isWaiting = false));
    if (passed.ok) followed = lastRow;
  };
}

/** Waits until every answer is sent. A client that keeps its connection open after that is not waited for. */
async function closeServer(server: ReturnType<typeof makeServer>): Promise<void> {
  const patience = setTimeout(() => server.server.closeAllConnections(), stopPatienceMs);
  const idle = setInterval(() => server.server.closeIdleConnections(), 50);
  await server.close();
  clearInterval(idle);
  clearTimeout(patience);
}

interface OpenLedgers extends OpenTenants {
  readonly database: Database | undefined;
  readonly root: OpenedGate;
  readonly rootSource: GateSource;
  readonly tenantsAtStart: number;
  readonly metrics: Metrics;
  readonly deciders: KeyDeciders;
  readonly notifier: Notifier | undefined;
  readonly budget: QueueBudget;
  readonly close: () => Promise<void>;
}

/** Opens the ledgers of the root and of the tenants, after everything that can refuse the start was read. */
async function openLedgers(config: Config, log: Logger): Promise<OpenLedgers> {
  const entries = await tenantEntries(config);
  if (!entries.ok) throw new StartRefused(entries.problem, 2);
  const sites = await sitesOf(config);
  const endpoints = await endpointsOf(config);
  await requireOidc(config);
  await requireFreePorts(config);
  if (config.databaseUrl === undefined) await readFirstKeyDigest(config.dataDir); // A damaged file refuses the start here.
  const database = await openDatabase(config, log);
  const rootSource = makeRootSource(config, database);
  const metrics = new Metrics();
  const refusedInputs = new RefusedInputs({
    bytesMax: config.refusedInputMax,
    bytesPerDay: config.refusedInputPerDay,
  });
  const deciders = new KeyDeciders();
  const notifier = endpoints && new Notifier({ endpoints, publicUrl: config.publicUrl, log, observer: metrics });
  const budget = new QueueBudget({ waitMsMax: config.queueMs });
  const shared = {
    log,
    observer: metrics,
    budget,
    refusedInputs,
    sites,
    deciders,
    notifier,
  };
  const root = await openFrom(rootSource, shared).catch(async (error: unknown) => {
    await database?.close();
    throw error instanceof NoLedger ? noKey : error;
  });
  const opened = openTenants(config, database, entries.value, {
    ...shared,
    rootStops: async () => (await root.ledger.standing.now()).stops,
  });
  const close = async (): Promise<void> => {
    await opened.tenants?.close();
    await closeGate(root.gate);
    await database?.close();
  };
  const tenantsAtStart = entries.value.length;
  return { ...opened, database, root, rootSource, tenantsAtStart, metrics, deciders, notifier, budget, close };
}

interface OpenTenants {
  /** Undefined if SVC_TENANTS is not set. */
  readonly tenants: Tenants | undefined;
  /** Reads the tenants' file again. */
  readonly readSources: () => Promise<Result<readonly GateSource[], string>>;
}

function openTenants(
  config: Config,
  database: Database | undefined,
  entries: readonly TenantEntry[],
  shared: SharedParts,
): OpenTenants {
  const threads = sqliteThreads(tenantThreadsMax);
  const sources = (found: readonly TenantEntry[]): readonly GateSource[] =>
    found.map((entry) => makeTenantSource(entry, config, { database, threads }));
  const openMax = config.tenantsOpen ?? (database === undefined ? tenantsOpenMax : tenantsSharedOpenMax);
  return {
    tenants:
      config.tenants === undefined
        ? undefined
        : new Tenants(sources(entries), { ...shared, openMax, idleMs: tenantIdleMs }),
    readSources: async () => {
      const read = await tenantEntries(config);
      return read.ok ? good(sources(read.value)) : read;
    },
  };
}

/** Returns the tests that a reload runs; undefined if there are none. */
function testsOfReload({ reloadTests }: Config, { runTests }: ServeHooks): ReloadTests | undefined {
  return reloadTests === undefined || runTests === undefined ? undefined : { path: reloadTests, run: runTests };
}

function modeChangeOf(started: ReloadResult | undefined, { modeSetting: setting }: Config): ModeChange | undefined {
  if (started?.receipt === undefined || started.before.mode === started.now.mode) return undefined;
  return { from: started.before.mode, to: started.now.mode, setting, seq: started.receipt.seq };
}

/**
 * Opens the keys and the first key. With a database the gate does not make a first key, because each replica would make
 * a different one.
 */
async function openKeys(
  { apiKey, dataDir, databaseUrl }: Config,
  gate: Gate,
  tenants: Tenants | undefined,
  log: Logger,
): Promise<{ readonly keys: KeyRing; readonly first: FirstKey | undefined }> {
  const first = databaseUrl !== undefined && apiKey === undefined ? undefined : await loadFirstKey(dataDir, apiKey);
  if (first?.warning !== undefined) log.warn(first.warning);
  const isTenant = (id: string): boolean => tenants?.has(id) === true;
  const keys = await KeyRing.open({ gate, ledger: gate.ledger, firstKey: first?.digest, isTenant });
  if (keys.known.isEmpty && first === undefined) throw keys.known.recorded.length === 0 ? noKey : allRevoked;
  if (keys.known.isFirstKeyReplaced && apiKey !== undefined)
    log.warn(
      "the key `default` was rotated or revoked, so the gate refuses SVC_API_KEY, at the latest when the overlap of the " +
        "rotation ends: remove SVC_API_KEY from the settings",
    );
  if (!keys.known.isFirstKeyReplaced || first?.made === undefined) return { keys, first };
  log.warn(
    `a row of the ledger rotated or revoked the key \`default\`, so the new key in ${first.made.file} is refused with 401: ` +
      "make a key with `svc-gate keys create NAME`",
  );
  return { keys, first: { ...first, made: undefined } };
}

const noKey = new StartRefused(
  "the gate has no API key, so nobody could call it: set SVC_API_KEY, or make a key with `svc-gate migrate --first-key FILE`",
);

const allRevoked = new StartRefused(
  "every API key is revoked, so nobody could call the gate: set SVC_API_KEY, or make a key with `svc-gate keys create NAME`",
);

/**
 * Reads the anchors.
 *
 * @throws {StartRefused} if the witness policy cannot be used
 */
async function sitesOf(config: Config): Promise<AnchorSites | undefined> {
  const sites = await anchorSites(config);
  if (!sites.ok) throw new StartRefused(sites.problem, 2);
  return sites.value;
}

/** Opens the database of the ledgers, if they are not in the data folder. */
async function openDatabase({ databaseUrl, databasePool }: Config, log: Logger): Promise<Database | undefined> {
  if (databaseUrl === undefined) return undefined;
  const database = await openPostgres({ url: databaseUrl, connectionsMax: databasePool, mayMigrate: true });
  for (const warning of database.warnings) log.warn(warning);
  return database;
}

/** @throws {StartRefused} if a variable of OpenTelemetry is wrong */
async function openConfiguredTraces(log: Logger): Promise<Traces | undefined> {
  if (!areTracesConfigured(process.env)) return undefined;
  const traces = await openTraces(process.env, (sentence) => log.warn(sentence));
  if (!traces.ok) throw new StartRefused(traces.problem, 2);
  return traces.value;
}

function makeRootSource(config: Config, database: Database | undefined): GateSource {
  const { accept, apiKey, mandate, mode, modeSetting } = config;
  return {
    tenant: null,
    mandate,
    mode,
    modeSetting,
    ledger: {
      ...dataFolder.locateLedger(config, null, database),
      // The keys are rows of this ledger. Without a key nobody could call the gate, and a new ledger would leave a
      // useless signing key behind.
      mustExist: database !== undefined && apiKey === undefined,
      engine,
      acceptMissingPin: accept.includes("missing-pin"),
      acceptSigningKey: accept.includes("signing-key"),
    },
    retentionDays: config.retentionDays,
    acceptClock: accept.includes("clock"),
    acceptChange: accept.includes("change"),
    acceptWeakerMode: accept.includes("weaker-mode"),
  };
}

async function tenantEntries({ tenants }: Config): Promise<Result<readonly TenantEntry[], string>> {
  return tenants === undefined ? good([]) : readTenants(tenants);
}

/** The database and the threads of the tenants' ledgers. */
interface TenantStorage {
  readonly database: Database | undefined;
  readonly threads: SqliteThreads;
}

/** Returns a tenant's source: its own folder next to the root's ledger, or a ledger in the same database. */
function makeTenantSource(
  { id, mandate, mode, rate }: TenantEntry,
  config: Config,
  { database, threads }: TenantStorage,
): GateSource {
  const root = makeRootSource(config, database);
  return {
    ...root,
    tenant: id,
    mandate,
    mode: mode ?? config.mode,
    modeSetting: mode === undefined ? config.modeSetting : "`mode` in the tenants file",
    statedMode: mode,
    rate,
    ledger: {
      ...root.ledger,
      ...dataFolder.locateLedger(config, id, database),
      mustExist: false,
      threads,
    },
  };
}

async function readTls({ tlsCert, tlsKey }: Config): Promise<HttpOptions["tls"]> {
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  const cert = await readPem("SVC_TLS_CERT", tlsCert);
  const key = await readPem("SVC_TLS_KEY", tlsKey);
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ERR_OSSL_X509_KEY_VALUES_MISMATCH") {
      throw new StartRefused(`the key in ${tlsKey} is not the key of the certificate in ${tlsCert}`);
    }
    throw new StartRefused(`${tlsCert} and ${tlsKey} cannot be used for TLS (${code ?? message}): both must be PEM`);
  }
  return { cert, key };
}

async function readPem(variable: string, file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    throw new StartRefused(
      `${variable} names ${file}, which cannot be read (${(error as NodeJS.ErrnoException).code})`,
    );
  }
}

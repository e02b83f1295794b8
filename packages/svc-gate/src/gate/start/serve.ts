import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type AddressInfo, type Server } from "node:net";
import { createSecureContext } from "node:tls";
import type { FastifyInstance } from "fastify";
import pino, { type Logger } from "pino";
import {
  dataFolder,
  NoLedger,
  openPostgres,
  sqliteThreads,
  type Database,
  type Ledger,
  type SqliteThreads,
} from "../../ledger/mod.ts";
import { good, type Result } from "../../wire/mod.ts";
import { anchorSites, type AnchorSites } from "../anchoring.ts";
import type { Config } from "./config.ts";
import type { Gate, Reloaded } from "../core/gate.ts";
import { makeServer, type HttpOptions } from "../http/server.ts";
import { keptFirstKey, KeyRing, loadFirstKey, recordFirstKey, type FirstKey } from "../admin/keys/keys.ts";
import { Budget } from "../admission/queue.ts";
import { openOperatorDoor } from "./operator-file.ts";
import { makeOpsServer } from "../http/ops.ts";
import {
  openFrom,
  StartRefused,
  type OpenedGate,
  type OpenGate,
  type GateSource,
  type SharedParts,
} from "./gate-source.ts";
import { Rates } from "../admission/rate.ts";
import { RefusedInputs } from "../core/refused-inputs.ts";
import { Service, type ContractTests, type ReloadTests } from "../admin/service.ts";
import { readTenants, type TenantEntry } from "./tenants-file.ts";
import { Metrics } from "../telemetry/metrics.ts";
import { areTracesAsked, openTraces, type Traces } from "../telemetry/traces.ts";
import { Tenants } from "./tenants.ts";
import { collectWarnings } from "./warnings.ts";
import { engine } from "../version.ts";

/** A gate that answers. */
export interface Serving {
  readonly address: string;
  /** Of the second listener, where there is one. */
  readonly ops: string | undefined;
  /** The root's. */
  readonly gate: Gate;
  readonly ledger: Ledger;
  readonly contracts: readonly string[];
  readonly tenants: number;
  readonly made: FirstKey["made"];
  /** Undefined if this start did not change the mode. */
  readonly modeChange: ModeChange | undefined;
  /** Sentences for the operator, which the log has too. */
  readonly warnings: readonly string[];
  /** Rejects with the fault after which nothing more is answered. */
  readonly failed: Promise<never>;
  /** Puts in force what the files say now; what is wrong with them is logged and changes nothing. */
  reload(by: string): Promise<void>;
  /** Answers what waits, then lets everything go. */
  stop(): Promise<void>;
}

/** A change of the mode at this start, and the row that records it. */
export interface ModeChange {
  readonly from: string;
  readonly to: string;
  /** What set it. */
  readonly setting: string;
  readonly seq: number;
}

/** Every check is answered before this begins to run: it is for who reads a page slowly, or never ends a body. */
const stopPatienceMs = 3000;

/** A tenant that nothing was asked of for this long is closed. */
const tenantIdleMs = 60_000;

/** How often keys that another gate on the same database has made or revoked are asked for. */
const refreshMs = 1000;
const noRefresh = (): void => undefined; // The database cannot be reached: nothing is decided meanwhile.

/** An open tenant holds files and the cache of its ledger; in a database it is little more than its compiled contracts. */
const tenantsOpenMax = 64;
const tenantsSharedOpenMax = 1000;

/** Threads that write the tenants' ledgers, and as many that read them, some 12 MB each; the root has its own. */
const tenantThreadsMax = 4;

/** What the command line lends the service. */
export interface ServeHooks {
  /** Runs the tests of contracts, where a reload waits for them. */
  readonly runTests?: ContractTests;
}

/**
 * Starts a gate: contracts, ledger, counters, keys, then the door. Whatever is wrong is said before the door opens.
 *
 * @throws {StartRefused} with every error of the contracts (exit code 2), or {LedgerRefused}
 */
export async function serve(config: Config, warnings: readonly string[], hooks: ServeHooks = {}): Promise<Serving> {
  const log = pino(
    { level: config.log, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: 2, sync: true }),
  );
  const told = collectWarnings(log);
  for (const warning of warnings) log.warn(warning);
  const tls = await readTls(config);
  const traces = await openTracesIfAsked(log);
  const opened = await openLedgers(config, log);
  const { root, rootSource, tenants, readSources, metrics, database, close } = opened;
  try {
    const { keys, first } = await openKeys(config, root, tenants, log);
    const tests = testsOfReload(config, hooks);
    const rates = new Rates({
      fallback: (tenant) => (tenant === null ? undefined : tenants?.sourceOf(tenant)?.rate) ?? config.rate,
    });
    const begun = await root.begin();
    if (first !== undefined) await recordFirstKey(root, first, log);
    const service = new Service({ log, keys, root, rootSource, tenants, readSources, tests, metrics, traces, rates });
    const server = makeServer({ service, basePath: config.basePath, connections: config.connections, log, tls });
    const ops = await openOps(service, config, log);
    const address = await listen(server, config).catch(async (error: unknown) => {
      await ops?.close();
      throw error;
    });
    const door = await openOperatorDoor(config.dataDir, { address, key: keys.makeOperatorKey(), cert: tls?.cert }, log);
    // Last, so that a start that is refused leaves nothing that goes on.
    told.end();
    const refreshing = database && setInterval(() => keys.refresh().catch(noRefresh), refreshMs).unref();
    return {
      address,
      ops: ops?.address,
      gate: root.gate,
      ledger: root.ledger,
      contracts: root.gate.policy.policySet.contracts,
      tenants: opened.tenantsAtStart,
      made: first?.made,
      modeChange: modeChangeOf(begun, config),
      warnings: told.sentences,
      failed: root.gate.failed,
      reload: (by) => service.reloadAll(by),
      stop: async () => {
        await root.gate.drain();
        const patience = setTimeout(() => server.server.closeAllConnections(), stopPatienceMs);
        await server.close();
        clearTimeout(patience);
        clearInterval(refreshing);
        await door.close();
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

interface OpenLedgers extends OpenTenants {
  readonly database: Database | undefined;
  readonly root: OpenedGate;
  readonly rootSource: GateSource;
  readonly tenantsAtStart: number;
  readonly metrics: Metrics;
  readonly close: () => Promise<void>;
}

/** Opens the root's ledger and those of tenants, once all that can be refused before is read. */
async function openLedgers(config: Config, log: Logger): Promise<OpenLedgers> {
  const entries = await tenantEntries(config);
  if (!entries.ok) throw new StartRefused(entries.problem, 2);
  const sites = await sitesOf(config);
  await requireFreePorts(config);
  if (config.databaseUrl === undefined) await keptFirstKey(config.dataDir); // A damaged file refuses the start here.
  const database = await openDatabase(config, log);
  const rootSource = placeOfRoot(config, database);
  const metrics = new Metrics();
  const refusedInputs = new RefusedInputs({
    bytesMax: config.refusedInputMax,
    bytesPerDay: config.refusedInputPerDay,
  });
  const shared = { log, observer: metrics, budget: new Budget(), refusedInputs, sites };
  const root = await openFrom(rootSource, shared).catch(async (error: unknown) => {
    await database?.close();
    throw error instanceof NoLedger ? noKey : error;
  });
  const opened = openTenants(config, database, entries.value, shared);
  const close = async (): Promise<void> => {
    await opened.tenants?.close();
    await root.gate.anchors?.close();
    await root.ledger.close();
    await database?.close();
  };
  return { ...opened, database, root, rootSource, tenantsAtStart: entries.value.length, metrics, close };
}

interface OpenTenants {
  /** Undefined where SVC_TENANTS is not set. */
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
    found.map((entry) => placeOfTenant(entry, config, { database, threads }));
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

/** The tests of contracts that a reload waits for; undefined where it waits for none. */
function testsOfReload({ reloadTests }: Config, { runTests }: ServeHooks): ReloadTests | undefined {
  return reloadTests === undefined || runTests === undefined ? undefined : { path: reloadTests, run: runTests };
}

function modeChangeOf(begun: Reloaded | undefined, { modeSetting: setting }: Config): ModeChange | undefined {
  if (begun?.receipt === undefined || begun.before.mode === begun.now.mode) return undefined;
  return { from: begun.before.mode, to: begun.now.mode, setting, seq: begun.receipt.seq };
}

/** The ring of keys, and the first one. A gate whose ledger is elsewhere makes none: it would be another in each replica. */
async function openKeys(
  { apiKey, dataDir, databaseUrl }: Config,
  { gate, ledger }: OpenGate,
  tenants: Tenants | undefined,
  log: Logger,
): Promise<{ readonly keys: KeyRing; readonly first: FirstKey | undefined }> {
  const first = databaseUrl !== undefined && apiKey === undefined ? undefined : await loadFirstKey(dataDir, apiKey);
  if (first?.warning !== undefined) log.warn(first.warning);
  const isTenant = (id: string): boolean => tenants?.has(id) === true;
  const keys = await KeyRing.open({ gate, ledger, firstKey: first?.digest, isTenant });
  if (keys.isEmpty && first === undefined) throw keys.recorded.length === 0 ? noKey : allRevoked;
  if (keys.isFirstKeyReplaced && apiKey !== undefined)
    log.warn(
      "the key `default` was rotated or revoked since: what SVC_API_KEY says counts until an overlap ends, if at all",
    );
  if (!keys.isFirstKeyReplaced || first?.made === undefined) return { keys, first };
  log.warn(
    `a row of the ledger rotated or revoked the key \`default\`, so the new key in ${first.made.file} is refused with 401: ` +
      "make a key with `svc-gate keys create NAME`",
  );
  return { keys, first: { ...first, made: undefined } };
}

const noKey = new StartRefused(
  "there is no API key, so nobody could call the gate: set SVC_API_KEY, or make one with `svc-gate migrate --first-key FILE`",
);

const allRevoked = new StartRefused(
  "every API key is revoked, so nobody could call the gate: set SVC_API_KEY, or make one with `svc-gate keys create NAME`",
);

/** Who anchors the ledgers. @throws {StartRefused} when the policy of witnesses cannot be used */
async function sitesOf(config: Config): Promise<AnchorSites | undefined> {
  const sites = await anchorSites(config);
  if (!sites.ok) throw new StartRefused(sites.problem, 2);
  return sites.value;
}

/** The database that keeps the ledgers, if it is not this process's own folder. */
async function openDatabase({ databaseUrl, databasePool }: Config, log: Logger): Promise<Database | undefined> {
  if (databaseUrl === undefined) return undefined;
  const database = await openPostgres({ url: databaseUrl, connectionsMax: databasePool, mayMigrate: true });
  for (const warning of database.warnings) log.warn(warning);
  return database;
}

/** @throws {StartRefused} when a variable of OpenTelemetry is wrong */
async function openTracesIfAsked(log: Logger): Promise<Traces | undefined> {
  if (!areTracesAsked(process.env)) return undefined;
  const traces = await openTraces(process.env, (sentence) => log.warn(sentence));
  if (!traces.ok) throw new StartRefused(traces.problem, 2);
  return traces.value;
}

interface OpsListener {
  readonly address: string;
  close(): Promise<void>;
}

async function openOps(service: Service, config: Config, log: Logger): Promise<OpsListener | undefined> {
  const { opsHost: host, opsPort: port } = config;
  if (port === undefined) return undefined;
  const server = makeOpsServer(service, host, log);
  await server.listen({ host, port }).catch((error: unknown) => {
    throw cannotListen(error, opsListener(host, port));
  });
  return { address: addressOf(server, "http"), close: () => server.close() };
}

function placeOfRoot(config: Config, database: Database | undefined): GateSource {
  const { accept, apiKey, mandate, mode, modeSetting } = config;
  return {
    tenant: null,
    mandate,
    mode,
    modeSetting,
    ledger: {
      ...dataFolder.locateLedger(config, null, database),
      // Its rows hold the keys. Without a key nobody could call the gate, and a new ledger would keep a signing key for nothing.
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

/** What the tenants' ledgers share. */
interface Shared {
  readonly database: Database | undefined;
  readonly threads: SqliteThreads;
}

/** Where a tenant's gate comes from: a folder of its own beside the root's ledger, or a ledger in the same database. */
function placeOfTenant(
  { id, mandate, mode, rate }: TenantEntry,
  config: Config,
  { database, threads }: Shared,
): GateSource {
  const root = placeOfRoot(config, database);
  return {
    ...root,
    tenant: id,
    mandate,
    mode: mode ?? config.mode,
    modeSetting: mode === undefined ? config.modeSetting : "`mode` in the file of tenants",
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
    throw new StartRefused(`${tlsCert} and ${tlsKey} cannot be used for TLS (${message}): both must be PEM`);
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

async function listen(server: FastifyInstance, { host, port, basePath, tlsCert }: Config): Promise<string> {
  const listener = mainListener(host, port);
  await server.listen({ host: listener.host, port }).catch((error: unknown) => {
    throw cannotListen(error, listener);
  });
  return addressOf(server, tlsCert === undefined ? "http" : "https") + basePath;
}

/** The address of a listener, and the variables that set it, for messages. */
interface Listener {
  readonly host: string;
  readonly port: number;
  readonly variables: readonly [host: string, port: string];
}

/** For a name with two addresses the framework would open a second server without our limits. */
function mainListener(host: string, port: number): Listener {
  return { host: host === "localhost" ? "127.0.0.1" : host, port, variables: ["SVC_HOST", "SVC_PORT"] };
}

function opsListener(host: string, port: number): Listener {
  return { host, port, variables: ["SVC_OPS_HOST", "SVC_OPS_PORT"] };
}

/**
 * Listens on each port and closes it again, so that a start that cannot listen fails before it makes or changes anything.
 *
 * @throws {StartRefused}
 */
async function requireFreePorts({ host, port, opsHost, opsPort }: Config): Promise<void> {
  const listeners = [mainListener(host, port), ...(opsPort === undefined ? [] : [opsListener(opsHost, opsPort)])];
  const probes: Server[] = [];
  try {
    for (const listener of listeners) {
      const probe = createServer();
      const listening = once(probe, "listening");
      probe.listen({ host: listener.host, port: listener.port, exclusive: true });
      await listening.catch((error: unknown) => {
        throw cannotListen(error, listener);
      });
      probes.push(probe); // Open until all are tried: two listeners may have been given one port.
    }
  } finally {
    await Promise.all(probes.map((probe) => new Promise((resolve) => probe.close(resolve))));
  }
}

function cannotListen(error: unknown, { host, port, variables: [hostVariable, portVariable] }: Listener): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "EADDRINUSE")
    return new StartRefused(
      `port ${port} on ${host} is in use: stop what listens there, or choose another with ${portVariable}`,
    );
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND")
    return new StartRefused(`${host} is not an address of this machine: choose another with ${hostVariable}`);
  if (code === "EACCES")
    return new StartRefused(`this user may not listen on port ${port}: choose one above 1023 with ${portVariable}`);
  return error;
}

function addressOf(server: FastifyInstance, scheme: "http" | "https"): string {
  const { address, family, port } = server.server.address() as AddressInfo;
  return `${scheme}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

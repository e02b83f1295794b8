import pino from "pino";
import { dataFolder, openLedger, type Ledger } from "../../ledger/mod.ts";
import type { Stops } from "../../../../core/src/approvals/mod.ts";
import { good } from "../../../../core/src/wire/mod.ts";
import { withLedgers, type OfflineLedger, type OpenIn } from "../admin/offline.ts";
import { QueueBudget } from "../admission/queue.ts";
import { KeyDeciders } from "../approvals/deciders.ts";
import { endpointsOf } from "../notify/endpoints.ts";
import { Notifier } from "../notify/notifier.ts";
import { makeServer } from "../http/server.ts";
import { KeyRing } from "../keys/keys.ts";
import { Rates } from "../keys/rate.ts";
import { asRecorded, type GateSource, type SharedParts } from "../service/gate-source.ts";
import type { Gate } from "../service/gate.ts";
import { Service } from "../service/service.ts";
import { Tenants } from "../service/tenants.ts";
import { tenantId } from "../settings/tenants-file.ts";
import { Metrics } from "../telemetry/metrics.ts";
import { engine } from "../version.ts";

export interface UnservedLedger extends OfflineLedger {
  /** The file of the endpoints that get events; undefined if no request is about them. */
  readonly notify?: string | undefined;
}

/** A request to one of the gate's routes. */
export interface UnservedRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** A JSON text. */
  readonly body?: string | undefined;
  /** By default a key of the operator. */
  readonly key?: string | undefined;
}

/** Answers as the gate would that serves the ledger. */
export type AskUnserved = (request: UnservedRequest) => Promise<{ readonly status: number; readonly text: string }>;

/**
 * Opens the ledgers of one gate for requests, without a listener. So an act has one implementation, whether or not a gate
 * serves the ledger. The policy is that of the last row, and nothing is put in force.
 *
 * @throws {LedgerRefused} if a ledger does not exist, or a gate serves it
 */
export function openUnserved<Value>(
  target: UnservedLedger,
  work: (ask: AskUnserved) => Promise<Value>,
): Promise<Value> {
  return withLedgers(target, async (openIn) => {
    const ledger = await openIn(null, openLedger);
    try {
      return await serveOn(ledger, target, openIn, work);
    } finally {
      await ledger.close();
    }
  });
}

async function serveOn<Value>(
  ledger: Ledger,
  target: UnservedLedger,
  openIn: OpenIn,
  work: (ask: AskUnserved) => Promise<Value>,
): Promise<Value> {
  const log = pino({ level: "error", base: null }, pino.destination({ fd: 2, sync: true }));
  const metrics = new Metrics();
  const deciders = new KeyDeciders();
  const endpoints = await endpointsOf(target);
  const notifier = endpoints && new Notifier({ endpoints, publicUrl: undefined, log, observer: metrics });
  const shared: SharedParts = { log, observer: metrics, budget: new QueueBudget(), deciders, notifier };
  const rootSource = sourceOf(target, null);
  const root = await asRecorded(rootSource, ledger, shared);
  const keys = await KeyRing.open({ gate: root, ledger, firstKey: "", isTenant: (id) => tenantId.test(id) });
  deciders.use(keys);
  let failure: unknown;
  const rootStops = async (): Promise<Stops> => (await ledger.standing.now()).stops;
  const open = async (source: GateSource): Promise<Gate> => {
    try {
      return await asRecorded(source, await openIn(source.tenant, openLedger), { ...shared, rootStops });
    } catch (error) {
      failure = error; // The answer would only say that the tenant cannot be served.
      throw error;
    }
  };
  const tenants =
    target.tenant === null
      ? undefined
      : new Tenants([sourceOf(target, target.tenant)], {
          ...shared,
          rootStops,
          openMax: 1,
          idleMs: 60_000,
          open,
        });
  const service = new Service({
    log,
    keys,
    root,
    rootSource,
    tenants,
    metrics,
    tests: undefined,
    traces: undefined,
    rates: new Rates({ fallback: () => undefined }),
    connections: 1,
    readSources: () => Promise.resolve(good([])),
  });
  const server = makeServer({ service, basePath: "", log, tls: undefined });
  const operator = keys.known.makeOperatorKey();
  try {
    return await work(async ({ method, path, body, key = operator }) => {
      const type = body === undefined ? {} : { "content-type": "application/json" };
      const headers = { authorization: `Bearer ${key}`, host: "localhost", ...type };
      const answer = await server.inject({ method, url: path, headers, ...(body !== undefined && { payload: body }) });
      if (failure !== undefined) throw failure;
      return { status: answer.statusCode, text: answer.payload };
    });
  } finally {
    await root.drain();
    await tenants?.close();
    await keys.close();
    await server.close();
  }
}

function sourceOf(target: OfflineLedger, tenant: string | null): GateSource {
  const ledger = { ...dataFolder.locateLedger(target, tenant), engine };
  return { tenant, mandate: undefined, mode: undefined, ledger, acceptClock: true, acceptChange: false };
}

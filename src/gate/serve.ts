import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { basename } from "node:path";
import { createSecureContext } from "node:tls";
import type { FastifyInstance } from "fastify";
import pino, { type Logger } from "pino";
import type { ContractInForce } from "../contract/mod.ts";
import { openLedger, type Ledger } from "../ledger/mod.ts";
import { Clock, systemTime } from "./clock.ts";
import type { Config } from "./config.ts";
import { loadContracts, noContracts, renderDiagnostics } from "./contracts.ts";
import { alignCounters } from "./counters.ts";
import { Gate } from "./gate.ts";
import { makeServer } from "./http.ts";
import { loadKeys, type LoadedKeys } from "./keys.ts";
import { engine } from "./version.ts";

/** A start that cannot be: a sentence for the operator and the exit code. */
export class StartRefused extends Error {
  readonly exitCode: number;
  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** A gate that answers. */
export interface Serving {
  readonly address: string;
  readonly gate: Gate;
  readonly ledger: Ledger;
  readonly contracts: readonly string[];
  readonly made: LoadedKeys["made"];
  /** Rejects with the fault after which nothing more is answered. */
  readonly failed: Promise<never>;
  /** Answers what waits, then lets everything go. */
  stop(): Promise<void>;
}

/** Every check is answered before this begins to run: it is for who reads a page slowly, or never ends a body. */
const stopPatienceMs = 3000;

const defaultMandate = "mandate.yaml";

/**
 * Starts a gate: contracts, ledger, counters, keys, then the door. Whatever is wrong is said before the door opens.
 *
 * @throws {StartRefused} with every error of the contracts (exit code 2), or {LedgerRefused}
 */
export async function serve(config: Config, warnings: readonly string[]): Promise<Serving> {
  const log = pino(
    { level: config.log, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: 2, sync: true }),
  );
  for (const warning of warnings) log.warn(warning);
  const force = await contractsOf(config, log);
  const tls = await readTls(config);
  const ledger = await openLedger({
    folder: config.dataDir,
    pinFile: config.pin,
    name: config.ledgerName,
    engine,
    acceptMissingPin: config.accept.includes("missing-pin"),
  });
  try {
    return await open({ config, log, force, tls, ledger });
  } catch (error) {
    await ledger.close();
    throw error;
  }
}

interface Parts {
  readonly config: Config;
  readonly log: Logger;
  readonly force: ContractInForce;
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  readonly ledger: Ledger;
}

async function open({ config, log, force, tls, ledger }: Parts): Promise<Serving> {
  const clock = new Clock(systemTime);
  const time = clock.read(ledger.head.at);
  if (!time.ok && !config.accept.includes("clock")) {
    throw new StartRefused(
      `${time.problem}: set it right, or start once with --accept clock and checks wait until it has caught up`,
    );
  }
  await ledger.keepContract(force.text);
  const { digests, folded } = await alignCounters(force, ledger);
  for (const { counter, rows, events } of folded) {
    if (rows > 0) log.info({ counter, rows, events }, "a new counter was folded from the receipts");
  }
  const { keys, made } = await loadKeys(config.dataDir, config.apiKey);
  const gate = new Gate({
    force,
    ledger,
    clock,
    mode: config.mode,
    counterDigests: digests,
    onDefect: ({ rule, defect }) =>
      log.error({ rule, err: defect }, "the engine failed on a rule; the call was blocked"),
  });
  const server = makeServer({ gate, keys, basePath: config.basePath, log, tls });
  const address = await listen(server, config);
  return {
    address,
    gate,
    ledger,
    contracts: force.contracts,
    made,
    failed: gate.failed,
    stop: async () => {
      await gate.drain();
      const patience = setTimeout(() => server.server.closeAllConnections(), stopPatienceMs);
      await server.close();
      clearTimeout(patience);
      await ledger.close();
    },
  };
}

async function contractsOf(config: Config, log: Logger): Promise<ContractInForce> {
  const file = config.mandate ?? defaultMandate;
  if (config.mandate === undefined && !existsSync(file)) {
    log.warn(
      `there is no ${defaultMandate} here, so no tool is routed and every verdict is BLOCK; \`svc-gate init\` writes one`,
    );
    return noContracts();
  }
  const compiled = await loadContracts(file, basename(file));
  if (!compiled.ok) throw new StartRefused(renderDiagnostics(compiled.problem), 2);
  return compiled.value;
}

async function readTls({ tlsCert, tlsKey }: Config): Promise<Parts["tls"]> {
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
  try {
    await server.listen({ host, port });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EADDRINUSE")
      throw new StartRefused(
        `port ${port} on ${host} is in use: stop what listens there, or choose another with SVC_PORT`,
      );
    if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND")
      throw new StartRefused(`${host} is not an address of this machine: choose another with SVC_HOST`);
    if (code === "EACCES")
      throw new StartRefused(`this user may not listen on port ${port}: choose one above 1023 with SVC_PORT`);
    throw error;
  }
  const { address, family, port: bound } = server.server.address() as AddressInfo;
  return `${tlsCert === undefined ? "http" : "https"}://${family === "IPv6" ? `[${address}]` : address}:${bound}${basePath}`;
}

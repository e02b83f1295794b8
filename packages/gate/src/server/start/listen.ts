import { once } from "node:events";
import { createServer, type AddressInfo, type Server } from "node:net";
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { StartRefused } from "../errors.ts";
import { makeOpsServer } from "../http/ops.ts";
import type { Service } from "../service/service.ts";
import type { Config } from "./config.ts";

/** @returns the address, with the base path */
export async function listen(server: FastifyInstance, { host, port, basePath, tlsCert }: Config): Promise<string> {
  const listener = mainListener(host, port);
  await server.listen({ host: listener.host, port }).catch((error: unknown) => {
    throw cannotListen(error, listener);
  });
  return addressOf(server, tlsCert === undefined ? "http" : "https") + basePath;
}

/** The address of a listener, and the variables that set it, for messages. */
interface ListenAddress {
  readonly host: string;
  readonly port: number;
  readonly variables: readonly [host: string, port: string];
}

/** For a name with two addresses the framework would open a second server without our limits. */
function mainListener(host: string, port: number): ListenAddress {
  return { host: host === "localhost" ? "127.0.0.1" : host, port, variables: ["SVC_HOST", "SVC_PORT"] };
}

function opsListener(host: string, port: number): ListenAddress {
  return { host, port, variables: ["SVC_OPS_HOST", "SVC_OPS_PORT"] };
}

/**
 * Listens on each port and closes it again. So a start that cannot listen fails before it changes anything.
 *
 * @throws {StartRefused}
 */
export async function requireFreePorts({ host, port, opsHost, opsPort }: Config): Promise<void> {
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
      probes.push(probe); // Both stay open until all were tried, because two listeners may have the same port.
    }
  } finally {
    await Promise.all(probes.map((probe) => new Promise((resolve) => probe.close(resolve))));
  }
}

interface OpsListener {
  readonly address: string;
  close(): Promise<void>;
}

/** Opens the second listener; undefined if there is none. */
export async function openOps(service: Service, config: Config, log: Logger): Promise<OpsListener | undefined> {
  const { opsHost: host, opsPort: port } = config;
  if (port === undefined) return undefined;
  const server = makeOpsServer(service, host, log);
  await server.listen({ host, port }).catch((error: unknown) => {
    throw cannotListen(error, opsListener(host, port));
  });
  return { address: addressOf(server, "http"), close: () => server.close() };
}

function cannotListen(error: unknown, { host, port, variables: [hostVariable, portVariable] }: ListenAddress): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "EADDRINUSE")
    return new StartRefused(
      `port ${port} on ${host} is in use: stop what listens there, or choose another with ${portVariable}`,
    );
  if (code === "EADDRNOTAVAIL")
    return new StartRefused(`${host} is not an address of this machine: choose another with ${hostVariable}`);
  if (code === "ENOTFOUND" || code?.startsWith("EAI_") === true)
    return new StartRefused(`${hostVariable}: no address for ${host}: write an address or a name of this machine`);
  if (code === "EACCES")
    return new StartRefused(
      `this user lacks the permission to listen on port ${port}: choose a port above 1023 with ${portVariable}`,
    );
  return error;
}

function addressOf(server: FastifyInstance, scheme: "http" | "https"): string {
  const { address, family, port } = server.server.address() as AddressInfo;
  return `${scheme}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

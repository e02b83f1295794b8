/**
 * Goal: the console knows its own names and no others. Method: tables of Host headers, for a gate on loopback, with TLS,
 * behind a public address, and on the default port.
 */
import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { TLSSocket } from "node:tls";
import { OwnNames } from "../../../../packages/console/src/server/own-names.ts";

interface Listener {
  readonly publicUrl?: string;
  readonly port?: number;
  readonly tls?: boolean;
  readonly url?: string;
}

function originOf(
  host: string | undefined,
  { publicUrl, port = 8787, tls = false, url = "/" }: Listener = {},
): string | undefined {
  const bare = new Duplex({ read: () => undefined, write: () => undefined });
  const socket = tls ? new TLSSocket(bare) : bare;
  Object.defineProperty(socket, "localPort", { value: port });
  return new OwnNames(publicUrl).originOf({ headers: { host }, socket, url } as unknown as IncomingMessage);
}

const behind = { publicUrl: "https://gate.example/svc" };

const known: readonly (readonly [host: string, origin: string, place?: Listener])[] = [
  ["127.0.0.1:8787", "http://127.0.0.1:8787"],
  ["localhost:8787", "http://localhost:8787"],
  ["LocalHost:8787", "http://localhost:8787"],
  ["127.9.9.9:8787", "http://127.9.9.9:8787"],
  ["[::1]:8787", "http://[::1]:8787"],
  ["localhost", "http://localhost", { port: 80 }],
  ["localhost", "https://localhost", { port: 443, tls: true }],
  ["localhost:8787", "https://localhost:8787", { tls: true }],
  ["gate.example", "https://gate.example", behind],
  ["GATE.example", "https://gate.example", behind],
  ["localhost:8787", "http://localhost:8787", behind],
  ["gate.example:8443", "https://gate.example:8443", { publicUrl: "https://gate.example:8443" }],
  ["localhost:9000", "http://localhost:9000", { publicUrl: "http://localhost:9000" }],
  ["xn--bcher-kva.example", "https://xn--bcher-kva.example", { publicUrl: "https://bücher.example" }],
];

const strange: readonly (readonly [host: string | undefined, place?: Listener])[] = [
  [undefined],
  [""],
  ["127.0.0.1"],
  ["localhost:80"],
  ["localhost:08787"],
  ["localhost.:8787"],
  ["127.1:8787"],
  ["2130706433:8787"],
  ["0x7f.0.0.1:8787"],
  ["[::]:8787"],
  ["0.0.0.0:8787"],
  ["10.0.0.1:8787"],
  ["[::ffff:127.0.0.1]:8787"],
  ["user@localhost:8787"],
  ["localhost:8787/"],
  ["localhost:8787?x"],
  ["localhost:8787#x"],
  ["localhost:8787, evil.example"],
  ["localhost.evil.example:8787"],
  ["evil.example:8787"],
  ["gate.example"],
  ["gate.example", { publicUrl: "http://gate.example" }],
  ["evil.gate.example", behind],
  ["gate.example.", behind],
  ["gate.example:80", behind],
  ["gate.example", { ...behind, url: "http://gate.example/" }],
  ["localhost:8787", { url: "http://localhost:8787/" }],
  ["localhost:8787", { url: "*" }],
];

test("the names of the gate give its origin", () => {
  for (const [host, origin, listener] of known) assert.equal(originOf(host, listener), origin, host);
});

test("any other Host header gives none", () => {
  for (const [host, listener] of strange)
    assert.equal(originOf(host, listener), undefined, `${host} ${JSON.stringify(listener)}`);
});

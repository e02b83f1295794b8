import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import type { Afterwards } from "./postgres-server.ts";

/**
 * Where to cut the connection around a COMMIT: before the server has it, or after the server has done it but before its
 * answer arrives. The third kind stays open but silent, as with a network that drops everything: the server has the
 * COMMIT, and nobody gets the answer.
 */
export type Cut = "before" | "after" | "silent";

/**
 * A connection to a PostgreSQL server that can be cut. It reads the gates' messages in clear text, so it does not
 * support TLS.
 */
export interface Proxy {
  readonly port: number;
  /** Cuts the connection at the next COMMIT; resolves when that has happened. */
  cutNext(cut: Cut): Promise<void>;
  /** While false, every new connection is refused. */
  admits: boolean;
  /** The server for new connections, for example a promoted standby. */
  lead(port: number): void;
  /** Cuts all present connections. */
  sever(): void;
}

interface Armed {
  readonly cut: Cut;
  readonly done: () => void;
}

export async function startProxy(t: Afterwards, to: number): Promise<Proxy> {
  const lines = new Set<Socket>();
  let target = to;
  let armed: Armed | undefined;
  const take = (): Armed | undefined => {
    const taken = armed;
    armed = undefined;
    return taken;
  };
  const proxy = {
    port: 0,
    admits: true,
    cutNext: (cut: Cut) => new Promise<void>((done) => (armed = { cut, done })),
    lead: (port: number) => void (target = port),
    sever: () => lines.forEach((socket) => socket.destroy()),
  };
  const listener = createServer((client) => {
    if (!proxy.admits) {
      client.destroy();
      return;
    }
    const server = connect(target, "127.0.0.1");
    for (const socket of [client, server]) {
      lines.add(socket);
      socket.setNoDelay(true).on("error", () => undefined);
    }
    const end = (): void => {
      for (const socket of [client, server]) lines.delete(socket.destroy());
    };
    client.on("close", end);
    server.on("close", end);
    carry(client, server, take, end);
  }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  t.after(() => {
    proxy.sever();
    listener.close();
  });
  proxy.port = (listener.address() as AddressInfo).port;
  return proxy;
}

function carry(client: Socket, server: Socket, take: () => Armed | undefined, end: () => void): void {
  const messages = new Messages();
  let cut: Armed | undefined;
  client.on("data", (chunk: Buffer) => {
    for (const message of cut === undefined ? messages.take(chunk) : []) {
      cut = isCommit(message) ? take() : undefined;
      if (cut?.cut === "before") {
        end();
        cut.done();
      } else server.write(message);
      if (cut !== undefined) break;
    }
  });
  let buffered: Buffer = Buffer.alloc(0);
  server.on("data", (chunk: Buffer) => {
    if (cut === undefined) {
      client.write(chunk);
      return;
    }
    buffered = Buffer.concat([buffered, chunk]);
    if (!buffered.includes("COMMIT\0")) return;
    if (cut.cut === "after") end();
    cut.done();
  });
}

/** Returns whether the message is the protocol's simple query `COMMIT`. */
function isCommit(message: Buffer): boolean {
  return message[0] === 0x51 && message.toString("latin1", 5) === "COMMIT\0";
}

/** Splits a client's bytes into messages; the first message has no letter before its length. */
class Messages {
  #rest: Buffer = Buffer.alloc(0);
  #isFirst = true;

  *take(chunk: Buffer): Generator<Buffer> {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const letter = this.#isFirst ? 0 : 1;
      if (this.#rest.length < letter + 4) return;
      const length = letter + this.#rest.readUInt32BE(letter);
      if (this.#rest.length < length) return;
      yield this.#rest.subarray(0, length);
      this.#rest = this.#rest.subarray(length);
      this.#isFirst = false;
    }
  }
}

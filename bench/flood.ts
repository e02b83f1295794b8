import { appendFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { paymentBody } from "./requests.ts";

/**
 * A load that does not wait for its answers, in its own process: requests leave at a fixed rate over a fixed number of
 * connections, whatever the gate does (autocannon sends the next request only after an answer). It parses as little as
 * possible.
 */
export interface Flood {
  readonly port: number;
  readonly path: string;
  readonly seconds: number;
  /** The first seconds, whose answers are not counted. */
  readonly warmUpSeconds: number;
  readonly senders: readonly Sender[];
  /** The file for the hashes of all answered receipts, 16 characters each, to be looked for in the ledger. */
  readonly hashesFile: string;
}

export interface Sender {
  readonly name: string;
  readonly key: string;
  readonly connections: number;
  /** Requests a second; without it each connection sends the next request as soon as it has an answer. */
  readonly perSecond?: number;
}

/** One sender's results during the measured time. */
export interface Seen {
  readonly name: string;
  readonly offered: number;
  /** Requests that were due while no connection was free: a caller's pool refuses them itself. */
  readonly unsent: number;
  readonly answered: number;
  /** Requests sent in the measured time that were answered, also shortly after it. */
  readonly served: number;
  readonly refused: Readonly<Record<string, number>>;
  readonly errors: number;
  readonly perSecond: number;
  /** For answered requests, from sending to the last byte. */
  readonly p50: number;
  readonly p99: number;
  /** For refused requests. */
  readonly refusedP99: number;
}

class Line {
  readonly #flood: Flood;
  readonly #sender: Sender;
  readonly #requests: readonly Buffer[];
  readonly #sockets = new Set<Socket>();
  readonly #free: Socket[] = [];
  readonly #latencies: number[] = [];
  readonly #refusedLatencies: number[] = [];
  readonly #refused: Record<string, number> = {};
  readonly #sent = new Map<Socket, { readonly at: number; readonly isCounted: boolean }>();
  readonly hashes: string[] = [];
  #next = Math.floor(Math.random() * 256);
  #counting = false;
  #stopped = false;
  #due = 0;
  #offered = 0;
  #served = 0;
  #unsent = 0;
  #errors = 0;

  constructor(flood: Flood, sender: Sender) {
    this.#flood = flood;
    this.#sender = sender;
    this.#requests = Array.from({ length: 256 }, (_, at) => requestText(flood, sender, at));
  }

  async connect(): Promise<void> {
    for (let at = 0; at < this.#sender.connections; at += 1) await this.#connectOne();
  }

  #connectOne(): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect(this.#flood.port, "127.0.0.1");
      socket.setNoDelay(true);
      socket.once("connect", () => {
        this.#sockets.add(socket);
        this.#release(socket);
        resolve();
      });
      socket.on("data", (chunk: Buffer) => this.#read(socket, chunk));
      socket.on("error", () => undefined);
      socket.on("close", () => this.#lost(socket, resolve));
    });
  }

  #lost(socket: Socket, resolve: () => void): void {
    resolve();
    this.#sockets.delete(socket);
    if (this.#stopped) return;
    if (this.#counting) this.#errors += 1;
    this.#sent.delete(socket);
    const position = this.#free.indexOf(socket);
    if (position !== -1) this.#free.splice(position, 1);
    setTimeout(() => void this.#connectOne(), 100);
  }

  #release(socket: Socket): void {
    if (this.#stopped) return;
    if (this.#sender.perSecond === undefined && this.#running) this.#send(socket);
    else this.#free.push(socket);
  }

  #running = false;

  start(): void {
    this.#running = true;
    if (this.#sender.perSecond === undefined) for (const socket of this.#free.splice(0)) this.#send(socket);
  }

  /** Sends the requests that are due, for this many seconds. */
  tick(seconds: number): void {
    const { perSecond } = this.#sender;
    if (perSecond === undefined) return;
    this.#due += perSecond * seconds;
    for (; this.#due >= 1; this.#due -= 1) {
      const socket = this.#free.pop();
      if (socket !== undefined) this.#send(socket);
      else if (this.#counting) this.#unsent += 1;
    }
  }

  #send(socket: Socket): void {
    this.#next = (this.#next + 1) & 255;
    if (this.#counting) this.#offered += 1;
    this.#sent.set(socket, { at: performance.now(), isCounted: this.#counting });
    socket.write(this.#requests[this.#next] as Buffer);
  }

  #read(socket: Socket, chunk: Buffer): void {
    // An answer of the gate is one write, so it is complete if it ends with a brace.
    if (chunk[chunk.length - 1] !== 0x7d) return;
    const sent = this.#sent.get(socket);
    if (sent === undefined) return;
    this.#sent.delete(socket);
    const ms = performance.now() - sent.at;
    if (chunk[9] === 0x32) {
      const end = chunk.length - hashFromEnd;
      this.hashes.push(chunk.toString("latin1", end, end + 16));
      if (sent.isCounted) this.#served += 1;
      if (this.#counting) this.#latencies.push(ms);
    } else if (this.#counting) {
      const status = chunk.toString("latin1", 9, 12);
      this.#refused[status] = (this.#refused[status] ?? 0) + 1;
      this.#refusedLatencies.push(ms);
    }
    this.#release(socket);
  }

  count(): void {
    this.#counting = true;
  }

  stop(): void {
    this.#counting = false;
    this.#running = false;
    this.#stopped = true;
  }

  seen(seconds: number): Seen {
    const latencies = Float64Array.from(this.#latencies).toSorted();
    const refused = Float64Array.from(this.#refusedLatencies).toSorted();
    return {
      name: this.#sender.name,
      offered: this.#offered + this.#unsent,
      unsent: this.#unsent,
      answered: latencies.length,
      served: this.#served,
      refused: this.#refused,
      errors: this.#errors,
      perSecond: latencies.length / seconds,
      p50: latencies[Math.floor(latencies.length * 0.5)] ?? 0,
      p99: latencies[Math.floor(latencies.length * 0.99)] ?? 0,
      refusedP99: refused[Math.floor(refused.length * 0.99)] ?? 0,
    };
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** The receipt's hash precedes `","request":"`, 64 digits and `"}}`. */
const hashFromEnd = 3 + 64 + '","request":"'.length + 64;

function requestText({ path }: Flood, { key }: Sender, at: number): Buffer {
  const body = paymentBody(at);
  const headers = [
    `POST ${path}/check HTTP/1.1`,
    "Host: gate",
    `Authorization: Bearer ${key}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return Buffer.from(`${headers.join("\r\n")}\r\n\r\n${body}`);
}

async function run(flood: Flood): Promise<readonly Seen[]> {
  const lines = flood.senders.map((sender) => new Line(flood, sender));
  for (const line of lines) await line.connect();
  for (const line of lines) line.start();
  const startedAt = performance.now();
  let last = startedAt;
  let counting = false;
  await new Promise<void>((resolve) => {
    const ticking = setInterval(() => {
      const now = performance.now();
      // After a pause of the process, send only the requests due in the last 5 ms: a burst would measure this process.
      for (const line of lines) line.tick(Math.min(0.005, (now - last) / 1000));
      last = now;
      if (!counting && now - startedAt >= flood.warmUpSeconds * 1000) {
        counting = true;
        for (const line of lines) line.count();
      }
      if (now - startedAt < (flood.warmUpSeconds + flood.seconds) * 1000) return;
      clearInterval(ticking);
      resolve();
    }, 1);
  });
  for (const line of lines) line.stop();
  await new Promise((resolve) => setTimeout(resolve, 300));
  for (const line of lines) {
    appendFileSync(flood.hashesFile, line.hashes.join(""));
    line.close();
  }
  return lines.map((line) => line.seen(flood.seconds));
}

if (import.meta.main) {
  const seen = await run(JSON.parse(process.argv[2] ?? "{}") as Flood);
  console.log(JSON.stringify(seen));
}

import { connect, type Socket } from "node:net";
import { sessionId } from "../requests.ts";

// The load, in its own process: this many connections, each with one call at a time. It reads its order from standard
// input and prints its figures to standard output. It uses bare sockets, because it shares two cores with the measured
// server, and because hundredths of a millisecond matter at one connection.

/** The requests. A body contains the session as `placeholder`, which is as long as a session's name. */
export interface Order {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bodies: readonly string[];
  /** A text that every right answer contains. */
  readonly marker: string;
  readonly connections: number;
  readonly seconds: number;
  /** The number of sessions over which calls are spread. */
  readonly sessions: number;
  /** Whether to send one call in each session, in order, instead of random ones for some seconds. */
  readonly once: boolean;
}

/** Times are in milliseconds. */
export interface Load {
  readonly perSecond: number;
  readonly total: number;
  readonly p50: number;
  readonly p99: number;
  readonly failed: number;
  /** The first answer that was not the expected one. */
  readonly failure: string | undefined;
}

/** The placeholder for a session's name in the text of a body. */
export const placeholder = "run-########";

const answersWithinMs = 30_000;

/** Returns a request, cut at the session's name, so that sending it is one concatenation. */
export function requestParts({ url, headers, bodies }: Order): readonly (readonly [string, string])[] {
  const { host, pathname } = new URL(url);
  return bodies.map((body) => {
    const lines = [
      `POST ${pathname} HTTP/1.1`,
      `host: ${host}`,
      "content-type: application/json",
      `content-length: ${Buffer.byteLength(body)}`,
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ];
    const [before = "", ...after] = `${lines.join("\r\n")}\r\n\r\n${body}`.split(placeholder);
    return [before, after.join(placeholder)] as const;
  });
}

/** Returns the length of the first whole answer in `text`; 0 if it is not complete yet. */
export function answerLength(text: string): number {
  const head = text.indexOf("\r\n\r\n");
  if (head < 0) return 0;
  const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, head + 2))?.[1];
  if (length !== undefined) {
    const end = head + 4 + Number(length);
    return text.length >= end ? end : 0;
  }
  const end = text.indexOf("\r\n0\r\n\r\n", head + 2);
  return end < 0 ? 0 : end + 7;
}

/** Returns the value that this part of the sorted times does not exceed. */
export function quantile(sorted: Float64Array, part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

async function run(order: Order): Promise<Load> {
  const parts = requestParts(order);
  const { hostname, port } = new URL(order.url);
  const times: number[] = [];
  let failed = 0;
  let failure: string | undefined;
  let next = 0;
  const from = performance.now();
  const until = from + order.seconds * 1000;
  const session = (): string =>
    sessionId(order.once ? next : order.sessions === 1 ? 0 : Math.floor(Math.random() * order.sessions));
  const more = (): boolean => (order.once ? next < order.sessions : performance.now() < until);

  const converse = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket: Socket = connect({ host: hostname, port: Number(port), noDelay: true });
      let sentAt = 0;
      let text = "";
      const send = (): void => {
        if (!more()) {
          socket.destroy();
          resolve();
          return;
        }
        const [before, after] = parts[next % parts.length] ?? ["", ""];
        const name = session();
        next += 1;
        sentAt = performance.now();
        socket.write(`${before}${name}${after}`, "latin1");
      };
      socket.once("connect", send);
      socket.on("data", (chunk) => {
        text = text === "" ? chunk.toString("latin1") : text + chunk.toString("latin1");
        const length = answerLength(text);
        if (length === 0) return;
        times.push(performance.now() - sentAt);
        if (!text.startsWith("HTTP/1.1 200") || !text.includes(order.marker)) {
          failed += 1;
          failure ??= text;
        }
        text = text.slice(length);
        send();
      });
      socket.setTimeout(answersWithinMs, () => reject(new Error(`no answer within ${answersWithinMs / 1000} seconds`)));
      socket.once("error", reject);
      socket.once("close", () => reject(new Error("the server closed a connection in the middle of the load")));
    });

  await Promise.all(Array.from({ length: order.connections }, converse));
  const seconds = (performance.now() - from) / 1000;
  const sorted = Float64Array.from(times).toSorted();
  return {
    perSecond: times.length / seconds,
    total: times.length,
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
    failed,
    failure,
  };
}

if (import.meta.main) {
  let text = "";
  for await (const chunk of process.stdin) text += String(chunk);
  console.log(JSON.stringify(await run(JSON.parse(text) as Order)));
}

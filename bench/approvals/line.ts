import { connect, type Socket } from "node:net";
import { answerLength } from "../peers/load.ts";

/** The answer to one request; `ms` is the time from its first byte to the answer's last one. */
export interface Heard {
  readonly status: number;
  readonly body: string;
  readonly ms: number;
}

/**
 * One connection that carries one request at a time. It is a bare socket, because a general client costs as much time
 * as the differences that this benchmark measures.
 */
export class Line {
  readonly #socket: Socket;
  readonly #host: string;
  #text = "";
  #waiting: { readonly from: number; readonly resolve: (heard: Heard) => void } | undefined;
  #reject: ((fault: Error) => void) | undefined;

  private constructor(socket: Socket, host: string) {
    this.#socket = socket;
    this.#host = host;
    socket.on("data", (chunk) => this.#read(chunk.toString("latin1")));
    socket.on("error", (fault) => this.#reject?.(fault));
    socket.on("close", () => this.#reject?.(new Error("the connection was closed before an answer came")));
  }

  static open(url: string): Promise<Line> {
    const { host, hostname, port } = new URL(url);
    return new Promise((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port), noDelay: true });
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new Line(socket, host));
      });
    });
  }

  /** Sends a request: a POST if it has a body, else a GET. Rejects if the connection ends before the answer. */
  ask(path: string, key: string, body?: string): Promise<Heard> {
    const head = [
      `${body === undefined ? "GET" : "POST"} ${path} HTTP/1.1`,
      `host: ${this.#host}`,
      `authorization: Bearer ${key}`,
      ...(body === undefined ? [] : ["content-type: application/json", `content-length: ${Buffer.byteLength(body)}`]),
    ];
    const request = `${head.join("\r\n")}\r\n\r\n${body ?? ""}`;
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      this.#waiting = { from: performance.now(), resolve };
      this.#socket.write(request);
    });
  }

  #read(chunk: string): void {
    this.#text += chunk;
    const length = answerLength(this.#text);
    if (length === 0 || this.#waiting === undefined) return;
    const { from, resolve } = this.#waiting;
    const answer = this.#text.slice(0, length);
    this.#text = this.#text.slice(length);
    this.#waiting = undefined;
    const body = answer.slice(answer.indexOf("\r\n\r\n") + 4);
    resolve({ status: Number(answer.slice(9, 12)), body, ms: performance.now() - from });
  }

  close(): void {
    this.#reject = undefined;
    this.#socket.destroy();
  }
}

/** Runs work for each number from 0 on, one at a time on each line. */
export async function overLines(
  lines: readonly Line[],
  count: number,
  work: (line: Line, index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const run = async (line: Line): Promise<void> => {
    while (next < count) {
      const index = next;
      next += 1;
      await work(line, index);
    }
  };
  await Promise.all(lines.map(run));
}

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { atEnd, key, type Ending } from "./gate.ts";

/** A request that has not ended, and a whole one with the key. */
export const half = "POST /check HTTP/1.1\r\nHost: gate\r\nX-A: ";
export const keyed = `GET /rules HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer ${key}\r\n\r\n`;

/** A connection whose client never ends its own side, and all bytes received on it. */
export class Line {
  readonly socket: Socket;
  text = "";

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (piece) => (this.text += String(piece)));
    socket.on("error", () => undefined);
  }

  /** Sends a request with the key; returns undefined if the connection is closed instead of answered. */
  async ask(bytes = keyed): Promise<number | undefined> {
    this.text = "";
    if (this.socket.destroyed || !this.socket.writable) return undefined;
    this.socket.write(bytes);
    return this.status();
  }

  /** The status of an answer that it awaits; undefined if it is closed instead. */
  async status(): Promise<number | undefined> {
    await this.answers(1);
    return this.text === "" ? undefined : Number(/^HTTP\/1\.1 (\d+)/.exec(this.text)?.[1]);
  }

  /** Waits for the heads of so many answers; returns false if it is closed before. */
  async answers(count: number): Promise<boolean> {
    const heads = (): number => this.text.split("\r\n\r\n").length - 1;
    while (isOpen(this) && heads() < count) await new Promise((resolve) => setTimeout(resolve, 2));
    return heads() >= count;
  }

  /** Waits until a part of its text matches; returns the first group, or undefined if it is closed before. */
  async finds(pattern: RegExp): Promise<string | undefined> {
    while (isOpen(this) && !pattern.test(this.text)) await new Promise((resolve) => setTimeout(resolve, 2));
    return pattern.exec(this.text)?.[1];
  }

  /** Waits until the gate has destroyed its socket, and not only ended its side: the kernel then refuses bytes. */
  async destroyed(patienceMs: number): Promise<boolean> {
    const end = performance.now() + patienceMs;
    while (!this.socket.destroyed && performance.now() < end) {
      if (this.socket.readableEnded) this.socket.write("x");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return this.socket.destroyed;
  }
}

export interface Filling {
  readonly port: number;
  readonly count: number;
  /** What each sends; by default half of a head. */
  readonly bytes?: string;
  readonly from?: string;
}

/** Opens connections one after the other from one address; the end of the test closes them. */
export async function fill(t: Ending, { port, count, bytes = half, from = "127.0.0.1" }: Filling): Promise<Line[]> {
  const lines: Line[] = [];
  for (let n = 0; n < count; n += 1) {
    const socket = connect({ port, host: "127.0.0.1", localAddress: from, allowHalfOpen: true });
    atEnd(t, () => socket.destroy());
    lines.push(new Line(socket));
    await once(socket, "connect");
    if (bytes !== "") socket.write(bytes);
  }
  return lines;
}

export const isOpen = ({ socket }: Line): boolean => !socket.destroyed && !socket.readableEnded;

/** Waits until this many of the connections are open, because the kernel reports a close with a delay. */
export async function until(lines: readonly Line[], open: number): Promise<void> {
  while (lines.filter(isOpen).length !== open) await new Promise((resolve) => setTimeout(resolve, 10));
}

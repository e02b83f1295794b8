import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { commit, withoutTimeout } from "../../../packages/svc-gate/src/ledger/store/postgres/sql.ts";

/** A moment in a transaction of a gate: its request for the head's lock, or its COMMIT, which nobody has seen yet. */
export type Moment = "lock" | "commit";

/** Does what it likes with the link and the message, which is not sent on by itself. */
export type Deed = (link: Link, message: Buffer) => void;

/**
 * A TCP line to PostgreSQL that fails as networks do: cut, dark for a while, led to another server. It reads what gates
 * send in the clear, so that it can fail at a moment of a transaction.
 */
export class Line {
  readonly #listener: Server;
  readonly #links = new Set<Link>();
  readonly #reads: boolean;
  readonly #deeds: { readonly moment: Moment; readonly deed: Deed }[] = [];
  #target: number;
  #isDark = false;

  private constructor(listener: Server, target: number, reads: boolean) {
    this.#listener = listener;
    this.#target = target;
    this.#reads = reads;
    listener.on("connection", (client) => this.#link(client));
  }

  /** @param reads does a gate speak on it? A standby's stream is not looked into. */
  static async start(target: number, reads: boolean): Promise<Line> {
    const listener = createServer().listen(0, "127.0.0.1");
    await once(listener, "listening");
    return new Line(listener, target, reads);
  }

  get port(): number {
    return (this.#listener.address() as AddressInfo).port;
  }

  #link(client: Socket): void {
    const link = new Link(client, connect(this.#target, "127.0.0.1"), this.#reads, (message, moment) => {
      const at = this.#deeds.findIndex((waiting) => waiting.moment === moment);
      const [taken] = at === -1 ? [] : this.#deeds.splice(at, 1);
      if (taken === undefined) link.pass(message);
      else taken.deed(link, message);
    });
    this.#links.add(link);
    link.onEnd = () => this.#links.delete(link);
    if (this.#isDark) link.darken();
  }

  /** Does something at the next such moment. Resolves false when none came within the time. */
  atNext(moment: Moment, withinMs: number, deed: Deed): Promise<boolean> {
    return new Promise((resolve) => {
      const waiting = {
        moment,
        deed: (link: Link, message: Buffer): void => {
          clearTimeout(late);
          deed(link, message);
          resolve(true);
        },
      };
      const late = setTimeout(() => {
        const at = this.#deeds.indexOf(waiting);
        if (at !== -1) this.#deeds.splice(at, 1);
        resolve(false);
      }, withinMs);
      this.#deeds.push(waiting);
    });
  }

  /** Where new links lead from now on. */
  lead(target: number): void {
    this.#target = target;
  }

  /** Nothing arrives any more, in neither direction, and nobody is told. What is sent meanwhile is under way. */
  darken(): void {
    this.#isDark = true;
    for (const link of this.#links) link.darken();
  }

  /** As `darken`, for links that come from now on. */
  darkenNew(): void {
    this.#isDark = true;
  }

  /** What was under way arrives. */
  lighten(): void {
    this.#isDark = false;
    for (const link of this.#links) link.lighten();
  }

  /** Those that there are now: what leads elsewhere or ends later is another. */
  get links(): readonly Link[] {
    return [...this.#links];
  }

  close(): void {
    this.#listener.close();
    for (const link of this.#links) link.cut();
  }
}

/** One connection through a line. */
export class Link {
  readonly #client: Socket;
  readonly #server: Socket;
  #isDark = false;
  #underWay: (() => void)[] = [];
  /** Sees what the server says, and says whether it goes on to the gate. */
  onAnswer: (chunk: Buffer) => boolean = () => true;
  onEnd: () => void = () => undefined;

  constructor(client: Socket, server: Socket, reads: boolean, onMoment: (message: Buffer, moment: Moment) => void) {
    this.#client = client;
    this.#server = server;
    const reader = reads ? new TurnReader() : undefined;
    for (const socket of [client, server]) socket.setNoDelay(true).on("error", () => undefined);
    client.on("data", (chunk: Buffer) => {
      if (reader === undefined) return this.pass(chunk);
      for (const { message, moment } of reader.take(chunk)) {
        if (moment === undefined) this.pass(message);
        else onMoment(message, moment);
      }
    });
    server.on("data", (chunk: Buffer) => {
      if (this.onAnswer(chunk)) this.#when(() => client.write(chunk));
    });
    client.on("close", () => this.#when(() => server.end()));
    server.on("close", () => {
      this.onEnd();
      this.#when(() => client.destroy());
    });
  }

  /** Sends on to the server, once it is light. */
  pass(message: Buffer): void {
    this.#when(() => this.#server.write(message));
  }

  #when(deliver: () => void): void {
    if (this.#isDark) this.#underWay.push(deliver);
    else deliver();
  }

  darken(): void {
    this.#isDark = true;
  }

  lighten(): void {
    this.#isDark = false;
    for (const deliver of this.#underWay.splice(0)) deliver();
  }

  /** Both ends see it broken. Bytes that the server is sent at last may be a part of a message. */
  cut(last?: Buffer): void {
    this.#underWay = [];
    this.#client.destroy();
    if (last === undefined) this.#server.destroy();
    else this.#server.end(last);
    this.onEnd();
  }
}

interface Seen {
  readonly message: Buffer;
  readonly moment: Moment | undefined;
}

const query = 0x51;
const bind = 0x42;

/** What a gate sends, message by message; the first one has no letter before its length. */
class TurnReader {
  #rest = Buffer.alloc(0);
  #isFirst = true;
  /** The last simple query but the present one: a COMMIT of a transaction comes after the time-out was taken off. */
  #before = "";

  *take(chunk: Buffer): Generator<Seen> {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const letter = this.#isFirst ? 0 : 1;
      if (this.#rest.length < letter + 4) return;
      const length = letter + this.#rest.readUInt32BE(letter);
      if (this.#rest.length < length) return;
      const message = this.#rest.subarray(0, length);
      this.#rest = this.#rest.subarray(length);
      yield { message, moment: this.#isFirst ? undefined : this.#momentOf(message) };
      this.#isFirst = false;
    }
  }

  #momentOf(message: Buffer): Moment | undefined {
    if (message[0] === bind) return message.toString("latin1", 5, 15) === "\0lockHead\0" ? "lock" : undefined;
    if (message[0] !== query) return undefined;
    const text = message.toString("latin1", 5, message.length - 1);
    const isOfTurn = text === commit && this.#before === withoutTimeout;
    this.#before = text;
    return isOfTurn ? "commit" : undefined;
  }
}

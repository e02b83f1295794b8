import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { commit, withoutTimeout } from "../../../packages/gate/src/ledger/store/postgres/sql.ts";

/** A moment in a gate's transaction: its request for the head's lock, or its COMMIT, before the server has seen it. */
export type Moment = "lock" | "commit";

/** May do anything with the link and the message; the message is not sent on automatically. */
export type LinkAction = (link: Link, message: Buffer) => void;

/**
 * A TCP connection to PostgreSQL that fails as networks do: cut, silent for a while, redirected to another server. It
 * reads the gates' messages in clear text, so that it can fail at a moment of a transaction.
 */
export class Line {
  readonly #listener: Server;
  readonly #links = new Set<Link>();
  readonly #reads: boolean;
  readonly #actions: { readonly moment: Moment; readonly action: LinkAction }[] = [];
  #target: number;
  #isDark = false;

  private constructor(listener: Server, target: number, reads: boolean) {
    this.#listener = listener;
    this.#target = target;
    this.#reads = reads;
    listener.on("connection", (client) => this.#link(client));
  }

  /** @param reads whether a gate uses the connection; a standby's stream is not parsed */
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
      const at = this.#actions.findIndex((waiting) => waiting.moment === moment);
      const [taken] = at === -1 ? [] : this.#actions.splice(at, 1);
      if (taken === undefined) link.pass(message);
      else taken.action(link, message);
    });
    this.#links.add(link);
    link.onEnd = () => this.#links.delete(link);
    if (this.#isDark) link.darken();
  }

  /** Runs an action at the next such moment. Resolves false if none came within the time. */
  atNext(moment: Moment, withinMs: number, action: LinkAction): Promise<boolean> {
    return new Promise((resolve) => {
      const waiting = {
        moment,
        action: (link: Link, message: Buffer): void => {
          clearTimeout(late);
          action(link, message);
          resolve(true);
        },
      };
      const late = setTimeout(() => {
        const at = this.#actions.indexOf(waiting);
        if (at !== -1) this.#actions.splice(at, 1);
        resolve(false);
      }, withinMs);
      this.#actions.push(waiting);
    });
  }

  /** Sets the server for new links. */
  lead(target: number): void {
    this.#target = target;
  }

  /** No byte arrives any more in either direction, and no side gets an error. Bytes sent meanwhile are delayed. */
  darken(): void {
    this.#isDark = true;
    for (const link of this.#links) link.darken();
  }

  /** Does the same as `darken`, for new links only. */
  darkenNew(): void {
    this.#isDark = true;
  }

  /** Delivers the delayed bytes. */
  lighten(): void {
    this.#isDark = false;
    for (const link of this.#links) link.lighten();
  }

  /** The present links, because later links may lead elsewhere. */
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
  /** Reads the server's message; returns whether to pass it on to the gate. */
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

  /** Sends the bytes on to the server, as soon as the connection is not dark. */
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

  /** Breaks the connection for both ends. The bytes last sent to the server may be part of a message. */
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

/** Splits a gate's bytes into messages; the first message has no letter before its length. */
class TurnReader {
  #rest = Buffer.alloc(0);
  #isFirst = true;
  /**
   * The simple query before the present one: a transaction's COMMIT follows the statement that removes the time-out.
   */
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

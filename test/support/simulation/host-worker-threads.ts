/**
 * Replaces `node:worker_threads`: a thread is a copy of its module in this thread, and a message is a task of the
 * machine. Another thread therefore never interrupts the work between two messages; the order of messages is random.
 */
import { machine } from "./machine.ts";

type Listener = (value: unknown) => void;

interface Message {
  readonly id: number;
}

/** The port of a module that serves; like the module's code, it outlives the simulated processes. */
class Port {
  #serve: Listener = () => undefined;
  /** The senders of open requests, with the requests' numbers. */
  readonly #requests = new Map<number, readonly [worker: Worker, id: number]>();
  #next = 1;

  on(_event: "message", serve: Listener): void {
    this.#serve = serve;
  }

  /** Sends a message from the module to the sender of the request. */
  postMessage(reply: Message): void {
    const [worker, id] = this.#requests.get(reply.id) ?? [];
    this.#requests.delete(reply.id);
    worker?.receive({ ...reply, id });
  }

  /** Sends a message to the module; it is already a copy. */
  send(worker: Worker, message: Message): void {
    const id = this.#next;
    this.#next += 1;
    this.#requests.set(id, [worker, message.id]);
    this.#serve({ ...message, id });
  }

  forget(worker: Worker): void {
    for (const [id, [from]] of this.#requests) if (from === worker) this.#requests.delete(id);
  }
}

/** The ports, by the copy of the sources and the module. All copies of this module share this map. */
const ports = ((globalThis as { simulatedPorts?: Map<string, Port> }).simulatedPorts ??= new Map<string, Port>());

const own = new URL(import.meta.url).searchParams;
const copy = own.get("copy") ?? "";

/** Null in the main thread. */
export const parentPort: Port | null = own.get("thread") === null ? null : portOf(own.get("thread") ?? "");

function portOf(thread: string): Port {
  const name = `${copy} ${thread}`;
  const port = ports.get(name) ?? new Port();
  ports.set(name, port);
  return port;
}

export class Worker {
  readonly #port: Port;
  readonly #listeners = new Map<string, Listener>();
  #isOver = false;

  constructor(module: URL) {
    this.#port = portOf(module.pathname.replace(/^.*\//, ""));
  }

  on(event: string, listener: Listener): void {
    this.#listeners.set(event, listener);
  }

  postMessage(message: Message): void {
    const sent = structuredClone(message);
    machine().later(0, () => this.#isOver || this.#port.send(this, sent), this.#port);
  }

  receive(reply: unknown): void {
    machine().later(0, () => this.#isOver || this.#listeners.get("message")?.(reply), this);
  }

  terminate(): Promise<number> {
    this.#isOver = true;
    this.#port.forget(this);
    return machine().eventually(() => {
      this.#listeners.get("exit")?.(0);
      return 0;
    });
  }
}

/**
 * In the place of `node:worker_threads`: a thread is a copy of its module in this one, and a message a task of the machine.
 * What runs between two messages is therefore never interrupted by another thread; which message goes next is chance.
 */
import { machine } from "./machine.ts";

type Listener = (value: unknown) => void;

interface Message {
  readonly id: number;
}

/** The end of a module that serves; it outlives the processes that are simulated, as its code does. */
class Port {
  #serve: Listener = () => undefined;
  /** Who asked what is still to be answered, and under which number it asked. */
  readonly #asked = new Map<number, readonly [worker: Worker, id: number]>();
  #next = 1;

  on(_event: "message", serve: Listener): void {
    this.#serve = serve;
  }

  /** From the module, to who asked: what it answers with was made for that. */
  postMessage(reply: Message): void {
    const [worker, id] = this.#asked.get(reply.id) ?? [];
    this.#asked.delete(reply.id);
    worker?.receive({ ...reply, id });
  }

  /** To the module, of what is a copy already. */
  send(worker: Worker, message: Message): void {
    const id = this.#next;
    this.#next += 1;
    this.#asked.set(id, [worker, message.id]);
    this.#serve({ ...message, id });
  }

  forget(worker: Worker): void {
    for (const [id, [from]] of this.#asked) if (from === worker) this.#asked.delete(id);
  }
}

/** By copy of the sources and module: all copies of this one share it. */
const ports = ((globalThis as { simulatedPorts?: Map<string, Port> }).simulatedPorts ??= new Map<string, Port>());

const own = new URL(import.meta.url).searchParams;
const copy = own.get("copy") ?? "";

/** Null in the thread that is not one. */
export const parentPort: Port | null = own.get("thread") === null ? null : portOf(own.get("thread") ?? "");

function portOf(thread: string): Port {
  const place = `${copy} ${thread}`;
  const port = ports.get(place) ?? new Port();
  ports.set(place, port);
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

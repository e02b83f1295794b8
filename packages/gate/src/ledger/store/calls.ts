import { parentPort, type Worker } from "node:worker_threads";
import { LedgerRefused, NotKept, type NotKeptWhy } from "../errors.ts";

/** A function that one thread offers to another. Arguments and results are structured clones. */
type WorkerMethod = (...args: never[]) => unknown;
type Handlers = Readonly<Record<string, WorkerMethod>>;

interface WorkerCall {
  readonly id: number;
  readonly name: string;
  readonly args: readonly unknown[];
}

interface WorkerReply {
  readonly id: number;
  readonly value?: unknown;
  readonly failure?: { readonly kind: "refused" | "fault" | NotKeptWhy; readonly message: string };
}

/** Answers calls in the order of arrival. A call that returns a promise does not delay later calls. */
export function serveCalls(handlers: Handlers): void {
  const port = parentPort;
  if (port === null) throw new Error("serveCalls is for a worker thread");
  port.on("message", ({ id, name, args }: WorkerCall) => {
    const postFailure = (error: unknown): void =>
      port.postMessage({ id, failure: describe(error) } satisfies WorkerReply);
    try {
      const value = handlers[name]?.(...(args as never[]));
      if (value instanceof Promise) value.then((later: unknown) => port.postMessage({ id, value: later }), postFailure);
      else port.postMessage({ id, value });
    } catch (error) {
      postFailure(error);
    }
  });
}

/**
 * Answers calls on objects that this thread has opened, each under its own number. If `open` throws, nothing stays
 * open. `close` removes an object even if its own `close` throws.
 *
 * @param names the methods of an object that may be called
 */
export function serveOpened<Opened extends { close(): void }>(
  open: (options: never) => { readonly opened: Opened; readonly said: unknown },
  names: readonly (keyof Opened & string)[],
): void {
  const all = new Map<number, Opened>();
  const findOpened = (id: number): Opened => {
    const opened = all.get(id);
    if (opened === undefined) throw new Error("it is not open");
    return opened;
  };
  const onOne = names.map((name) => {
    return [
      name,
      (id: number, ...args: never[]) => Reflect.apply(findOpened(id)[name] as WorkerMethod, findOpened(id), args),
    ];
  });
  serveCalls({
    ...(Object.fromEntries(onOne) as Handlers),
    open: (id: number, options: never) => {
      const { opened, said } = open(options);
      all.set(id, opened);
      return said;
    },
    close: (id: number) => {
      const opened = all.get(id);
      all.delete(id);
      opened?.close();
    },
  });
}

function describe(error: unknown): NonNullable<WorkerReply["failure"]> {
  if (error instanceof LedgerRefused) return { kind: "refused", message: error.message };
  if (error instanceof NotKept) return { kind: error.why, message: error.message };
  return { kind: "fault", message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
}

/** Calls a worker's functions. If the worker dies, every waiting call and every later call rejects. */
export class WorkerCaller {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  #next = 1;
  #dead: Error | undefined;

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.on("message", ({ id, value, failure }: WorkerReply) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (failure === undefined) waiting?.resolve(value);
      else waiting?.reject(revive(failure));
    });
    worker.on("error", (error) => this.#die(error instanceof Error ? error : new Error(String(error))));
    worker.on("exit", () => this.#die(new Error("the ledger's thread has ended")));
  }

  call<Value>(name: string, ...args: readonly unknown[]): Promise<Value> {
    if (this.#dead !== undefined) return Promise.reject(this.#dead);
    const id = this.#next;
    this.#next += 1;
    return new Promise<Value>((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
      this.#worker.postMessage({ id, name, args } satisfies WorkerCall);
    });
  }

  /** True if the thread has ended, so that every later call rejects. */
  get hasEnded(): boolean {
    return this.#dead !== undefined;
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }

  /** Says whether the process lives as long as the thread. */
  keepProcessAlive(isReferenced: boolean): void {
    this.#worker[isReferenced ? "ref" : "unref"]();
  }

  #die(error: Error): void {
    this.#dead ??= error;
    for (const { reject } of this.#waiting.values()) reject(this.#dead);
    this.#waiting.clear();
  }
}

function revive({ kind, message }: NonNullable<WorkerReply["failure"]>): Error {
  if (kind === "refused") return new LedgerRefused(message);
  return kind === "fault" ? new Error(message) : new NotKept(kind, message);
}

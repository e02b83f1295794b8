import { Worker } from "node:worker_threads";
import { WorkerCaller } from "./calls.ts";

/** An object in another thread. */
export interface Remote {
  call<Value>(method: string, ...args: readonly unknown[]): Promise<Value>;
  /** True if the thread has ended, so that every later call rejects. */
  readonly hasEnded: boolean;
  /** Closes the object. With its last object the thread ends, or rests for the next one. Rejects with the error of closing. */
  end(): Promise<void>;
}

interface Thread {
  readonly caller: WorkerCaller;
  objects: number;
}

/**
 * Owns the threads that run one module, and the objects that are open in them. Each object has its own thread until the
 * maximum is reached. Later objects share the threads.
 */
export class Threads {
  readonly #module: URL;
  readonly #max: number;
  readonly #threads = new Set<Thread>();
  /** With the timer that ends each. */
  readonly #resting = new Map<WorkerCaller, NodeJS.Timeout>();
  #next = 1;

  /** @param module a module that calls `serveOpened` */
  constructor(module: URL, max: number) {
    this.#module = module;
    this.#max = max;
  }

  /** Opens an object and returns the result of opening it as `said`. If this throws, nothing stays open. */
  async open(options: unknown): Promise<{ readonly remote: Remote; readonly said: unknown }> {
    const thread = this.#pick();
    const id = this.#next;
    this.#next += 1;
    thread.objects += 1;
    try {
      const said = await thread.caller.call<unknown>("open", id, options);
      return { said, remote: this.#remote(thread, id) };
    } catch (error) {
      await this.#leave(thread, false);
      throw error;
    }
  }

  #remote(thread: Thread, id: number): Remote {
    const { caller } = thread;
    let ending: Promise<void> | undefined;
    return {
      call: (method, ...args) => caller.call(method, id, ...args),
      get hasEnded() {
        return caller.hasEnded;
      },
      end: () => (ending ??= this.#end(thread, id)),
    };
  }

  async #end(thread: Thread, id: number): Promise<void> {
    let isSound = false;
    try {
      if (!thread.caller.hasEnded) await thread.caller.call("close", id);
      isSound = !thread.caller.hasEnded;
    } finally {
      await this.#leave(thread, isSound);
    }
  }

  /** A thread that failed to open or to close an object is not used again. */
  async #leave(thread: Thread, isSound: boolean): Promise<void> {
    thread.objects -= 1;
    if (thread.objects > 0) return;
    this.#threads.delete(thread);
    if (isSound && this.#resting.size < restingMax) this.#rest(thread.caller);
    else await thread.caller.end();
  }

  #rest(caller: WorkerCaller): void {
    const end = (): void => void (this.#resting.delete(caller) && caller.end());
    this.#resting.set(caller, setTimeout(end, restMs).unref());
    caller.keepProcessAlive(false);
  }

  #wake(): WorkerCaller | undefined {
    const caller = this.#resting.keys().find(({ hasEnded }) => !hasEnded);
    if (caller === undefined) return undefined;
    clearTimeout(this.#resting.get(caller));
    this.#resting.delete(caller);
    caller.keepProcessAlive(true);
    return caller;
  }

  #pick(): Thread {
    const living = [...this.#threads].filter(({ caller }) => !caller.hasEnded);
    if (living.length < this.#max) {
      const thread = { caller: this.#wake() ?? new WorkerCaller(startThread(this.#module)), objects: 0 };
      this.#threads.add(thread);
      return thread;
    }
    return living.reduce((least, thread) => (thread.objects < least.objects ? thread : least));
  }
}

/** So many threads without an object wait so long for the next one, because a start takes about 50 ms. */
const restingMax = 2;
const restMs = 5000;

/** Limits the young generation: the objects of these threads are short-lived, and its memory stays resident. */
function startThread(module: URL): Worker {
  return new Worker(module, { resourceLimits: { maxYoungGenerationSizeMb: 8 } });
}

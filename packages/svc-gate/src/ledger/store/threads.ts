import { Worker } from "node:worker_threads";
import { Caller } from "./calls.ts";

/** An object that lives in another thread. */
export interface Remote {
  call<Value>(method: string, ...args: readonly unknown[]): Promise<Value>;
  /** Its thread is gone: nothing that is asked of it will be answered. */
  readonly hasEnded: boolean;
  /** Lets it go; the thread goes with the last one. Rejects with what went wrong at that. */
  end(): Promise<void>;
}

interface Thread {
  readonly caller: Caller;
  objects: number;
}

/**
 * Threads that run one module, and the objects opened in them: one thread for each object until there are as many as may
 * be, then they share. It owns the threads.
 */
export class Threads {
  readonly #module: URL;
  readonly #max: number;
  readonly #threads = new Set<Thread>();
  #next = 1;

  /** @param module one that calls `serveOpened` */
  constructor(module: URL, max: number) {
    this.#module = module;
    this.#max = max;
  }

  /** Opens an object with options; `said` is what opening it said. What is thrown leaves nothing open. */
  async open(options: unknown): Promise<{ readonly remote: Remote; readonly said: unknown }> {
    const thread = this.#pick();
    const place = this.#next;
    this.#next += 1;
    thread.objects += 1;
    try {
      const said = await thread.caller.call<unknown>("open", place, options);
      return { said, remote: this.#remote(thread, place) };
    } catch (error) {
      await this.#leave(thread);
      throw error;
    }
  }

  #remote(thread: Thread, place: number): Remote {
    const { caller } = thread;
    let ending: Promise<void> | undefined;
    return {
      call: (method, ...args) => caller.call(method, place, ...args),
      get hasEnded() {
        return caller.hasEnded;
      },
      end: () => (ending ??= this.#end(thread, place)),
    };
  }

  async #end(thread: Thread, place: number): Promise<void> {
    try {
      if (!thread.caller.hasEnded) await thread.caller.call("close", place);
    } finally {
      await this.#leave(thread);
    }
  }

  async #leave(thread: Thread): Promise<void> {
    thread.objects -= 1;
    if (thread.objects > 0) return;
    this.#threads.delete(thread);
    await thread.caller.end();
  }

  #pick(): Thread {
    const living = [...this.#threads].filter(({ caller }) => !caller.hasEnded);
    if (living.length < this.#max) {
      const thread = { caller: new Caller(startThread(this.#module)), objects: 0 };
      this.#threads.add(thread);
      return thread;
    }
    return living.reduce((least, thread) => (thread.objects < least.objects ? thread : least));
  }
}

/** The young generation is capped: what these threads handle is short-lived, and their memory is resident. */
function startThread(module: URL): Worker {
  return new Worker(module, { resourceLimits: { maxYoungGenerationSizeMb: 8 } });
}

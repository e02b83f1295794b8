import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { root, spawnGate } from "../gate-process.ts";
import { preload as mutationPreload } from "../mutation/sources.ts";

export interface ReplicaOptions {
  readonly name: string;
  readonly port: number;
  readonly settings: Readonly<Record<string, string>>;
}

/** The end of a gate that nobody killed. */
export interface GateEnd {
  readonly replica: string;
  readonly exitCode: number | null;
  /** The last line of its log. */
  readonly said: string;
}

const preload = pathToFileURL(join(import.meta.dirname, "gate-preload.ts")).href;

/** A gate that is started again on the same port whenever it ends, as a supervisor does. */
export class Replica {
  readonly #options: ReplicaOptions;
  readonly ends: GateEnd[] = [];
  #process: ChildProcess | undefined;
  #isStopped = false;
  #pauseMs = 0;
  #runs: Promise<void>;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    this.#runs = this.#run();
  }

  get url(): string {
    return `http://127.0.0.1:${this.#options.port}`;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const { name, port, settings } = this.#options;
      const environment = {
        SVC_PORT: String(port),
        NODE_OPTIONS: `--import=${preload} --import=${mutationPreload}`,
        ...settings,
      };
      const gate = spawnGate(["serve"], {
        settings: { NODE_COMPILE_CACHE: join(root, "node_modules", ".cache", "compiled"), ...environment },
      });
      let said = "";
      const hear = (piece: Buffer): void => void (said = (said + piece.toString()).slice(-4000));
      gate.stdout?.resume();
      gate.stderr?.on("data", hear);
      this.#process = gate;
      await once(gate, "close");
      if (gate.signalCode !== "SIGKILL" && !this.#isStopped)
        this.ends.push({ replica: name, exitCode: gate.exitCode, said: said.trim() });
      await wait(Math.max(200, this.#pauseMs));
      this.#pauseMs = 0;
    }
  }

  /** Runs `kill -9`; the gate returns after a while. */
  kill(pauseMs: number): void {
    this.#pauseMs = pauseMs;
    this.#process?.kill("SIGKILL");
  }

  /** Pauses the process at any point. */
  freeze(): () => void {
    const frozen = this.#process;
    frozen?.kill("SIGSTOP");
    return () => void frozen?.kill("SIGCONT");
  }

  /** Puts the present content of its files in force. */
  async reload(): Promise<void> {
    const running = this.#process;
    // A starting gate does not handle the signal yet, and would end.
    if (await this.isServing()) running?.kill("SIGHUP");
  }

  async isServing(): Promise<boolean> {
    try {
      const response = await fetch(`${this.url}/health`, { signal: AbortSignal.timeout(20_000) });
      await response.arrayBuffer();
      return response.ok;
    } catch {
      return false;
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#process?.kill("SIGKILL");
    await this.#runs;
  }
}

/**
 * Rounds of one call (MCP 2026-07-28): the server answers that it needs input, and the client sends the call again with
 * the answers. Each answer of the server permits one such round, of the same call and with the server's own state.
 */
import type { Verdict } from "../../../../clients/javascript/svc-gate.mjs";
import { digestOf, type JsonRecord } from "./json.ts";

interface OpenRound {
  readonly verdicts: readonly Verdict[];
  readonly endMs: number;
}

/** Rounds that a client has not continued: the oldest is forgotten, and its continuation refused. */
const roundsMax = 10_000;
const roundMs = 3_600_000;

/** What a round must have in common with the call that it continues. */
export interface RoundCall {
  readonly method: string;
  /** The judged input: the arguments of a tool, or the params of a channel. */
  readonly name: string;
  readonly input: JsonRecord;
}

export class Rounds {
  readonly #open = new Map<string, OpenRound[]>();
  #size = 0;

  /** @param state the server's `requestState`, or undefined if the server sent none */
  add(call: RoundCall, state: string | undefined, verdicts: readonly Verdict[]): void {
    const key = digestOf([call.method, call.name, call.input, state ?? null]);
    const rounds = this.#open.get(key) ?? [];
    rounds.push({ verdicts, endMs: performance.now() + roundMs });
    this.#open.set(key, rounds);
    this.#size += 1;
    const [oldest] = this.#open.keys();
    if (this.#size > roundsMax && oldest !== undefined) {
      this.#size -= this.#open.get(oldest)?.length ?? 0;
      this.#open.delete(oldest);
    }
  }

  /** Uses the permission for one round; returns the verdicts of the earlier ones. */
  take(call: RoundCall, state: unknown): readonly Verdict[] | undefined {
    const key = digestOf([call.method, call.name, call.input, state ?? null]);
    const rounds = this.#open.get(key);
    const round = rounds?.shift();
    if (rounds === undefined || round === undefined) return undefined;
    this.#size -= 1;
    if (rounds.length === 0) this.#open.delete(key);
    return round.endMs > performance.now() ? round.verdicts : undefined;
  }
}

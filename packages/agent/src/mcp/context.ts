import type { Judge } from "./judge.ts";
import type { Pins } from "./pins.ts";
import type { Rounds } from "./rounds.ts";
import type { Tasks } from "./tasks.ts";

/** Where messages go. */
export interface Ports {
  /** `isOwn`: the proxy asks for itself, so the answer is not for the client. */
  readonly toServer: (text: string, isOwn: boolean) => void;
  readonly toClient: (text: string) => void;
  /** The stream repeats messages that the server has sent before. */
  readonly isReplay?: boolean;
}

/** What all clients of one server share. */
export interface RelayContext {
  readonly prefix: string;
  readonly pins: Pins;
  readonly judge: Judge;
  readonly rounds: Rounds;
  readonly tasks: Tasks;
  readonly say: (sentence: string) => void;
  /** Answers stay known, because a stream can be resumed. */
  readonly keepsAnswered: boolean;
}

/** Requests of one side that may be open at once. */
export const openMax = 10_000;

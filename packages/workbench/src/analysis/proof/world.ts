import type { Core } from "../../../../readers/src/ir.ts";
import { SymbolicValue, type ListView, type Sight } from "./symbolic-value.ts";
import { Script } from "./script.ts";
import type { FreeCall } from "./untranslated.ts";
import { and, type Term } from "./term.ts";

export type CoreType = Core["type"];

/** A counter in a question: a free number, and whether reading it fails. */
export interface CounterTerms {
  readonly value: Term;
  readonly fails: Term;
  /** One name, whichever contract reads it. */
  readonly key: string;
  /** The number, before a call without a session makes it zero. */
  readonly free: Term;
}

/** The subject of a question: any call of one tool, with any facts, at any time. */
export class SymbolicCall {
  readonly script: Script = new Script();
  readonly sight: Sight;
  readonly tool: string;
  readonly input: SymbolicValue;
  readonly platform: SymbolicValue;
  readonly hasPlatform: Term;
  readonly hasSession: Term;
  /** Milliseconds since the epoch. */
  readonly now: Term;
  /** Calls of functions without a translation. */
  readonly freeCalls: FreeCall[] = [];
  readonly #opaque = new Map<string, SymbolicValue>();
  #leavesOut = false;
  readonly #unknown = new Map<string, Term>();

  constructor(tool: string, view: ListView) {
    this.tool = tool;
    this.sight = { script: this.script, view, schemas: 0 };
    this.input = new SymbolicValue(this.sight);
    this.platform = new SymbolicValue(this.sight);
    this.hasPlatform = this.script.constant("Bool");
    this.hasSession = this.script.constant("Bool");
    this.now = this.script.constant("Int");
    this.script.assert(and(this.input.is("object"), this.platform.is("object")));
    this.script.assert(`(and (<= 0 ${this.now}) (<= ${this.now} 4102444800000))`);
  }

  /** Is the whole question exact? Otherwise its result may not be real. */
  get isExact(): boolean {
    if (this.sight.view === "any" && this.readsLong) return false;
    return this.#opaque.size === 0 && this.#unknown.size === 0;
  }

  /** Does the question leave out calls: those with longer lists than it covers, or rare cases? */
  get leavesOut(): boolean {
    return this.#leavesOut || this.readsLong;
  }

  /** Does the question read a list that may be longer than `itemsMax`? */
  get readsLong(): boolean {
    return [this.input, this.platform, ...this.#opaque.values()].some((symbol) => symbol.readsLong);
  }

  /** Unknown, true or false; the same for one key. */
  unknown(key: string): Term {
    return this.#unknown.getOrInsertComputed(key, () => this.script.constant("Bool"));
  }

  /** Returns an unknown statement, or false if the solver examines only short lists. So an example that it finds is real. */
  rarely(key: string): Term {
    if (this.sight.view === "any") return this.unknown(key);
    this.#leavesOut = true;
    return "false";
  }

  /** A symbol for a value of which only the type is known; the same for one key. */
  opaque(key: string, type: CoreType): SymbolicValue {
    return this.#opaque.getOrInsertComputed(key, () => {
      const symbol = new SymbolicValue(this.sight);
      if (type.kind === "number" && type.notNegative) this.script.assert(`(>= ${symbol.number} 0.0)`);
      return symbol;
    });
  }

  /** Asserts the statements about all items of lists. Call it when nothing more is read. */
  settle(): void {
    const symbols = [this.input, this.platform, ...this.#opaque.values()];
    for (let rounds = 4; rounds > 0; rounds -= 1) if (!symbols.some((symbol) => symbol.settle(rounds))) return;
  }
}

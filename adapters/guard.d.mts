/** Types and promises of guard.mjs, which all adapters for JavaScript use. The rules: adapters/README.md. */

/** The part of the gate's client that adapters use: a SvcGate of svc-gate/client. */
export interface GateClient<V extends GateVerdict = any> {
  check(toolName: string, toolInput: object, facts?: object | null, approval?: string | null): Promise<V>;
  settle(
    verdict: V,
    toolName: string,
    toolInput: object,
    facts: () => object | null | undefined | Promise<object | null | undefined>,
    options: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined },
  ): Promise<V>;
  outcome(verdict: V, status: "done" | "failed" | "unknown"): Promise<string | null>;
}

/** The part of a verdict that adapters read. */
export interface GateVerdict {
  readonly verdict: "ALLOW" | "BLOCK" | "ESCALATE";
  readonly mode: "observe" | "assist" | "enforce" | null;
  readonly unreached: boolean;
}

/** A call as the gate is asked about it. */
export interface GuardedCall {
  /** The name at the gate: `pay`, or `server.tool`. */
  readonly name: string;
  /** Plain JSON data. */
  readonly input: object;
  /** What the framework says about the run: its type is the framework's. */
  readonly context?: any;
}

/** For a call that a person must decide: refuse it, let it wait, or stop the run so that it can be resumed. */
export type OnEscalate = "refuse" | "wait" | "park";

export interface GuardSettings<Call extends GuardedCall = GuardedCall> {
  /** The client of one run of an agent. If the agent serves several runs, pass a function that returns the run's client. */
  readonly gate: GateClient | ((call: Call) => GateClient | Promise<GateClient>);
  /** Returns the facts of the platform about this call. If it throws or changes the call's input, the call is refused. */
  readonly facts?: (call: Call) => object | null | undefined | Promise<object | null | undefined>;
  /** Default `refuse`. Not every framework has all three. */
  readonly onEscalate?: OnEscalate;
  /** Milliseconds to wait for a person with `wait`. Default 900000. */
  readonly waitMs?: number;
  /** Takes sentences and errors for operators, which the model must not read. Default `console.error`. */
  readonly log?: (problem: unknown) => void;
}

/** What the framework may do with a call. Frozen. */
export interface Judgement {
  /** Whether the tool may run now. */
  readonly runs: boolean;
  /** Whether an enforcing gate allowed the call: only this is a permission in a framework that has permissions. */
  readonly grants: boolean;
  /** Whether the run must stop until a person has decided. */
  readonly parks: boolean;
  /** One sentence for the model. */
  readonly reason: string;
  /** The id of the approval that a person gives or denies; null if there is none. */
  readonly approval: string | null;
}

export interface JudgeOptions {
  /** The id of an approval of this call. */
  readonly approval?: string | undefined;
  /** Ends the wait for a person. If it is aborted before the verdict, the call is refused. */
  readonly signal?: AbortSignal | undefined;
}

export interface Guard<Call extends GuardedCall = GuardedCall> {
  /**
   * Asks the gate about the call. Never rejects: a failure, or an input that changed meanwhile, is a judgement that refuses.
   */
  judge(call: Call, options?: JudgeOptions): Promise<Judgement>;
  /**
   * Reports the outcome of an allowed call. Sends nothing if no receipt exists. You need not wait for the promise, which
   * never rejects.
   */
  report(judgement: Judgement, status: "done" | "unknown"): Promise<void>;
  /**
   * Runs `work` if the gate allows the call, and reports the outcome. Otherwise it returns `refuse(judgement)`. It rejects if
   * `work` or `refuse` rejects.
   */
  run<T, R>(
    call: Call,
    work: () => T | Promise<T>,
    refuse: (judgement: Judgement) => R | Promise<R>,
    options?: JudgeOptions,
  ): Promise<T | R>;
  /** Does what `run` does, with a judgement of exactly this call. The judgement is good for one run: a second run is refused. */
  runJudged<T, R>(
    judgement: Judgement,
    work: () => T | Promise<T>,
    refuse: (judgement: Judgement) => R | Promise<R>,
  ): Promise<T | R>;
}

/** What a framework can do. */
export interface Framework {
  /** The values of `onEscalate` that it can have. Default `refuse` and `wait`. */
  readonly ways?: readonly OnEscalate[];
  /**
   * Whether it has its own permissions, so that the gate's ALLOW is a permission. Then fail-open lets nothing run. Default
   * false.
   */
  readonly grant?: boolean;
}

/**
 * Returns the guard with these settings.
 *
 * @throws a TypeError for a setting that does not exist or cannot be used
 */
export declare function guardOf<Call extends GuardedCall = GuardedCall>(
  settings: GuardSettings<Call>,
  framework?: Framework,
): Guard<Call>;

/** The refusal of a call, in a framework whose tools throw: the message is the sentence for the model. */
export declare class SvcGateRefusal extends Error {
  constructor(judgement: Pick<Judgement, "reason" | "approval">);
  /** The id of the approval that a person gives or denies; null if there is none. */
  readonly approval: string | null;
}

/**
 * Returns the name of a tool at the gate: `tool`, or `server.tool` with both parts escaped as adapters/README.md says.
 * Undefined if the tool has no name, or a name that could be mistaken for a server's tool.
 */
export declare function gateName(tool: string, server?: string): string | undefined;

/** Returns why `gateName` has no name for these, and what to do: a tool's name without a dot, and `aliases` in the contract. */
export declare function nameProblem(tool: string, server?: string): string;

/** Types and promises of claude-agent-sdk.mjs. The names and rules that all adapters share: adapters/README.md. */

/** The part of the gate's client that the adapter uses: a SvcGate of svc-gate/client, one for each run of an agent. */
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

/** The part of a verdict that the adapter reads. */
export interface GateVerdict {
  readonly verdict: "ALLOW" | "BLOCK" | "ESCALATE";
  readonly mode: "observe" | "assist" | "enforce" | null;
  readonly unreached: boolean;
}

/** A call as the gate is asked about it. */
export interface GuardedCall {
  /** The name at the gate: `Bash`, or `server.tool`. */
  readonly name: string;
  readonly input: object;
  /** The name in the host: `mcp__server__tool`. */
  readonly hostName: string;
  /** Null outside a sub-agent. */
  readonly agentId: string | null;
  /** An id of the model: two calls may have the same. */
  readonly toolUseId: string;
}

export interface GuardSettings {
  readonly gate: GateClient;
  /** Returns the facts of the platform about this call. If it throws, the call is refused. */
  readonly facts?: (call: GuardedCall) => object | null | undefined | Promise<object | null | undefined>;
  /** If a person must decide: `refuse` (the default) denies the call and says so, `wait` holds the call. */
  readonly onEscalate?: "refuse" | "wait";
  /** Milliseconds to wait for a person. Default 900000. */
  readonly waitMs?: number;
  /**
   * Whether the gate's ALLOW is the grant: default true. With false the host's own permissions stay, and the gate can only
   * deny. Use false while the gate observes.
   */
  readonly grant?: boolean;
  /** Takes sentences for operators, which the model must not read. Default `console.error`. */
  readonly log?: (sentence: unknown) => void;
}

/**
 * Returns options for `query` under which the gate decides each tool call. The given options stay as they are.
 *
 * It sets `hooks`, `disallowedTools` and, with `grant`, `permissionMode: "dontAsk"` and `settingSources: []` (unless you set
 * other sources: their files can allow tools and switch hooks off).
 *
 * @throws a TypeError that names every option that would let a call run without the gate, or run another call than judged:
 *   allowed tools, another permission mode, another PreToolUse hook, a tool that the provider runs
 */
export declare function guarded<Options extends object>(options: Options, settings: GuardSettings): Options;

/** Types and promises of claude-agent-sdk.mjs. The names and rules that all adapters share: adapters/README.md. */

import type { GuardSettings as SharedSettings } from "./guard.mjs";

/** A call as the gate is asked about it. */
export interface GuardedCall {
  /** The name at the gate: `Bash`, or `server.tool`. */
  readonly name: string;
  readonly input: object;
  /** The name in the host: `mcp__server__tool`. */
  readonly hostName: string;
  /** Null outside a sub-agent. */
  readonly agentId: string | null;
  /** An id from the model: two calls may have the same id. */
  readonly toolUseId: string;
}

export interface GuardSettings extends SharedSettings<GuardedCall> {
  /** If a person must decide: `refuse` (the default) denies the call and says so, `wait` waits for the decision. */
  readonly onEscalate?: "refuse" | "wait";
  /**
   * Whether the gate's ALLOW is the grant: default true. With false the host's own permissions stay, and the gate can only
   * deny. Use false while the gate observes.
   */
  readonly grant?: boolean;
}

/**
 * Returns options for `query` under which the gate decides each tool call. The given options stay as they are.
 *
 * It sets `hooks`, `disallowedTools` and, with `grant`, `permissionMode: "dontAsk"` and `settingSources: []`. If you set
 * other sources, it keeps them: their files can allow tools and switch hooks off.
 *
 * @throws a TypeError that names every option that would let a call run without the gate, or change a judged call:
 *   allowed tools, another permission mode, another PreToolUse hook, a tool that the provider runs
 */
export declare function guarded<Options extends object>(options: Options, settings: GuardSettings): Options;

/** Types and promises of google-adk.mjs. guard.d.mts and adapters/README.md describe the parts that all adapters share. */
import type { GuardSettings } from "./guard.mjs";

/** `context` of a call is the Context that ADK gives to the tool. */
export interface GoogleAdkSettings extends GuardSettings {
  /** Default `refuse`. */
  readonly onEscalate?: "refuse" | "wait";
}

/**
 * Returns the same tools and toolsets, which run a tool only if the gate allows the call. The result of a refused call is
 * `{ error }` with the reason.
 *
 * A run fails before its first request if an agent with a guarded tool has another tool, a code executor or a tool that the
 * provider runs.
 *
 * @throws a TypeError that names each node of a workflow, and each tool of an agent in an AgentTool that is not guarded
 */
export declare function guarded<Tool>(tools: readonly Tool[], settings: GoogleAdkSettings): Tool[];

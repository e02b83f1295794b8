/** Types and promises of openai-agents.mjs. guard.d.mts and adapters/README.md describe the parts that all adapters share. */
import type { GuardSettings } from "./guard.mjs";

/** `context` has the SDK's RunContext of the call. It is undefined if the program itself calls a tool of an MCP server. */
export type OpenAiAgentsSettings = GuardSettings;

/**
 * Returns a copy of the agent whose function tools, tools of MCP servers and handoffs run only if the gate allows them. The
 * agents that it hands over to are copied too. The result of a refused tool is the reason. A refused handoff ends the run with a
 * SvcGateRefusal, because the SDK has no result for it.
 *
 * An agent as a tool must be made by `asTool` of a guarded agent: otherwise the SDK does not show which agent it is.
 *
 * With `onEscalate: "park"`, a function tool that a person must decide interrupts the run. Approve the interruption after the
 * decision and run the state again: the gate is asked again, and only the person's decision at the gate counts.
 *
 * @throws a TypeError that names each tool, agent and server that the adapter cannot guard
 */
export declare function guarded<A extends object>(agent: A, settings: OpenAiAgentsSettings): A;

/** Types and promises of langchain.mjs. guard.d.mts and adapters/README.md describe the parts that all adapters share. */
import type { GuardSettings } from "./guard.mjs";

/** `context` has the RunnableConfig of the call: `configurable.thread_id`, `context` and more. */
export interface LangChainSettings extends GuardSettings {
  /** The name of the tools' MCP server. Without it, the tools are the program's own. */
  readonly server?: string;
  /** The function `interrupt` of @langchain/langgraph. `onEscalate: "park"` needs it. */
  readonly interrupt?: (value?: any) => any;
}

/**
 * Returns the same tools, which run only if the gate allows the call. The result of a refused call is the reason.
 *
 * With `onEscalate: "park"`, a call that a person must decide interrupts the run with `{ svcGate, tool, reason, approval }`.
 * After the decision, resume with the value of the interrupt itself: the gate is asked again, and only the person's decision
 * at the gate counts. The call is refused instead if the graph has no checkpointer, or if its task has other calls, because
 * LangGraph would run those twice.
 *
 * @throws a TypeError that names each tool that the provider or a graph runs, that has an `invoke` of its own, or whose name has a dot
 */
export declare function guarded<Tool extends object>(tools: readonly Tool[], settings: LangChainSettings): Tool[];

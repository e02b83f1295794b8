/** Types and promises of ai-sdk.mjs. guard.d.mts and adapters/README.md describe the parts that all adapters share. */
import type { GuardSettings } from "./guard.mjs";

/** `context` has the SDK's options for the call: `toolCallId`, `messages` and more. */
export interface AiSdkSettings extends GuardSettings {
  /** The name of the tools' MCP server. Without it, the tools are the program's own. */
  readonly server?: string;
}

/**
 * Returns the same tools, which run only if the gate allows the call. A refused call throws, and the SDK shows the model the
 * reason.
 *
 * With `onEscalate: "park"`, a call that a person must decide becomes an approval request of the SDK (6 and 7). After its
 * answer the SDK starts the call, and the gate is asked again: only the person's decision at the gate counts. The AI SDK 5
 * has no approval requests, so the call is refused.
 *
 * @throws a TypeError that names each tool without an `execute` function, and each tool whose name has a dot
 */
export declare function guarded<Tools extends object>(tools: Tools, settings: AiSdkSettings): Tools;

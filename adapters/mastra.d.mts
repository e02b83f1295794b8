/** Types and promises of mastra.mjs. guard.d.mts and adapters/README.md describe the parts that all adapters share. */
import type { GuardSettings } from "./guard.mjs";

/** `context` has Mastra's context of the tool: `requestContext`, `agent` and more. */
export interface MastraSettings extends GuardSettings {
  /** The name of the tools' MCP server, as in Mastra's MCP client. Without it, the tools are the program's own. */
  readonly server?: string;
}

/**
 * Returns the same tools, which run only if the gate allows the call. The result of a refused call is the reason.
 * A call is refused too if the tool's schema would change the validated input again.
 *
 * With `onEscalate: "park"`, a call that a person must decide suspends the run with `{ reason, approval }`. After the decision
 * resume it with any data: the gate is asked again, and only the person's decision at the gate counts.
 *
 * @throws a TypeError that names each tool without an `execute` function, and each name that the server cannot have
 */
export declare function guarded<Tools extends object>(tools: Tools, settings: MastraSettings): Tools;

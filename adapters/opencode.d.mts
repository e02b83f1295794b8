/** Types and promises of opencode.mjs. guard.d.mts and adapters/README.md describe the parts that all adapters share. */
import type { GateClient, GuardedCall, GuardSettings } from "./guard.mjs";

/** A call of the host. `context` names its session. */
export interface OpencodeCall extends GuardedCall {
  readonly context: {
    /** The session that a person started. */
    readonly session: string;
    /** The session of the call. A sub-agent has its own session. */
    readonly sessionID: string;
    readonly callID: string;
  };
}

/** A server as in `mcp` of the host's settings. */
export type McpServer = Readonly<Record<string, unknown>>;

export interface OpencodeSettings extends Omit<GuardSettings<OpencodeCall>, "gate" | "onEscalate"> {
  /** Returns the client of a session that a person started. It is called once for each session. */
  readonly gate: (session: string) => GateClient;
  readonly onEscalate?: "refuse" | "wait";
  /**
   * MCP servers by their names. The adapter writes them into the host's settings, over those of a project's file. At the
   * gate, only their tools are `server.tool`. Tools of all other servers are `project:server.tool`.
   */
  readonly servers?: Readonly<Record<string, McpServer>>;
  /** Default true: the host's settings deny every tool, and the adapter opens them. False: the host's permissions stay. */
  readonly grant?: boolean;
}

/** Options in the host's settings. All but the first two are those of OpencodeSettings. */
export interface OpencodeOptions extends Pick<OpencodeSettings, "servers" | "grant" | "onEscalate" | "waitMs"> {
  readonly url: string;
  /** A file with the API key that only its owner can read. */
  readonly keyFile: string;
  /** Milliseconds for each question to the gate. */
  readonly timeoutMs?: number;
}

/** The part of the host that the adapter uses. */
export interface OpencodeHost {
  readonly directory: string;
  readonly client: any;
}

/** The plugin's hooks. `tool.execute.before` rejects unless the gate allowed the call, and fixes the arguments. */
export type OpencodeHooks = Readonly<Record<string, (...values: any[]) => Promise<void>>>;

/**
 * Returns a plugin for your own file in the host's `plugins` folder.
 *
 * @throws a TypeError for a setting that does not exist or cannot be used
 */
export declare function guarded(settings: OpencodeSettings): (host: OpencodeHost) => Promise<OpencodeHooks>;

/** The plugin for the host's settings. It refuses every call if an option is wrong or the key cannot be read. */
declare const plugin: {
  readonly id: "svc-gate";
  readonly server: (host: OpencodeHost, options: OpencodeOptions) => Promise<OpencodeHooks>;
};
export default plugin;

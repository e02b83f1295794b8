import type { StandIn } from "./stand-in.ts";

/** What the doctor knows of one agent, to list its tools. */
export interface ToolLister {
  /** The version of the installed host. */
  readonly version: (named: string | undefined) => string;
  /** Starts the host with the marker of the script `tools` as its user's text, and returns the last line that it wrote. */
  readonly start: (start: ListerStart) => Promise<string>;
  /** The tool's name at the gate. Undefined: a tool of an MCP server, which belongs into another contract. */
  readonly gateName: (name: string) => string | undefined;
}

export interface ListerStart {
  /** The host's program, if it was given. */
  readonly named: string | undefined;
  readonly project: string | undefined;
  /** True if the host can reach this machine only. */
  readonly isCut: boolean;
  readonly model: string;
  readonly gate: StandIn;
  /** An empty folder for the host's home and its workspace. */
  readonly folder: string;
  /** How often the host has shown the model its tools so far. */
  readonly timesShown: () => number;
  readonly say: (sentence: string) => void;
}

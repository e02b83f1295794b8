/** What a case of the kit says, and what a driver makes of it. */
import type { ScriptedCall } from "../../packages/agent/src/model/script.ts";

/** A call of the script. The driver uses the host's name of the tool. */
export interface Call {
  readonly tool: "pay" | "mcp" | "shell" | "stdin" | "agent" | "web" | "unknown";
  /** The arguments as text, so that they can be cut or repeat a member. */
  readonly input: string;
}

/** Calls of one batch, or a last text. */
export type Turn = readonly Call[] | string;

/** The gate that the host asks. The bad ones listen like a gate, or not at all. */
export type GateKind = "enforce" | "observe" | BadGateKind;
export type BadGateKind = "closed" | "hangs" | "status-500" | "empty" | "junk" | "lower-case" | "another";

/** The hook that the host starts with: ours, none, or one of a kind that fails. */
export type HookKind =
  | "ours"
  | "absent"
  | "misspelt"
  | "crashes"
  | "exits-1"
  | "not-there"
  | "killed"
  | "hangs"
  | "says-nothing"
  | "says-text"
  | "says-odd-json";

/** What the project's own files say. */
export type ProjectKind = "switches-hooks-off" | "allows-all" | "rewrites" | "reads-secret";

/** What a person does: `approves` the first approval after the first run, or while the host waits. */
export type PersonKind =
  | "approves"
  | "approves-while-held"
  | "approves-too-late"
  | "approves-then-rule-blocks"
  | "denies";

export interface HostCase {
  readonly id: string;
  readonly title: string;
  readonly turns: readonly Turn[];
  /** What a second run of the same session says; an empty list continues a parked run. */
  readonly again?: readonly Turn[];
  /** Scripts of sub-agents, by the name of their marker. */
  readonly inner?: Readonly<Record<string, readonly Turn[]>>;
  readonly gate?: GateKind;
  readonly hook?: HookKind;
  readonly project?: ProjectKind;
  /** Whether the host is set up in the form that is claimed to withstand its project's files. */
  readonly isProtected?: boolean;
  readonly person?: PersonKind;
  readonly onEscalate?: "refuse" | "wait" | "park";
  /** Whether the model's answers are streamed, if the host can do both. */
  readonly isStreamed?: boolean;
  /** An option of the adapter or of the client. */
  readonly variant?:
    | "fail-open"
    | "fail-open-without-grant"
    | "provider-tool"
    | "facts-throw"
    | "second-hook"
    | "handoff"
    | "other-protocol"
    | "instant-client";
  readonly expect: Expected;
  /** The same for a host without permissions of its own, if it differs. */
  readonly expectWithoutPermissions?: Expected;
}

export interface Expected {
  /** The lines of the witness, in any order: `pay 5`, `shell X`. */
  readonly ran: readonly string[];
  /** Receipts as `tool VERDICT`, in any order; absent if hosts may differ. */
  readonly receipts?: readonly string[];
  /** What the model is shown. */
  readonly saw?: RegExp;
  readonly ended?: Ended["ended"];
  /** Whether each receipt that allowed a call has the outcome `done` soon after. */
  readonly hasOutcomes?: boolean;
}

/** How a host's run ended: with the model's last text, parked for a person, before it started, or in another way. */
export interface Ended {
  readonly ended: "done" | "parked" | "not-started" | "lost";
  /** What the host printed, for a person who reads a failure. */
  readonly detail: string;
}

/** All that a driver needs for one run. Folders are fresh; addresses are of this machine. */
export interface Plan {
  readonly case: HostCase;
  /** The user's text, with the marker of the script; empty to continue a parked run. */
  readonly prompt: string;
  readonly isResumed: boolean;
  /** Has `home`, `project`, and the witness. */
  readonly folder: string;
  /** Empty if the host makes the id itself. */
  readonly session: string;
  readonly model: string;
  readonly gate: string;
  readonly key: string;
  /** The environment of the host: nothing else of this process's environment. */
  readonly env: Readonly<Record<string, string>>;
  /** The command of the MCP server that has the tool `pay`. */
  readonly payServer: readonly string[];
  readonly secondsForHook: number;
}

/** What the runs of one host share. */
export interface HostPlace {
  readonly folder: string;
  /** The environment of the host, with a HOME in `folder`. */
  readonly env: Readonly<Record<string, string>>;
  /** The folder of the adapters: a changed copy, for a test of the kit itself. */
  readonly adapters: string;
}

export interface Host {
  readonly run: (plan: Plan) => Promise<Ended>;
  readonly stop?: () => Promise<void>;
}

export type HostTool = Exclude<Call["tool"], "stdin" | "unknown">;

export interface Driver {
  /** As in the table of docs/hosts. */
  readonly name: string;
  /** The page about the host. */
  readonly page: string;
  readonly version: () => string;
  /** Whether the host has permissions of its own, so that nothing runs without a grant. */
  readonly hasPermissions: boolean;
  /** The host's name for each tool, and the name at the gate. `mcp` is `pay` of an MCP server. */
  readonly tools: Readonly<Record<HostTool, { readonly host: string; readonly gate: string }>>;
  /** False if the host makes the id of a session itself. Then each case has a gate of its own. By default true. */
  readonly choosesSession?: boolean;
  /** The call that waits for a sub-agent, and its tool at the gate, if the host does not wait by itself. */
  readonly waits?: { readonly call: ScriptedCall; readonly gate: string };
  /** The call that writes a text to the input of the command that was started last; undefined if no tool does. */
  readonly stdin?: (text: string) => ScriptedCall;
  /** Changes the arguments of a call to those of the host's own tool. */
  readonly inputOf?: (tool: HostTool, input: string) => string;
  /** The argument of the shell tool that is the command. Default `command`. */
  readonly shellMember?: string;
  /** Why this machine cannot run the host; undefined if it can. */
  readonly missing: () => string | undefined;
  /** Why a case does not apply to the host; undefined if it does. */
  readonly excuse: (one: HostCase) => string | undefined;
  readonly open: (place: HostPlace) => Host;
}
